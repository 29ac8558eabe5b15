//! The shape of typed objects, from the structural schema of their struct.

use bareboat_api::Value;
use bareboat_api::kind::{Findings, PublishedSchema, Shape, Typing, Validated};
use bareboat_schema::crd::CustomShape;
use bareboat_schema::{Schema, SchemaCache};
use std::sync::Arc;

/// The shape of objects that a struct describes.
pub(super) struct TypedShape(CustomShape);

impl TypedShape {
    pub(super) fn new(schema: Value) -> TypedShape {
        let cache = SchemaCache::new();
        let compiled: Schema = cache.parse(&schema).unwrap_or_else(|_| {
            // Too deep for a structural schema: only the type object is known.
            let bare = bareboat_api::value!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
            cache.parse(&bare).expect("a schema of two keywords is not deep")
        });
        TypedShape(CustomShape::new(
            compiled,
            None,
            Arc::new(move || Some(schema.clone())),
        ))
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
