//! Tests of the metadata of objects and of embedded resources.

use super::*;
use crate::testing::{schema, yaml};

const EMBEDDING: &str = "{type: object, properties: {t: {type: object, \
    x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}}}";

#[test]
fn unknown_members_of_metadata_are_dropped_and_reported() {
    let schema = schema(EMBEDDING);
    let mut object = yaml(
        "{apiVersion: a/v1, kind: K, metadata: {name: m, bogus: 1, labels: {}, \
         ownerReferences: [{kind: O, name: o, apiVersion: v1, uid: u, what: 1}]}, \
         t: {apiVersion: v1, kind: T, metadata: {name: t, strange: true}}}",
    );
    let mut unknown = Vec::new();
    let done = schema.coerce(&mut object, Source::Request, Some(&mut unknown));
    assert_eq!(done, Ok(()));
    assert_eq!(
        unknown,
        [
            "metadata.bogus",
            "metadata.ownerReferences[0].what",
            "t.metadata.strange"
        ]
    );
    assert_eq!(
        object,
        yaml(
            "{apiVersion: a/v1, kind: K, metadata: {name: m, \
             ownerReferences: [{kind: O, name: o, apiVersion: v1, uid: u}]}, \
             t: {apiVersion: v1, kind: T, metadata: {name: t}}}"
        )
    );
}

#[test]
fn wrong_types_are_refused_in_requests_and_dropped_from_storage() {
    for (meta, problem) in [
        (
            "{labels: {a: 1}}",
            "metadata.labels.a: expected a string, found integer",
        ),
        (
            "{labels: x}",
            "metadata.labels: expected a map of strings, found string",
        ),
        (
            "{finalizers: x}",
            "metadata.finalizers: expected a list of strings, found string",
        ),
        (
            "{creationTimestamp: yesterday}",
            "metadata.creationTimestamp: expected a time as in RFC 3339, found string",
        ),
        (
            "{generation: '1'}",
            "metadata.generation: expected an integer, found string",
        ),
        ("5", "metadata: expected an object, found integer"),
    ] {
        let schema = schema("{type: object}");
        let text = format!("{{apiVersion: a/v1, kind: K, metadata: {meta}}}");
        let mut object = yaml(&text);
        let refused = schema.coerce(&mut object, Source::Request, None);
        assert_eq!(refused.unwrap_err().to_string(), problem);
        let mut object = yaml(&text);
        assert_eq!(schema.coerce(&mut object, Source::Stored, None), Ok(()));
        if meta != "5" {
            assert_eq!(object.get("metadata"), Some(&yaml("{generation: 1}")));
        }
    }
}

#[test]
fn empty_members_are_omitted_and_times_are_normalised() {
    let schema = schema("{type: object}");
    let mut object = yaml(
        "{metadata: {name: '', labels: {}, finalizers: [], generation: 0, creationTimestamp: null, \
         deletionGracePeriodSeconds: 0, deletionTimestamp: '2024-01-01T02:00:00.5+02:00', \
         annotations: {a: null}}}",
    );
    assert_eq!(schema.coerce(&mut object, Source::Request, None), Ok(()));
    assert_eq!(
        object,
        yaml(
            "{metadata: {deletionGracePeriodSeconds: 0, \
             deletionTimestamp: '2024-01-01T00:00:00Z', annotations: {a: ''}}}"
        )
    );
}

#[test]
fn wrong_types_in_embedded_metadata_are_reported_with_the_text_of_go() {
    let schema = schema(EMBEDDING);
    for (resource, problem) in [
        (
            "{metadata: {namespace: 1}}",
            r#"t.metadata: Invalid value: {"namespace":1}: json: cannot unmarshal number into Go struct field ObjectMeta.namespace of type string"#,
        ),
        (
            "{metadata: {labels: {a.b/c: true}}}",
            r#"t.metadata: Invalid value: {"labels":{"a.b/c":true}}: json: cannot unmarshal bool into Go struct field ObjectMeta.labels of type string"#,
        ),
        (
            "{metadata: {finalizers: x}}",
            r#"t.metadata: Invalid value: {"finalizers":"x"}: json: cannot unmarshal string into Go struct field ObjectMeta.finalizers of type []string"#,
        ),
        (
            "{metadata: {ownerReferences: [{name: [1]}]}}",
            r#"t.metadata: Invalid value: {"ownerReferences":[{"name":[1]}]}: json: cannot unmarshal array into Go struct field OwnerReference.ownerReferences.name of type string"#,
        ),
        (
            "{metadata: x}",
            r#"t.metadata: Invalid value: "x": json: cannot unmarshal string into Go value of type v1.ObjectMeta"#,
        ),
        ("{kind: 1}", "t.kind: Invalid value: 1: must be a string"),
    ] {
        let mut object = yaml(&format!(
            "{{apiVersion: a/v1, kind: K, metadata: {{}}, t: {resource}}}"
        ));
        let refused = schema.coerce(&mut object, Source::Request, None);
        assert_eq!(
            refused.map_err(|error| error.to_string()),
            Err(problem.to_owned())
        );
    }
}
