//! The shape of a custom version, compiled when the first object needs it.
//!
//! Most definitions of a large installation are never used; they cost little more than their bytes.

use super::warm::{Lazy, Warm};
use crate::work;
use bareboat_api::kind::{Findings, PublishedSchema, ScalePaths, Shape, Typing, Validated};
use bareboat_api::{Str, Value};
use bareboat_schema::crd::{self, CustomShape, Definition, SchemaText};
use bareboat_storage::Entry;
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// A shape that is compiled when first needed.
pub(super) struct LazyShape {
    /// The definition; the store holds these bytes anyway.
    entry: Arc<Entry>,
    version: Str,
    scale: Option<ScalePaths>,
    preserve_unknown: bool,
    fingerprint: u64,
    warm: Arc<Warm>,
    compiled: Arc<Lazy<CustomShape>>,
}

impl LazyShape {
    pub(super) fn new(
        definition: &Definition,
        version: &crd::Version,
        schema: Option<&Value>,
        entry: Arc<Entry>,
        warm: &Arc<Warm>,
    ) -> LazyShape {
        LazyShape {
            entry,
            version: version.name.clone(),
            scale: version.scale.clone(),
            preserve_unknown: definition.preserve_unknown_fields,
            fingerprint: fingerprint(schema, definition.preserve_unknown_fields),
            compiled: Lazy::new(warm),
            warm: warm.clone(),
        }
    }

    fn compiled(&self) -> Arc<CustomShape> {
        self.compiled.get(|| {
            let crd = read(&self.entry);
            let schema = crd::compile(&crd, &self.version, self.warm.schemas());
            let (entry, version) = (self.entry.clone(), self.version.clone());
            let text: SchemaText =
                Arc::new(move || crd::schema_of(&read(&entry), &version).cloned());
            CustomShape::new(schema, self.scale.clone(), text)
                .preserving_unknown(self.preserve_unknown)
        })
    }
}

/// Parses the definition in an entry.
pub(super) fn read(entry: &Entry) -> Value {
    bareboat_wire::json::parse(entry.json())
        .map(|parsed| parsed.value)
        .unwrap_or_default()
}

/// Hashes everything that determines how stored objects are read.
fn fingerprint(schema: Option<&Value>, preserve_unknown: bool) -> u64 {
    let mut hasher = Sha256::new();
    hasher.update([u8::from(preserve_unknown)]);
    if let Some(schema) = schema {
        hasher.update(schema.to_json());
    }
    let digest = hasher.finalize();
    let first: [u8; 8] = digest[..8].try_into().expect("a digest has 32 bytes");
    // Zero means "no shape".
    u64::from_le_bytes(first) | 1
}

impl Shape for LazyShape {
    fn conform(&self, object: &mut Value, findings: &mut Findings) -> Result<(), String> {
        self.compiled().conform(object, findings)
    }
    fn conform_applied(&self, object: &mut Value) -> Result<(), String> {
        self.compiled().conform_applied(object)
    }
    fn default(&self, object: &mut Value) -> Result<(), String> {
        self.compiled().default(object)
    }
    fn validate(&self, new: &Value, old: Option<&Value>) -> Validated {
        self.compiled().validate(new, old)
    }
    fn validate_status(&self, new: &Value, old: &Value) -> Validated {
        self.compiled().validate_status(new, old)
    }
    fn reshape(&self, object: &mut Value) -> Result<(), String> {
        self.compiled().reshape(object)
    }
    fn trim(&self, object: &mut Value) {
        self.compiled().trim(object);
    }
    fn is_complete(&self, object: &Value) -> bool {
        self.compiled().is_complete(object)
    }
    fn may_take_long(&self) -> bool {
        // Compiling takes long, and rules and defaults may cost far more than the size of the object suggests.
        self.compiled.peek().is_none_or(|compiled| {
            compiled.schema().has_rules() || compiled.defaults_per_value() > work::LARGE
        })
    }
    fn defaults_per_value(&self) -> usize {
        self.compiled().defaults_per_value()
    }
    fn fingerprint(&self) -> u64 {
        self.fingerprint
    }
    fn typing(&self) -> Typing<'_> {
        Typing::Held(Arc::new(self.compiled().schema().clone()))
    }
    fn published_schema(&self) -> PublishedSchema {
        match crd::schema_of(&read(&self.entry), &self.version) {
            Some(schema) => PublishedSchema::Structural(schema.clone()),
            None => PublishedSchema::Untyped,
        }
    }
}
