//! Descriptions of built-in definitions and their fields, from the published schemas.
//!
//! A schema is built on request and not cached: descriptions are static text, and only the list of names stays in
//! memory. The server joins them with the facts and caches the resulting documents.

mod types;

use bareboat_api::Value;
use bareboat_api::value::to_value;
use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use std::sync::{LazyLock, Mutex, PoisonError};
use types::TYPES;

/// Returns the schema of a definition such as `io.k8s.api.core.v1.ConfigMap`, with descriptions.
///
/// Other definitions are referred to by name, not included.
pub fn definition(name: &str) -> Option<Value> {
    let wanted = TYPES.iter().find(|known| known.name == name)?;
    let mut generator = GENERATOR.lock().unwrap_or_else(PoisonError::into_inner);
    to_value(&(wanted.schema)(&mut generator)).ok()
}

/// Generates schemas one by one.
///
/// The generator only refers to definitions it already has. It gets all names up front; otherwise one request would
/// generate, and keep, everything the definition refers to.
static GENERATOR: LazyLock<Mutex<SchemaGenerator>> = LazyLock::new(|| {
    let mut generator = SchemaSettings::openapi3().into_generator();
    let names = TYPES.iter().map(|known| known.name.to_owned());
    generator
        .definitions_mut()
        .extend(names.map(|name| (name, serde_json::Value::Null)));
    Mutex::new(generator)
});

/// A type with a schema.
struct Described {
    /// The definition name. It is listed here because asking each type for its name would page in all description code.
    name: &'static str,
    schema: fn(&mut SchemaGenerator) -> Schema,
}

#[cfg(test)]
mod tests;
