//! The schema of a version, as the write pipeline uses it.

use crate::validate::scale;
use crate::{Schema, Source};
use bareboat_api::field::go_quote;
use bareboat_api::kind::{Findings, PublishedSchema, ScalePaths, Shape, Typing, Validated};
use bareboat_api::{FieldErrors, Value};
use std::sync::Arc;

/// Returns the `openAPIV3Schema` when it is needed, so that it need not be kept in memory.
pub type SchemaText = Arc<dyn Fn() -> Option<Value> + Send + Sync>;

/// The schema of custom objects in one version.
pub struct CustomShape {
    schema: Schema,
    scale: Option<ScalePaths>,
    text: SchemaText,
    preserve_unknown: bool,
    defaults_per_value: usize,
}

bareboat_api::opaque_debug!(CustomShape);

impl CustomShape {
    /// Returns a shape with a compiled schema, scale paths and the source of the schema's text.
    pub fn new(schema: Schema, scale: Option<ScalePaths>, text: SchemaText) -> CustomShape {
        CustomShape {
            defaults_per_value: schema.defaults_per_value(),
            schema,
            scale,
            text,
            preserve_unknown: false,
        }
    }

    /// Turns pruning off if `preserve` is set, for definitions with `preserveUnknownFields`.
    #[must_use]
    pub fn preserving_unknown(mut self, preserve: bool) -> CustomShape {
        self.preserve_unknown = preserve;
        self
    }

    /// Returns the compiled schema.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    fn bring_into_form(
        &self,
        object: &mut Value,
        source: Source,
        unknown: &mut Vec<String>,
    ) -> Result<(), String> {
        if self.preserve_unknown {
            return self
                .schema
                .coerce_metadata(object, source, Some(unknown))
                .map_err(|error| error.to_string());
        }
        self.schema
            .coerce(object, source, Some(unknown))
            .map_err(|error| error.to_string())
    }
}

impl Shape for CustomShape {
    fn conform(&self, object: &mut Value, findings: &mut Findings) -> Result<(), String> {
        let mut unknown = Vec::new();
        self.bring_into_form(object, Source::Request, &mut unknown)?;
        findings.extend(
            unknown
                .iter()
                .map(|path| format!("unknown field {}", go_quote(path))),
        );
        Ok(())
    }

    fn conform_applied(&self, object: &mut Value) -> Result<(), String> {
        self.schema
            .coerce_metadata(object, Source::Request, None)
            .map_err(|error| error.to_string())
    }

    fn default(&self, object: &mut Value) -> Result<(), String> {
        let defaulted = self.schema.default(object);
        defaulted.map_err(|why| why.to_string())
    }

    fn defaults_per_value(&self) -> usize {
        self.defaults_per_value
    }

    fn validate(&self, new: &Value, old: Option<&Value>) -> Validated {
        let mut earlier = FieldErrors::default();
        if let Some(paths) = &self.scale {
            scale::validate_spec(paths, new, &mut earlier);
            scale::validate_status(paths, new, &mut earlier);
        }
        self.schema.validate(new, old, earlier.into_list()).into()
    }

    fn validate_status(&self, new: &Value, old: &Value) -> Validated {
        let mut earlier = FieldErrors::default();
        if let Some(paths) = &self.scale {
            scale::validate_status(paths, new, &mut earlier);
        }
        self.schema
            .validate_status(new, old, earlier.into_list())
            .into()
    }

    fn reshape(&self, object: &mut Value) -> Result<(), String> {
        self.trim(object);
        self.default(object)
    }

    fn trim(&self, object: &mut Value) {
        // Stored metadata is never rejected, so this cannot fail.
        let _ = self.bring_into_form(object, Source::Stored, &mut Vec::new());
    }

    fn is_complete(&self, object: &Value) -> bool {
        self.schema.is_defaulted(object)
    }

    fn fingerprint(&self) -> u64 {
        (self.schema.hash() as u64) | 1
    }

    fn typing(&self) -> Typing<'_> {
        Typing::Borrowed(&self.schema)
    }

    fn published_schema(&self) -> PublishedSchema {
        match (self.text)() {
            Some(schema) => PublishedSchema::Structural(schema),
            None => PublishedSchema::Untyped,
        }
    }
}
