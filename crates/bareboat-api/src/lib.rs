//! The basic types of the Kubernetes API: values, objects, names, errors, kinds.
//!
//! Pure data and pure functions: no I/O, no clock, no runtime.
//!
//! ```
//! use bareboat_api::labels::Selector;
//! use bareboat_api::{FieldError, FieldPath, Object, Status, value};
//!
//! let mut boat = Object::new("sea.example.com/v1", "Boat", "argo");
//! boat.set_meta("labels", value!({"rig": "square"}));
//! let labels = boat.metadata().and_then(|metadata| metadata.get("labels")?.as_object());
//! let selector = Selector::parse("rig in (square, lateen)").expect("it is a selector");
//! assert!(selector.matches_map(labels));
//!
//! // What clients are answered when a field is wrong.
//! let error = FieldError::invalid(FieldPath::new("spec").child("oars"), 7, "must be even");
//! assert_eq!(error.to_string(), "spec.oars: Invalid value: 7: must be even");
//! assert_eq!(Status::unauthorized().code, 401);
//! ```

pub mod admission;
mod anonymous;
mod confidential;
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
mod sorting;
pub mod status;
pub mod time;
pub mod typing;
pub mod value;

pub use anonymous::AnonymousRule;
pub use confidential::is_confidential;
pub use field::{FieldError, FieldErrorKind, FieldErrors, FieldPath};
pub use hashed::{Hashed, HashedMap};
pub use kind::Kind;
pub use object::Object;
pub use sorting::sort_by;
pub use status::Status;
pub use value::{Map, Str, Value};
