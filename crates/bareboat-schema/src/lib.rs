//! Structural schemas: parse, prune, default, validate, ratchet; and the definitions that carry them.
//!
//! A [`Schema`] is what a CustomResourceDefinition says about the objects of one version, compiled
//! into a compact tree that is shared between versions and definitions ([`SchemaCache`]). The
//! [`crd`] module holds what there is to know about definitions themselves. Everything here is
//! pure: reading bytes, HTTP, storage and the assembling of OpenAPI documents are left to others.
//!
//! The way of an object: [`Schema::coerce`], [`Schema::default`], [`Schema::validate`].

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

    /// A value written in YAML.
    pub(crate) fn yaml(text: &str) -> Value {
        bareboat_wire::yaml::parse(text.as_bytes())
            .unwrap_or_else(|error| panic!("{error:?} in {text}"))
            .value
    }

    /// A schema written in YAML.
    pub(crate) fn schema(text: &str) -> Schema {
        Schema::parse(&yaml(text)).expect("the schema is shallow")
    }

    /// Errors as sorted lines.
    pub(crate) fn lines(errors: &[FieldError]) -> Vec<String> {
        let mut lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        lines.sort();
        lines
    }
}
