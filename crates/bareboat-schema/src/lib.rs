//! Structural schemas: parsing, pruning, defaulting, validation, ratcheting; and the definitions
//! that contain them.
//!
//! A [`Schema`] is the schema of one version of a CustomResourceDefinition, compiled into a compact
//! tree that versions and definitions share ([`SchemaCache`]). The module `crd` handles the
//! definitions; it and rules need the feature `expressions`. Everything here is pure; other crates parse bytes, speak HTTP, store objects and
//! build OpenAPI documents.
//!
//! The steps for an object: [`Schema::coerce`], [`Schema::default`], [`Schema::validate`].
//!
//! ```
//! use bareboat_api::value;
//! use bareboat_schema::{Schema, Source};
//!
//! let schema = Schema::parse(&value!({"type": "object", "properties": {
//!     "spec": {"type": "object", "properties": {
//!         "sails": {"type": "integer", "minimum": 1, "default": 2},
//!     }},
//! }}))?;
//! let mut boat = value!({
//!     "apiVersion": "sea.example.com/v1", "kind": "Boat", "metadata": {"name": "argo"}, "spec": {"colour": "red"},
//! });
//! let mut unknown = Vec::new();
//! schema.coerce(&mut boat, Source::Request, Some(&mut unknown))?;
//! schema.default(&mut boat)?;
//! assert_eq!(unknown, ["spec.colour"]);
//! assert_eq!(boat.at(&["spec"]), Some(&value!({"sails": 2})));
//!
//! let becalmed = value!({"spec": {"sails": 0}});
//! let findings = schema.validate(&becalmed, None, Vec::new());
//! assert!(findings.errors[0].to_string().starts_with("spec.sails: Invalid value: 0"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// Documentation names the features that items need, where it is built with a nightly compiler, as docs.rs does.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(test, allow(clippy::unwrap_used))]
// What only rules and definitions use stays. The build with all features has no dead code.
#![cfg_attr(not(feature = "expressions"), allow(dead_code, unused_imports))]

mod client;
#[cfg(feature = "expressions")]
pub mod crd;
mod default;
mod format;
mod metadata;
mod number;
#[cfg(feature = "expressions")]
mod path;
mod prune;
#[cfg(feature = "expressions")]
mod rules;
mod schema;
mod shape;
mod validate;
#[cfg(not(feature = "expressions"))]
mod without_expressions;

#[cfg(not(feature = "expressions"))]
use without_expressions as rules;

#[cfg(feature = "expressions")]
pub use bareboat_cel::forget_idle_patterns;
pub use client::{Target, check as check_client_config};
pub use default::{MAX_DEFAULTS, TooManyDefaults};
pub use metadata::{MetadataError, Source, object_meta};
pub use schema::{Kind, Schema, SchemaCache, SchemaError};
pub use shape::{CustomShape, SchemaText};
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
