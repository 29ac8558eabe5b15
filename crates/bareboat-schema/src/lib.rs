//! Structural schemas: parsing, pruning, defaulting, validation, ratcheting; and the definitions
//! that contain them.
//!
//! A [`Schema`] is the schema of one version of a CustomResourceDefinition, compiled into a compact
//! tree that versions and definitions share ([`SchemaCache`]). The [`crd`] module handles the
//! definitions. Everything here is pure; other crates parse bytes, speak HTTP, store objects and
//! build OpenAPI documents.
//!
//! The steps for an object: [`Schema::coerce`], [`Schema::default`], [`Schema::validate`].

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod crd;
mod default;
mod format;
mod metadata;
mod number;
mod path;
mod prune;
mod rules;
mod schema;
mod validate;

pub use bareboat_cel::forget_idle_patterns;
pub use default::{MAX_DEFAULTS, TooManyDefaults};
pub use metadata::{MetadataError, Source, object_meta};
pub use schema::{Kind, Schema, SchemaCache, SchemaError};
pub use validate::{Findings, scale};

#[cfg(test)]
mod testing {
    //! Schemas and objects of tests, written in YAML.

    use crate::Schema;
    use bareboat_api::{FieldError, Value};

    /// Parses a value written in YAML.
    pub(crate) fn yaml(text: &str) -> Value {
        bareboat_wire::yaml::parse(text.as_bytes())
            .unwrap_or_else(|error| panic!("{error:?} in {text}"))
            .value
    }

    /// Parses a schema written in YAML.
    pub(crate) fn schema(text: &str) -> Schema {
        Schema::parse(&yaml(text)).expect("the schema is shallow")
    }

    /// Returns errors as sorted lines.
    pub(crate) fn lines(errors: &[FieldError]) -> Vec<String> {
        let mut lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        lines.sort();
        lines
    }
}
