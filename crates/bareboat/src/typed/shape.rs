//! The shape of typed objects, from the structural schema of their struct.

use bareboat_api::Value;
use bareboat_api::kind::{Findings, PublishedSchema, Shape, Typing, Validated};
use bareboat_schema::{CustomShape, Schema, SchemaCache, SchemaError};
use std::sync::Arc;

/// The shape of objects that a struct describes.
pub(super) struct TypedShape(CustomShape, Option<SchemaError>);

impl TypedShape {
    pub(super) fn new(schema: Value) -> TypedShape {
        let cache = SchemaCache::new();
        let (compiled, fault): (Schema, _) = match cache.parse(&schema) {
            Ok(compiled) => (compiled, None),
            Err(error) => {
                // Only the type object is known.
                let bare = bareboat_api::value!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
                let bare = cache.parse(&bare);
                let bare = bare.expect("a schema of two keywords is not deep");
                // One that is too deep for a structural schema is still published.
                (bare, Some(error).filter(|why| *why != SchemaError::TooDeep))
            }
        };
        let text = Arc::new(move || Some(schema.clone()));
        TypedShape(CustomShape::new(compiled, None, text), fault)
    }

    /// Takes the reason why this build cannot validate by the schema.
    pub(super) fn take_fault(&mut self) -> Option<SchemaError> {
        self.1.take()
    }
}

impl Shape for TypedShape {
    fn conform(&self, object: &mut Value, findings: &mut Findings) -> Result<(), String> {
        self.0.conform(object, findings)
    }
    fn default(&self, object: &mut Value) -> Result<(), String> {
        self.0.default(object)
    }
    fn defaults_per_value(&self) -> usize {
        self.0.defaults_per_value()
    }
    fn validate(&self, new: &Value, old: Option<&Value>) -> Validated {
        self.0.validate(new, old)
    }
    fn reshape(&self, object: &mut Value) -> Result<(), String> {
        self.0.reshape(object)
    }
    fn trim(&self, object: &mut Value) {
        self.0.trim(object);
    }
    fn is_complete(&self, object: &Value) -> bool {
        self.0.is_complete(object)
    }
    fn fingerprint(&self) -> u64 {
        self.0.fingerprint()
    }
    fn typing(&self) -> Typing<'_> {
        self.0.typing()
    }
    fn published_schema(&self) -> PublishedSchema {
        self.0.published_schema()
    }
}
