//! The vocabulary of the Kubernetes API: values, objects, names, errors, kinds.
//!
//! Pure data and pure functions: no I/O, no clock, no runtime.

pub mod facts;
pub mod field;
pub mod kind;
pub mod object;
pub mod status;
pub mod typing;
pub mod value;

pub use field::{FieldError, FieldErrorKind, FieldPath};
pub use kind::Kind;
pub use object::Object;
pub use status::Status;
pub use value::{Map, Str, Value};
