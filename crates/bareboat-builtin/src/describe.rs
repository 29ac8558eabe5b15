//! What built-in definitions and their fields are for, in the words of the published schemas.
//!
//! A schema is made when somebody asks for it and forgotten again: descriptions are text in the
//! program, and weigh nothing in memory until then. Joining them with the facts, and keeping the
//! documents made of both, is left to the server.

mod types;

use bareboat_api::Value;
use bareboat_api::value::to_value;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use std::borrow::Cow;
use types::TYPES;

/// The schema of a definition such as `io.k8s.api.core.v1.ConfigMap`, with descriptions.
///
/// Other definitions are referred to by name, not included.
pub fn definition(name: &str) -> Option<Value> {
    let wanted = TYPES.iter().find(|known| (known.name)() == name)?;
    let mut generator = SchemaSettings::openapi3().into_generator();
    // What is there already is only referred to. Without this, asking for one definition would
    // make all that it leads to, and asking for all of them would do so hundreds of times.
    generator.definitions_mut().extend(
        TYPES
            .iter()
            .map(|known| ((known.name)().into_owned(), serde_json::Value::Null)),
    );
    to_value(&(wanted.schema)(&mut generator)).ok()
}

/// A type that can say what it looks like.
struct Described {
    name: fn() -> Cow<'static, str>,
    schema: fn(&mut SchemaGenerator) -> Schema,
}

impl Described {
    const fn of<T: JsonSchema>() -> Described {
        Described {
            name: T::schema_name,
            schema: T::json_schema,
        }
    }
}

#[cfg(test)]
mod tests;
