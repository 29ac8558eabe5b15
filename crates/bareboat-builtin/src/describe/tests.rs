//! Tests that every built-in definition has a description.

use super::*;
use crate::{facts, kinds};
use bareboat_api::facts::{MessageRef, Type};
use std::collections::BTreeSet;

/// Returns definition and field names of all messages reachable from a built-in kind.
fn fields() -> BTreeSet<(String, &'static str)> {
    let mut todo: Vec<MessageRef> = kinds::all()
        .iter()
        .flat_map(|kind| {
            let named = |version: &str| facts::kind(&kind.group, version, &kind.names.kind);
            kind.versions
                .iter()
                .filter_map(move |version| named(&version.name))
        })
        .collect();
    let mut seen = BTreeSet::new();
    let mut found = BTreeSet::new();
    while let Some(message) = todo.pop() {
        if seen.insert(message.name.clone()) {
            let name = message
                .name
                .replacen("k8s.io.", "io.k8s.", 1)
                .replace('_', "-");
            gather(message, &name, &mut todo, &mut found);
        }
    }
    found
}

/// Adds the fields of a message, including those of its inline messages.
fn gather(
    message: MessageRef,
    name: &str,
    todo: &mut Vec<MessageRef>,
    found: &mut BTreeSet<(String, &'static str)>,
) {
    for field in &message.get().fields {
        match field.ty {
            Type::Message(inner) if field.json.is_empty() => {
                gather(inner, name, todo, found);
                continue;
            }
            Type::Message(inner) => todo.push(inner),
            _ => {}
        }
        found.insert((name.to_owned(), &field.json));
    }
}

/// Returns whether the published schemas have no description of a field.
fn is_silent(definition: &str, field: &str) -> bool {
    match definition.rsplit('.').next() {
        Some("JSONSchemaProps" | "ExternalDocumentation") => true,
        Some("CertificateSigningRequest") => field == "metadata",
        Some("IngressRule") => field == "http",
        _ => false,
    }
}

#[test]
fn every_field_reachable_from_a_built_in_kind_is_described() {
    let fields = fields();
    assert!(fields.len() > 1500, "only {} fields", fields.len());
    let missing: Vec<_> = fields
        .iter()
        .filter(|(name, field)| {
            let text = definition(name).and_then(|schema| {
                let text = schema.at(&["properties", field, "description"])?;
                Some(!text.as_str()?.is_empty())
            });
            text != Some(true) && !is_silent(name, field)
        })
        .collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn a_definition_refers_to_other_definitions_without_including_them() {
    let deployment = definition("io.k8s.api.apps.v1.Deployment").expect("a listed type");
    let spec = deployment.at(&["properties", "spec"]).expect("a field");
    assert_eq!(
        spec.get("$ref").and_then(Value::as_str),
        Some("#/components/schemas/io.k8s.api.apps.v1.DeploymentSpec")
    );
    assert!(deployment.get("components").is_none());
}

#[test]
fn unknown_names_have_no_description() {
    for name in ["", "io.k8s.api.core.v1.", "com.example.v1.Widget"] {
        assert_eq!(definition(name), None, "{name}");
    }
}
