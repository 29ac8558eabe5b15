//! Tests of paths, stored values and rows.

use super::*;

#[test]
fn paths_are_read_back() {
    let places = [
        ("", "core/configmaps", "a/b", "o/core/configmaps/a/b"),
        ("", "core/namespaces", "a", "o/core/namespaces/a"),
        ("", "odd", "a/b/c", "o/%/odd/a/b/c"),
        ("", "a/b/c", "k", "o/a/b%2Fc/k"),
        ("", "50%/x", "k%2F", "o/50%25/x/k%2F"),
        ("", "%/x", "", "o/%25/x/"),
        ("team-a", "core/pods", "a/b", "c/team-a/core/pods/a/b"),
        ("a/b", "x/y", "k", "c/a%2Fb/x/y/k"),
    ];
    for (cluster, resource, key, expected) in places {
        let made = path(cluster, resource, key);
        assert_eq!(made, expected);
        let (c, r, k) = place(&made).expect("a path of an object");
        assert_eq!((&*c, &*r, &*k), (cluster, resource, key));
    }
    for bad in ["", "t", "b/1", "o/x", "o/x/y", "c/x/y/z"] {
        assert!(place(bad).is_none(), "{bad}");
    }
}

fn a_record(revision: u64, key: &str, value: Option<&'static [u8]>) -> Record {
    Record {
        revision,
        prev: 3,
        cluster: "".into(),
        resource: "core/secrets".into(),
        key: key.into(),
        actor: Some("a \"quote\"\n".into()),
        value: value.map(|value| Value::new(Bytes::from_static(value))),
    }
}

#[test]
fn stored_values_are_read_back() {
    for bytes in [&b"{}"[..], b"", b"\n\n", b"k8s:enc:\x00\n\xff"] {
        let expected = a_record(7, "a/b", Some(bytes));
        let value = expected.value.clone().expect("a value");
        let stored = Bytes::from(stored(&expected, &value));
        let (place, key) = (path("", "core/secrets", "a/b"), "a/b");
        let found = record(super::place(&place).expect("a path"), &stored);
        assert_eq!(found, Some(expected), "{key}");
    }
    assert!(opened(&Bytes::from_static(b"{}")).is_none());
}

#[test]
fn rows_know_what_is_replaced_within_their_batch() {
    let records = [
        a_record(8, "a", Some(b"1")),
        a_record(9, "b", Some(b"2")),
        a_record(10, "a", None),
        a_record(11, "a", Some(b"3")),
    ];
    let end = Mark {
        last: 11,
        epoch: 2,
        digest: Digest([9; 16]),
    };
    let row = Row::new(&records, 5, 6, &end, 1);
    let inner: Vec<bool> = row.records.iter().map(|item| item.inner).collect();
    assert_eq!(inner, [true, false, true, false]);
    assert!(row.records[2].deleted && row.records[2].actor.is_some());
    let read: Row = serde_json::from_slice(&json(&row)).expect("a row");
    assert_eq!((read.first, read.last, read.end()), (8, 11, Some(end)));
    assert!(read.is(5) && read.is_by(6) && !read.is(6));
}

#[test]
fn the_end_of_the_log_is_part_of_the_format() {
    let end = Mark {
        last: 12,
        epoch: 3,
        digest: Digest([0xab; 16]),
    };
    let text = mark_text(&end);
    let expected = r#"{"last":12,"epoch":3,"digest":"abababababababababababababababab"}"#;
    assert_eq!(text, expected);
    assert_eq!(mark(text.as_bytes()), Some(end));
}
