//! Tests of the encrypting backend.

#![allow(clippy::unwrap_used)]
use super::*;
use crate::rules::tests::rules;
use bareboat_storage::MemoryBackend;

const PLANTED: &str =
    r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x"},"data":{"planted":1}}"#;

fn record(revision: u64, resource: &str, key: &str) -> Record {
    Record {
        revision,
        prev: 0,
        cluster: "".into(),
        resource: resource.into(),
        key: key.into(),
        actor: None,
        value: Some(Value::new(PLANTED.into())),
    }
}

fn stored(inner: &Arc<MemoryBackend>) -> Vec<Record> {
    let mut all = Vec::new();
    inner.load(0, &mut |record| all.push(record)).unwrap();
    all
}

fn bytes(record: &Record) -> Bytes {
    record.value.as_ref().unwrap().to_bytes()
}

fn loaded(backend: &EncryptedBackend) -> Result<Vec<Record>, BackendError> {
    let mut all = Vec::new();
    backend.load(0, &mut |record| all.push(record))?;
    Ok(all)
}

fn append(backend: &dyn Backend, records: &[Record]) {
    let batch = Batch {
        id: 1,
        writer: 1,
        records: records.to_vec(),
    };
    let appended = backend.append(&backend.mark().unwrap(), &batch).unwrap();
    assert!(matches!(appended, Appended::Done(_)));
}

fn filled() -> (Arc<MemoryBackend>, EncryptedBackend) {
    let inner = Arc::new(MemoryBackend::new());
    let backend = EncryptedBackend::new(inner.clone(), rules(&[("aesgcm", "a", 1)], false));
    let first = inner.mark().unwrap().last + 1;
    let batch = [
        record(first, "core/secrets", "n/x"),
        record(first + 1, "core/pods", "n/x"),
        record(first + 2, "core/secrets", "n/y"),
    ];
    append(&backend, &batch);
    (inner, backend)
}

#[test]
fn chosen_resources_are_ciphertext_below_and_plain_above() {
    let (inner, backend) = filled();
    let below = stored(&inner);
    assert!(bytes(&below[0]).starts_with(b"bareboat:enc:aesgcm:v1:a:"));
    assert_eq!(bytes(&below[1]), PLANTED);
    for record in loaded(&backend).unwrap() {
        assert_eq!(bytes(&record), PLANTED);
    }
    let last = backend.mark().unwrap().last;
    let limit = PageLimit {
        changes: 100,
        bytes: 1 << 20,
    };
    let page = backend
        .read_since(None, last - 3, last, limit, &Stop::default())
        .unwrap();
    assert_eq!(page.changes.len(), 3);
    assert!(
        page.changes
            .iter()
            .all(|change| bytes(&change.record) == PLANTED)
    );
    let mut seen = 0;
    backend
        .read_at(
            "core/secrets",
            last,
            &mut |record| {
                assert_eq!(bytes(&record), PLANTED);
                seen += 1;
            },
            &Stop::default(),
        )
        .unwrap();
    assert_eq!(seen, 2);
}

#[test]
fn a_wrong_or_missing_key_refuses_to_load_and_changes_nothing() {
    let (inner, _) = filled();
    let before = stored(&inner);
    for other in [
        rules(&[("aesgcm", "a", 2)], true),
        rules(&[("aesgcm", "b", 1)], true),
        Rules::none(),
    ] {
        let backend = EncryptedBackend::new(inner.clone(), other);
        let error = loaded(&backend).unwrap_err();
        let BackendError::Failed(source) = error else {
            panic!("{error}");
        };
        let words = source.to_string();
        assert!(
            words.contains("(core/secrets n/x) cannot be read"),
            "{words}"
        );
    }
    assert_eq!(stored(&inner), before);
}

#[test]
fn swapped_ciphertexts_are_refused() {
    let (inner, _) = filled();
    let below = stored(&inner);
    let swapped = Arc::new(MemoryBackend::new());
    let mut moved = below[0].clone();
    moved.value = below[2].value.clone();
    append(&*swapped, &[moved]);
    let backend = EncryptedBackend::new(swapped, rules(&[("aesgcm", "a", 1)], false));
    assert!(loaded(&backend).is_err());
}

#[test]
fn rules_are_replaced_only_by_rules_that_read_what_is_stored() {
    let (inner, backend) = filled();
    for bad in [
        rules(&[("aesgcm", "a", 2)], true),
        rules(&[("secretbox", "b", 1)], true),
    ] {
        assert!(backend.replace_rules(bad).is_err());
    }
    let both = rules(&[("secretbox", "b", 1), ("aesgcm", "a", 1)], false);
    backend.replace_rules(both).unwrap();
    let next = inner.mark().unwrap().last + 1;
    append(&backend, &[record(next, "core/secrets", "n/z")]);
    let below = stored(&inner);
    assert!(bytes(below.last().unwrap()).starts_with(b"bareboat:enc:secretbox:v1:b:"));
    assert_eq!(loaded(&backend).unwrap().len(), 4);
    // Values that the new key encrypted must also stay readable.
    assert!(
        backend
            .replace_rules(rules(&[("aesgcm", "a", 1)], true))
            .is_err()
    );
}

#[test]
fn what_other_stores_wrote_is_opened() {
    let log = Arc::new(MemoryBackend::new().shared());
    let stores = [0, 1].map(|_| {
        let inner: Arc<dyn Backend> = log.clone();
        EncryptedBackend::new(inner, rules(&[("aesgcm", "a", 1)], false))
    });
    let base = log.mark().unwrap();
    append(&stores[0], &[record(base.last + 1, "core/secrets", "n/x")]);
    let plain = |tail: Tail| {
        let Tail::Batches { batches, .. } = tail else {
            panic!("{tail:?}");
        };
        assert_eq!(bytes(&batches[0][0]), PLANTED);
    };
    plain(stores[1].tail(&base).unwrap());
    let late = Batch {
        id: 2,
        writer: 2,
        records: vec![record(base.last + 1, "core/secrets", "n/y")],
    };
    match stores[1].append(&base, &late).unwrap() {
        Appended::Moved(tail) => plain(tail),
        done => panic!("{done:?}"),
    }
    let held = stores[1].append_held(&base, &mut |tail| {
        plain(tail);
        let end = log.mark().unwrap();
        let mut again = late.clone();
        again.records[0].revision = end.last + 1;
        Some((end, again))
    });
    assert!(matches!(held.unwrap(), Some(Appended::Done(_))));
    for record in stored(&log) {
        assert!(bytes(&record).starts_with(b"bareboat:enc:aesgcm:v1:a:"));
    }
}

#[test]
fn objects_with_an_old_key_are_found() {
    let (_, backend) = filled();
    assert_eq!(backend.outdated().unwrap(), (3, Vec::new()));
    let both = rules(&[("aesgcm", "b", 2), ("aesgcm", "a", 1)], false);
    backend.replace_rules(both).unwrap();
    let (objects, outdated) = backend.outdated().unwrap();
    let keys: Vec<&str> = outdated.iter().map(|one| &*one.key).collect();
    assert_eq!((objects, keys), (3, vec!["n/x", "n/y"]));
    assert!(outdated.iter().all(|one| &*one.resource == "core/secrets"));
}
