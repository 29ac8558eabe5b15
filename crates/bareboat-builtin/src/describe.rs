//! What built-in definitions and their fields are for, in the words of the published schemas.
//!
//! A schema is made when somebody asks for it and forgotten again: descriptions are text in the
//! program, and only a list of names stays in memory once one was asked for. Joining them with the
//! facts, and keeping the documents made of both, is left to the server.

mod types;

use bareboat_api::Value;
use bareboat_api::value::to_value;
use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use std::sync::{LazyLock, Mutex, PoisonError};
use types::TYPES;

/// The schema of a definition such as `io.k8s.api.core.v1.ConfigMap`, with descriptions.
///
/// Other definitions are referred to by name, not included.
pub fn definition(name: &str) -> Option<Value> {
    let wanted = TYPES.iter().find(|known| known.name == name)?;
    let mut generator = GENERATOR.lock().unwrap_or_else(PoisonError::into_inner);
    to_value(&(wanted.schema)(&mut generator)).ok()
}

/// Makes schemas one by one.
///
/// What a generator has already is only referred to. So it gets all names from the start: asking
/// for one definition would otherwise make all that it leads to, and keep them.
static GENERATOR: LazyLock<Mutex<SchemaGenerator>> = LazyLock::new(|| {
    let mut generator = SchemaSettings::openapi3().into_generator();
    let names = TYPES.iter().map(|known| known.name.to_owned());
    generator
        .definitions_mut()
        .extend(names.map(|name| (name, serde_json::Value::Null)));
    Mutex::new(generator)
});

/// A type that can say what it looks like.
struct Described {
    /// Its definition name. Types know theirs too, but asking all of them would touch, and so load,
    /// the whole part of the program that is about descriptions.
    name: &'static str,
    schema: fn(&mut SchemaGenerator) -> Schema,
}

#[cfg(test)]
mod tests;
