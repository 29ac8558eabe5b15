//! Metadata of objects: what is valid at creation and which changes are allowed.

use super::*;
use crate::value;

fn map(value: Value) -> Map {
    match value {
        Value::Object(map) => map,
        other => panic!("not an object: {other}"),
    }
}

fn create(meta: Value) -> Vec<String> {
    let path = FieldPath::new("metadata");
    let wrong = validate_metadata(&map(meta), true, NameRule::Subdomain, &path);
    wrong.iter().map(FieldError::to_string).collect()
}

fn update(new: Value, old: Value) -> Vec<String> {
    let wrong = validate_metadata_update(&map(new), &map(old), &FieldPath::new("metadata"));
    wrong.iter().map(FieldError::to_string).collect()
}

#[test]
fn valid_metadata_passes() {
    let meta = value!({
        "name": "a", "namespace": "b", "generateName": "a-", "generation": 1,
        "labels": {"example.com/x": "y", "empty": ""},
        "annotations": {"Example.com/X": "anything at all\n"},
        "finalizers": ["example.com/f", "orphan"],
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "1", "controller": true},
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "d", "uid": "2"},
        ],
        "managedFields": [{"manager": "kubectl", "operation": "Apply", "fieldsType": "FieldsV1"}],
    });
    assert_eq!(create(meta.clone()), Vec::<String>::new());
    assert_eq!(update(meta.clone(), meta), Vec::<String>::new());
}

#[test]
fn names_and_namespaces_are_checked() {
    assert_eq!(
        create(value!({})),
        [
            "metadata.name: Required value: name or generateName is required",
            "metadata.namespace: Required value",
        ]
    );
    let wrong = create(value!({"name": "A", "namespace": "b.c", "generation": (-1)}));
    assert!(
        wrong[0]
            .starts_with(r#"metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain"#)
    );
    assert_eq!(
        wrong[1],
        r#"metadata.namespace: Invalid value: "b.c": must not contain dots"#
    );
    assert_eq!(
        wrong[2],
        "metadata.generation: Invalid value: -1: must be greater than or equal to 0"
    );
    let meta = map(value!({"name": "a", "namespace": "b"}));
    let wrong = validate_metadata(&meta, false, NameRule::Label, &FieldPath::new("metadata"));
    assert_eq!(
        wrong[0].to_string(),
        "metadata.namespace: Forbidden: not allowed on this type"
    );
}

#[test]
fn labels_and_annotations_are_checked() {
    let wrong = create(value!({
        "name": "a", "namespace": "b",
        "labels": {"-x": "ok", "y": "-"},
        "annotations": {"/z": "", "big": ("x".repeat(ANNOTATIONS_MAX))},
    }));
    assert!(
        wrong[0].starts_with(r#"metadata.labels: Invalid value: "-x": name part must consist"#)
    );
    assert!(wrong[1].starts_with(r#"metadata.labels: Invalid value: "-": a valid label must be"#));
    assert_eq!(
        wrong[2..],
        [
            r#"metadata.annotations: Invalid value: "/z": prefix part must be non-empty"#,
            "metadata.annotations: Too long: may not be more than 262144 bytes",
        ]
    );
    assert_eq!(
        create(value!({"name": "a", "namespace": "b", "labels": {"x": 1, "n": null}})),
        ["metadata.labels[x]: Invalid value: 1: must be a string"]
    );
}

#[test]
fn owners_are_checked() {
    let wrong = create(value!({
        "name": "a", "namespace": "b",
        "ownerReferences": [{"apiVersion": "apps/", "controller": true}],
    }));
    assert_eq!(
        wrong,
        [
            r#"metadata.ownerReferences.apiVersion: Invalid value: "apps/": version must not be empty"#,
            r#"metadata.ownerReferences.kind: Invalid value: "": must not be empty"#,
            r#"metadata.ownerReferences.name: Invalid value: "": must not be empty"#,
            r#"metadata.ownerReferences.uid: Invalid value: "": must not be empty"#,
        ]
    );
    let wrong = create(value!({
        "name": "a", "namespace": "b",
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Event", "name": "e", "uid": "1", "controller": true},
            {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "2", "controller": true},
        ],
    }));
    assert!(wrong[0].ends_with("/v1, Kind=Event is disallowed from being an owner"));
    assert!(wrong[1].ends_with(
        r#"Only one reference can have Controller set to true. Found "true" in references for Event/e and Pod/p"#
    ));
}

#[test]
fn finalizers_are_checked() {
    let wrong = create(value!({
        "name": "a", "namespace": "b", "finalizers": ["orphan", "foregroundDeletion"],
    }));
    assert_eq!(
        wrong,
        [
            r#"metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: finalizer orphan and foregroundDeletion cannot be both set"#
        ]
    );
    let old = value!({"name": "a", "deletionTimestamp": "2020-01-01T00:00:00Z", "finalizers": ["x/a", "x/b"]});
    let new = |finalizers: Value| {
        let mut new = old.clone();
        new.make_object().insert("finalizers", finalizers);
        new
    };
    assert_eq!(
        update(new(value!(["x/b"])), old.clone()),
        Vec::<String>::new()
    );
    assert_eq!(
        update(new(value!(["x/d", "x/a", "x/c"])), old.clone()),
        [
            r#"metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"x/c", "x/d"}"#
        ]
    );
}

#[test]
fn identity_and_deletion_cannot_change() {
    let old = value!({
        "name": "a", "namespace": "b", "uid": "1", "generation": 2,
        "creationTimestamp": "2020-01-01T00:00:00Z",
        "deletionTimestamp": "2020-01-02T00:00:00Z",
        "deletionGracePeriodSeconds": 0,
    });
    let new = value!({
        "name": "c", "uid": "2", "generation": 1, "creationTimestamp": null,
        "deletionGracePeriodSeconds": 5,
    });
    assert_eq!(
        update(new, old),
        [
            "metadata.generation: Invalid value: 1: must not be decremented",
            r#"metadata.name: Invalid value: "c": field is immutable"#,
            r#"metadata.namespace: Invalid value: "": field is immutable"#,
            r#"metadata.uid: Invalid value: "2": field is immutable"#,
            "metadata.creationTimestamp: Invalid value: null: field is immutable",
            "metadata.deletionTimestamp: Invalid value: null: field is immutable",
            "metadata.deletionGracePeriodSeconds: Invalid value: 5: field is immutable",
        ]
    );
}

#[test]
fn managed_fields_entries_are_checked() {
    let wrong = create(value!({
        "name": "a", "namespace": "b",
        "managedFields": [{"manager": "a\tb", "operation": "Do", "fieldsType": "V9", "subresource": ("s".repeat(257))}],
    }));
    assert_eq!(
        wrong,
        [
            r#"metadata.managedFields[0].operation: Invalid value: "Do": must be `Apply` or `Update`"#,
            r#"metadata.managedFields[0].fieldsType: Invalid value: "V9": must be `FieldsV1`"#,
            r#"metadata.managedFields[0].manager: Invalid value: "a\tb": invalid character U+0009 (at position 1)"#,
            "metadata.managedFields[0].subresource: Too long: may not be more than 256 bytes",
        ]
    );
}
