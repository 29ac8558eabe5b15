//! The form of a kind's objects in one version: what is pruned, defaulted, checked and published.

use crate::facts::MessageRef;
use crate::typing::TypeNode;
use crate::{FieldError, Str, Value};
use std::ops::Deref;
use std::sync::Arc;

/// What decoding noticed: texts such as `unknown field "spec.foo"`, for warnings or strict errors.
pub type Findings = Vec<String>;

/// The outcome of validation.
#[derive(Debug, Default)]
pub struct Validated {
    /// What is wrong.
    pub errors: Vec<FieldError>,
    /// What is not wrong enough to refuse.
    pub warnings: Vec<String>,
}

/// How the schema of a version is published in OpenAPI documents.
#[derive(Clone, Debug)]
pub enum Definition {
    /// A message of the table of facts.
    Message(MessageRef),
    /// A structural schema (`openAPIV3Schema`), without type meta and metadata.
    Structural(Value),
    /// Any object.
    Untyped,
}

/// A type that belongs to its shape, or is held for as long as somebody looks at it.
#[derive(Clone)]
pub enum Typing<'a> {
    /// It belongs to the shape.
    Borrowed(&'a dyn TypeNode),
    /// It is held.
    Held(Arc<dyn TypeNode>),
}

impl<'a> Deref for Typing<'a> {
    type Target = dyn TypeNode + 'a;

    fn deref(&self) -> &(dyn TypeNode + 'a) {
        match self {
            Typing::Borrowed(node) => *node,
            Typing::Held(node) => &**node,
        }
    }
}

/// The form of a kind's objects in one version.
pub trait Shape: Send + Sync {
    /// Brings a decoded body into form: unknown members are reported and dropped, values
    /// normalised. The error says, for the client, what does not fit the type at all.
    fn conform(&self, object: &mut Value, findings: &mut Findings) -> Result<(), String>;

    /// Brings what a configuration was merged into into form. It fits the type already, so that nothing is
    /// unknown; custom kinds keep a null in it for validation to judge.
    fn conform_applied(&self, object: &mut Value) -> Result<(), String> {
        self.conform(object, &mut Vec::new())
    }

    /// Fills in defaults; the error says why they are too many.
    fn default(&self, object: &mut Value) -> Result<(), String>;

    /// Checks an object against its schema; `old` is the object it replaces.
    fn validate(&self, new: &Value, old: Option<&Value>) -> Validated;

    /// Checks an object of which only the status was written.
    fn validate_status(&self, new: &Value, old: &Value) -> Validated {
        self.validate(new, Some(old))
    }

    /// Brings an object read from storage into today's form, forgiving what it cannot use.
    fn reshape(&self, object: &mut Value) -> Result<(), String> {
        let _ = self.conform(object, &mut Vec::new());
        self.default(object)
    }

    /// Brings an object that was converted from another version into form. Custom kinds fill in defaults
    /// only in the version an object is read in, before it is converted.
    fn trim(&self, object: &mut Value) {
        let _ = self.conform(object, &mut Vec::new());
    }

    /// Whether a trimmed object has all its defaults.
    fn is_complete(&self, _object: &Value) -> bool {
        true
    }

    /// Whether bringing even a small object into form, or checking it, may take long.
    fn may_take_long(&self) -> bool {
        false
    }

    /// Changes whenever [`Shape::reshape`] may give another result; 0 when stored bytes are
    /// always as they should be.
    fn fingerprint(&self) -> u64 {
        0
    }

    /// The type, for strategic merge and server-side apply.
    fn typing(&self) -> Typing<'_>;

    /// The protobuf message, for kinds that speak protobuf.
    fn message(&self) -> Option<MessageRef> {
        None
    }

    /// What an object of the kind shows before anything is set, for kinds whose structs are always
    /// printed; nobody manages those.
    fn empty(&self) -> Option<Value> {
        None
    }

    /// How the schema is published.
    fn definition(&self) -> Definition;

    /// The name of the definition in OpenAPI documents; derived from group, version and kind
    /// when empty.
    fn definition_name(&self) -> Str {
        Str::default()
    }
}
