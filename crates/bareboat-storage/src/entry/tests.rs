//! Tests of entries: bytes with and without a resourceVersion.

use std::sync::Arc;

use super::Entry;
use crate::value::Value;

const STORED: &str =
    r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x","uid":"u"},"spec":{}}"#;

fn entry(revision: u64) -> Entry {
    Entry::new("ns/x".into(), revision, STORED.as_bytes(), 7).expect("well formed")
}

#[test]
fn the_resource_version_is_inserted_and_removed_exactly() {
    for revision in [1, 9, 10, 12_345_678_901_234_567, u64::MAX] {
        let entry = entry(revision);
        let wire = STORED.replace(
            r#"{"name""#,
            &format!(r#"{{"resourceVersion":"{revision}","name""#),
        );
        assert_eq!(entry.json(), &wire);
        let (head, tail) = entry.persisted();
        assert_eq!([head, tail].concat(), STORED.as_bytes());
        assert!(entry.persisted_eq(STORED.as_bytes()));
        assert!(!entry.persisted_eq(&STORED.as_bytes()[1..]));
        assert!(!entry.persisted_eq(wire.as_bytes()));
        let value = Value::of(Arc::new(entry));
        assert_eq!(value, Value::new(STORED.into()));
        assert_eq!(value.len(), STORED.len());
    }
}

#[test]
fn another_revision_changes_only_the_resource_version() {
    for (from, to) in [(5, 5), (5, 123), (123, 5)] {
        assert_eq!(&entry(from).json_at_revision(to), entry(to).json());
    }
}

#[test]
fn a_list_item_has_no_type_meta() {
    let entry = entry(3);
    let (open, rest) = entry.without_type_meta();
    let item = [open, rest].concat();
    let expected = r#"{"metadata":{"resourceVersion":"3","name":"x","uid":"u"},"spec":{}}"#;
    assert_eq!(item, expected.as_bytes());
}

#[test]
fn the_key_has_a_namespace_and_a_name_or_only_a_name() {
    assert_eq!((entry(1).namespace(), entry(1).name()), (Some("ns"), "x"));
    let cluster = Entry::new("x".into(), 1, STORED.as_bytes(), 0).expect("well formed");
    assert_eq!((cluster.namespace(), cluster.name()), (None, "x"));
    assert_eq!(&*entry(1).facets().uid, "u");
    assert_eq!(entry(1).shape(), 7);
}

#[test]
fn an_entry_stays_small() {
    assert!(size_of::<Entry>() <= 112, "{}", size_of::<Entry>());
}
