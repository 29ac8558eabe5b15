//! The form of a built-in kind's objects in one version: its message and its defaults.

use crate::typed::{Empties, conform};
use bareboat_api::Value;
use bareboat_api::facts::MessageRef;
use bareboat_api::kind::{Findings, PublishedSchema, Shape, Typing, Validated};

/// A function that sets the defaults of an object that conforms to its type.
pub type Defaults = fn(&mut Value);

/// The form of a built-in kind's objects in one version.
#[derive(Clone, Copy, Debug)]
pub struct BuiltinShape {
    message: MessageRef,
    defaults: Defaults,
    empties: Empties,
}

impl BuiltinShape {
    /// Creates a shape from a message and defaults.
    pub fn new(message: MessageRef, defaults: Defaults, empties: Empties) -> BuiltinShape {
        BuiltinShape {
            message,
            defaults,
            empties,
        }
    }
}

impl Shape for BuiltinShape {
    fn conform(&self, object: &mut Value, findings: &mut Findings) -> Result<(), String> {
        conform(&self.message, object, self.empties, findings).map_err(|error| error.to_string())
    }

    fn default(&self, object: &mut Value) -> Result<(), String> {
        (self.defaults)(object);
        Ok(())
    }

    /// Conversion between built-in versions leaves defaults to be set again.
    fn trim(&self, object: &mut Value) {
        let _ = self.reshape(object);
    }

    /// Built-in kinds have no schema beside their type; strategies validate them.
    fn validate(&self, _new: &Value, _old: Option<&Value>) -> Validated {
        Validated::default()
    }

    fn typing(&self) -> Typing<'_> {
        Typing::Borrowed(self.message.get())
    }

    fn empty(&self) -> Option<Value> {
        let mut empty = Value::object();
        conform(&self.message, &mut empty, self.empties, &mut Vec::new()).ok()?;
        Some(empty)
    }

    fn message(&self) -> Option<MessageRef> {
        Some(self.message)
    }

    fn published_schema(&self) -> PublishedSchema {
        PublishedSchema::Message(self.message)
    }

    fn definition_name(&self) -> bareboat_api::Str {
        // OpenAPI reverses the domain of Go packages: io.k8s.api.core.v1.Pod.
        let name = self.message.name.as_str();
        match name.strip_prefix("k8s.io.") {
            Some(rest) => bareboat_api::Str::new(format!("io.k8s.{}", rest.replace('_', "-"))),
            None => self.message.name.clone(),
        }
    }
}
