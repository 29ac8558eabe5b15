//! Tests of definitions: validation in `rules`, the life of a definition in `life`.

mod life;
mod rules;

use super::*;
use crate::testing::{lines, yaml};

const NOW: &str = "2024-01-01T00:00:00Z";

/// Returns a definition of gadgets with that schema.
fn gadgets(schema: &str) -> Value {
    let mut crd = yaml(
        "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, \
         metadata: {name: gadgets.example.com}, spec: {group: example.com, scope: Namespaced, \
         names: {plural: gadgets, kind: Gadget, shortNames: [gd]}, \
         versions: [{name: v1, served: true, storage: true, schema: {}}]}}",
    );
    set(&mut crd, "spec.versions.0.schema.openAPIV3Schema", schema);
    prepare(&mut crd, None);
    default(&mut crd);
    crd
}

/// Sets the value at a dotted path; `-` removes it.
fn set(object: &mut Value, path: &str, text: &str) {
    let mut at = object;
    let (parents, last) = path.rsplit_once('.').unwrap_or(("", path));
    for step in parents.split('.').filter(|step| !step.is_empty()) {
        at = match at {
            Value::Array(list) => &mut list[step.parse::<usize>().unwrap()],
            other => other
                .make_object()
                .entry_or_insert_with(step, Value::object),
        };
    }
    match (at, text) {
        (Value::Array(list), "-") => drop(list.remove(last.parse().unwrap())),
        (Value::Array(list), text) => list.push(yaml(text)),
        (other, "-") => drop(other.make_object().remove(last)),
        (other, text) => drop(other.make_object().insert(last, yaml(text))),
    }
}

fn check(changes: &[(&str, &str)], expected: &[&str]) {
    let mut crd = gadgets(
        "{type: object, properties: {spec: {type: object, properties: {n: {type: integer}}}}}",
    );
    for (path, text) in changes {
        set(&mut crd, path, text);
    }
    assert_eq!(lines(&validate_create(&crd)), expected, "{changes:?}");
}

fn check_schema(schema: &str, expected: &[&str]) {
    let found = lines(&validate_create(&gadgets(schema)));
    assert_eq!(found, expected, "{schema}");
}

const V: &str = "spec.versions.0.";
const S: &str = "spec.validation.openAPIV3Schema";
