//! The basic types of the Kubernetes API: values, objects, names, errors, kinds.
//!
//! Pure data and pure functions: no I/O, no clock, no runtime.

pub mod admission;
pub mod facts;
pub mod field;
pub mod fields;
mod hashed;
pub mod interrupt;
pub mod jsonpath;
pub mod kind;
pub mod labels;
pub mod metadata;
pub mod names;
pub mod object;
mod opaque;
pub mod quantity;
pub mod resolver;
pub mod status;
pub mod time;
pub mod typing;
pub mod value;

pub use field::{FieldError, FieldErrorKind, FieldErrors, FieldPath};
pub use hashed::{Hashed, HashedMap};
pub use kind::Kind;
pub use object::Object;
pub use status::Status;
pub use value::{Map, Str, Value};
