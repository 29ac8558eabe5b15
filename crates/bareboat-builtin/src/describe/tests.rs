use super::types::TYPES;
use super::*;
use crate::{facts, kinds};
use bareboat_api::facts::{MessageRef, Type};
use std::collections::BTreeSet;

/// All messages that a built-in kind leads to, with the names of their definitions.
fn reached() -> Vec<(String, MessageRef)> {
    let mut todo: Vec<MessageRef> = kinds::all()
        .iter()
        .flat_map(|kind| {
            kind.versions.iter().filter_map(|version| {
                facts::kind(&kind.group, &version.name, &kind.names.kind)
            })
        })
        .collect();
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    while let Some(message) = todo.pop() {
        if !seen.insert(message.name.clone()) {
            continue;
        }
        for field in &message.fields {
            if let Type::Message(inner) = &field.element.0 {
                todo.push(*inner);
            }
        }
        let definition = message.name.replacen("k8s.io.", "io.k8s.", 1).replace('_', "-");
        found.push((definition, message));
    }
    found
}

fn description<'a>(schema: &'a Value, path: &[&str]) -> &'a str {
    schema
        .at(path)
        .and_then(|inner| inner.get("description"))
        .and_then(Value::as_str)
        .unwrap_or_default()
}

#[test]
fn everything_a_served_kind_leads_to_is_described() {
    let mut silent = Vec::new();
    for (name, message) in reached() {
        let Some(schema) = definition(&name) else {
            silent.push(name);
            continue;
        };
        for field in &message.fields {
            if description(&schema, &["properties", &field.json]).is_empty() {
                silent.push(format!("{name} {}", field.json));
            }
        }
    }
    silent.sort();
    assert_eq!(silent, Vec::<String>::new());
}

#[test]
fn a_definition_refers_to_others_without_making_them() {
    let deployment = definition("io.k8s.api.apps.v1.Deployment").expect("a listed type");
    let spec = deployment.at(&["properties", "spec"]).expect("a field");
    assert_eq!(
        spec.get("$ref").and_then(Value::as_str),
        Some("#/components/schemas/io.k8s.api.apps.v1.DeploymentSpec")
    );
    assert!(deployment.get("components").is_none());
}

#[test]
fn types_are_listed_once_and_so_are_those_they_refer_to() {
    let listed: BTreeSet<String> = TYPES.iter().map(|known| (known.name)().into_owned()).collect();
    assert_eq!(listed.len(), TYPES.len());
    let mut generator = SchemaSettings::openapi3().into_generator();
    for known in TYPES {
        (known.schema)(&mut generator);
    }
    let unlisted: Vec<&String> = generator
        .definitions()
        .keys()
        .filter(|name| !listed.contains(*name))
        .collect();
    assert!(unlisted.is_empty(), "{unlisted:?}");
}

#[test]
fn other_names_have_no_description() {
    for name in ["", "io.k8s.api.core.v1.", "com.example.v1.Widget"] {
        assert_eq!(definition(name), None, "{name}");
    }
}

#[test]
fn timing() {
    let start = std::time::Instant::now();
    let mut bytes = 0;
    for known in TYPES {
        bytes += definition(&(known.name)()).map_or(0, |v| v.to_string().len());
    }
    eprintln!("{} {:?} {}", TYPES.len(), start.elapsed(), bytes);
}
