//! API types: values, objects, kinds, errors, selectors, quantities, admission.

pub use bareboat_api::opaque_debug;
pub use bareboat_api::{
    FieldError, FieldPath, Map, Object, Status, Str, Value, admission, fields, jsonpath, kind,
    labels, quantity, resolver, status, time, typing, value,
};
