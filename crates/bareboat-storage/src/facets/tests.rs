//! Tests of metadata that is parsed from the bytes of an entry.

use super::Facets;

#[test]
fn the_needed_metadata_is_parsed_and_the_rest_skipped() {
    let facets = Facets::parse(
        br#"{"resourceVersion":"5","annotations":{"a":"{\"x\":[1]}"},"creationTimestamp":"2026-01-01T00:00:00Z",
            "deletionGracePeriodSeconds":30,"deletionTimestamp":"2026-01-02T00:00:00Z","finalizers":["f/one","f/two"],
            "generateName":"web-","generation":4,"labels":{"tier":"g\u00f6ld","app":"web","empty":null},
            "managedFields":[{"fieldsV1":{"f:metadata":{}}}],"name":"web-1","namespace":"ns",
            "ownerReferences":[{"apiVersion":"apps/v1","blockOwnerDeletion":true,"controller":true,"kind":"ReplicaSet",
            "name":"web","uid":"o1"},{"apiVersion":"v1","kind":"Pod","name":"p","uid":"o2"}],"uid":"u1"},"spec":{"#,
    );
    assert_eq!(&*facets.uid, "u1");
    assert_eq!(facets.generate_name.as_deref(), Some("web-"));
    assert_eq!(
        facets.creation_timestamp.as_deref(),
        Some("2026-01-01T00:00:00Z")
    );
    assert_eq!(
        facets.deletion_timestamp.as_deref(),
        Some("2026-01-02T00:00:00Z")
    );
    assert_eq!(facets.deletion_grace_period_seconds, Some(30));
    assert_eq!(facets.generation, 4);
    assert_eq!(facets.label("tier"), Some("göld"));
    assert_eq!(facets.label("empty"), Some(""));
    assert_eq!(facets.label("none"), None);
    assert!(facets.has_finalizer("f/two") && !facets.has_finalizer("f"));
    assert_eq!(facets.owners.len(), 2);
    assert_eq!(facets.controller().map(|owner| &*owner.uid), Some("o1"));
    assert!(facets.owners[0].block_owner_deletion && !facets.owners[1].block_owner_deletion);
}

#[test]
fn absent_null_and_damaged_metadata_is_tolerated() {
    let nothing = Facets::default();
    for metadata in [
        r#"{"name":"x"}"#,
        r#"{"labels":null,"ownerReferences":null,"finalizers":null,"deletionTimestamp":null,"generation":null}"#,
        "",
        "{",
        "[]",
        r#"{"labels":[1]}"#,
    ] {
        assert_eq!(Facets::parse(metadata.as_bytes()), nothing, "{metadata}");
    }
    let deep = format!(r#"{{"managedFields":{}"#, "[".repeat(100_000));
    assert_eq!(Facets::parse(deep.as_bytes()), nothing);
}
