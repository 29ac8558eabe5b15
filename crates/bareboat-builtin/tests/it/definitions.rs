//! Compares the descriptions of built-in definitions with the types of `k8s-openapi`; `UPDATE_EXPECT=1` writes them anew.

mod types;

use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use types::TYPES;

/// A type with a schema.
pub(crate) struct Described {
    /// The name of its definition.
    name: &'static str,
    schema: fn(&mut SchemaGenerator) -> Schema,
}

/// Returns one sorted line for each type: the name of the definition and its schema.
fn lines() -> String {
    // The generator only refers to definitions it already has, so it gets all names first.
    let mut generator = SchemaSettings::openapi3().into_generator();
    let names = TYPES.iter().map(|known| known.name.to_owned());
    generator
        .definitions_mut()
        .extend(names.map(|name| (name, Value::Null)));
    let mut lines: Vec<String> = TYPES
        .iter()
        .map(|known| {
            let schema = (known.schema)(&mut generator).to_value();
            format!("{} {}\n", known.name, sorted(schema))
        })
        .collect();
    lines.sort();
    lines.concat()
}

/// Sorts the members of objects, whose order depends on the features of `serde_json`.
fn sorted(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(sorted).collect(),
        Value::Object(members) => {
            let members: BTreeMap<String, Value> = members.into_iter().collect();
            members
                .into_iter()
                .map(|(key, value)| (key, sorted(value)))
                .collect()
        }
        other => other,
    }
}

#[test]
fn descriptions_are_those_of_the_published_types() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/describe/definitions.txt");
    let expected = lines();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, &expected).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap();
    let differing = expected.lines().zip(found.lines()).find(|(a, b)| a != b);
    assert_eq!(differing, None, "`make golden` writes the file anew");
    assert_eq!(expected.len(), found.len());
}

#[test]
fn types_and_the_types_they_refer_to_are_listed_once_under_their_own_names() {
    let listed: BTreeSet<&str> = TYPES.iter().map(|known| known.name).collect();
    assert_eq!(listed.len(), TYPES.len());
    // An empty generator uses the names that the types define themselves.
    let mut generator = SchemaSettings::openapi3().into_generator();
    for known in TYPES {
        (known.schema)(&mut generator);
    }
    let unlisted: Vec<&String> = generator
        .definitions()
        .keys()
        .filter(|name| !listed.contains(name.as_str()))
        .collect();
    assert!(unlisted.is_empty(), "{unlisted:?}");
}
