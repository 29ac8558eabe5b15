//! The schema of a kind's objects in one version: pruning, defaulting, validation and publication.

use crate::facts::MessageRef;
use crate::typing::TypeNode;
use crate::{FieldError, Str, Value};
use std::ops::Deref;
use std::sync::Arc;

/// Findings of the decoder, such as `unknown field "spec.foo"`, for warnings or strict errors.
pub type Findings = Vec<String>;

/// The outcome of validation.
#[derive(Debug, Default)]
pub struct Validated {
    /// The errors; the object is rejected if there are any.
    pub errors: Vec<FieldError>,
    /// The warnings; they do not reject the object.
    pub warnings: Vec<String>,
}

/// How the schema of a version is published in OpenAPI documents.
#[derive(Clone, Debug)]
pub enum PublishedSchema {
    /// A message of the table of facts.
    Message(MessageRef),
    /// A structural schema (`openAPIV3Schema`), without type meta and metadata.
    Structural(Value),
    /// Any object.
    Untyped,
}

/// A type that is borrowed from its shape, or shared with it.
#[derive(Clone)]
pub enum Typing<'a> {
    /// Borrowed from the shape.
    Borrowed(&'a dyn TypeNode),
    /// Shared.
    Held(Arc<dyn TypeNode>),
}

crate::opaque_debug!(Typing<'_>);

impl<'a> Deref for Typing<'a> {
    type Target = dyn TypeNode + 'a;

    fn deref(&self) -> &(dyn TypeNode + 'a) {
        match self {
            Typing::Borrowed(node) => *node,
            Typing::Held(node) => &**node,
        }
    }
}

/// The schema of a kind's objects in one version.
///
/// Programs seldom implement it: `TypedKind` makes shapes of structs, and a definition those of its schemas.
///
/// ```
/// # mod bareboat { pub mod api { pub use bareboat_api::*; } }
/// use bareboat::api::Value;
/// use bareboat::api::kind::{Shape, Version};
///
/// /// Returns the errors of an object in a version.
/// fn errors(version: &Version, object: &Value) -> Vec<String> {
///     let validated = version.shape.validate(object, None);
///     validated.errors.iter().map(ToString::to_string).collect()
/// }
/// # drop(errors);
/// ```
pub trait Shape: Send + Sync {
    /// Normalises a decoded body: reports and drops unknown members, and normalises values. The
    /// error is the client's message for a body that does not fit the type at all.
    fn conform(&self, object: &mut Value, findings: &mut Findings) -> Result<(), String>;

    /// Normalises the result of an applied configuration. It fits the type already, so it has no
    /// unknown members; custom kinds keep a null in it for validation to check.
    fn conform_applied(&self, object: &mut Value) -> Result<(), String> {
        self.conform(object, &mut Vec::new())
    }

    /// Fills in defaults; the error reports that there are too many.
    fn default(&self, object: &mut Value) -> Result<(), String>;

    /// Returns how many bytes of defaults one value of an object can cause, at most.
    fn defaults_per_value(&self) -> usize {
        0
    }

    /// Validates an object against its schema; `old` is the object it replaces.
    fn validate(&self, new: &Value, old: Option<&Value>) -> Validated;

    /// Validates an object after a write of its status only.
    fn validate_status(&self, new: &Value, old: &Value) -> Validated {
        self.validate(new, Some(old))
    }

    /// Adapts an object read from storage to the current schema; ignores values that do not fit.
    fn reshape(&self, object: &mut Value) -> Result<(), String> {
        let _ = self.conform(object, &mut Vec::new());
        self.default(object)
    }

    /// Normalises an object that was converted from another version. Custom kinds fill in defaults
    /// only in the version an object is read in, before it is converted.
    fn trim(&self, object: &mut Value) {
        let _ = self.conform(object, &mut Vec::new());
    }

    /// Returns whether a trimmed object has all its defaults.
    fn is_complete(&self, _object: &Value) -> bool {
        true
    }

    /// Returns whether normalising or validating even a small object may take long.
    fn may_take_long(&self) -> bool {
        false
    }

    /// Returns a number that changes whenever [`Shape::reshape`] may give another result; 0 if
    /// stored objects never need it.
    fn fingerprint(&self) -> u64 {
        0
    }

    /// Returns the type, for strategic merge and server-side apply.
    fn typing(&self) -> Typing<'_>;

    /// Returns the protobuf message, for kinds that support protobuf.
    fn message(&self) -> Option<MessageRef> {
        None
    }

    /// Returns an object of the kind with nothing set, for kinds whose structs are always printed;
    /// these fields have no manager.
    fn empty(&self) -> Option<Value> {
        None
    }

    /// How the schema is published.
    fn published_schema(&self) -> PublishedSchema;

    /// Returns the name of the definition in OpenAPI documents; if empty, it is derived from group,
    /// version and kind.
    fn definition_name(&self) -> Str {
        Str::default()
    }
}
