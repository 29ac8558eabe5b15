//! Warnings of the type checker.

use super::object;
use crate::{CheckedKind, ExpressionWarning, check_types, declared_type, rules_to_check};
use bareboat_api::kind::PublishedSchema;
use bareboat_api::{Str, value};

fn kind(version: &str) -> CheckedKind {
    let schema = PublishedSchema::Structural(value!({
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": {
                "size": {"type": "integer"},
                "names": {"type": "array", "items": {"type": "string"}},
                "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            }},
        },
    }));
    CheckedKind {
        gvk: (Str::new("g"), Str::new(version), Str::new("Thing")),
        decl: declared_type("Thing", &schema, None).expect("a type"),
    }
}

#[test]
fn warnings_name_the_kind_and_the_place() {
    let policy = object(value!({"spec": {
        "variables": [{"name": "size", "expression": "object.spec.size"}],
        "validations": [
            {"expression": "object.spec.size > 1 && object.spec.any.thing == 'x' && object.metadata.name == 'x'"},
            {"expression": "object.spec.sise > 1", "messageExpression": "variables.size"},
            {"expression": "variables.size == 'x'"},
        ],
    }}));
    let warnings = check_types(&policy, vec![kind("v2"), kind("v1"), kind("v1")], None);
    let text = "undefined field 'sise'\n | object.spec.sise > 1\n | ...........^\n";
    assert_eq!(
        warnings[0],
        ExpressionWarning {
            field_ref: "spec.validations[1].expression".to_owned(),
            warning: format!(
                "g/v1, Kind=Thing: ERROR: <input>:1:12: {text}\ng/v2, Kind=Thing: ERROR: <input>:1:12: {text}"
            ),
        }
    );
    assert_eq!(warnings[1].field_ref, "spec.validations[2].expression");
    assert!(
        warnings[1]
            .warning
            .contains("found no matching overload for '_==_' applied to '(int, string)'")
    );
    assert_eq!(warnings.len(), 2);
}

#[test]
fn only_concrete_resources_are_checked() {
    let policy = object(value!({"spec": {"matchConstraints": {"resourceRules": [
        {"apiGroups": ["b", "a"], "apiVersions": ["v1"], "resources": ["things", "things/status", "*"]},
        {"apiGroups": ["*"], "apiVersions": ["v1"], "resources": ["pods"]},
        {"apiGroups": [""], "apiVersions": ["*"], "resources": ["pods"]},
    ]}}}));
    let found = rules_to_check(&policy);
    let wanted = [("a", "v1", "things"), ("b", "v1", "things")];
    let wanted = wanted
        .map(|(group, version, resource)| (Str::new(group), Str::new(version), Str::new(resource)));
    assert_eq!(found, wanted);
}
