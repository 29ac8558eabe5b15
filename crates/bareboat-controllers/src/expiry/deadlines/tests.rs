//! The order and the ages of objects that expire.

use super::*;
use bareboat_storage::{Expect, MemoryBackend, Store, StoreOptions, Write, WriteOp};

const TTL: Duration = Duration::from_secs(3600);

fn object(name: &str, time: &str) -> Vec<u8> {
    format!(
        r#"{{"apiVersion":"v1","kind":"Event","metadata":{{"creationTimestamp":"2020-01-01T00:00:00Z","managedFields":[{{"time":"{time}"}}],"name":"{name}"}}}}"#
    )
    .into_bytes()
}

fn store() -> Store {
    Store::open(Arc::new(MemoryBackend::new()), StoreOptions::default()).expect("the store opens")
}

async fn put(store: &Store, name: &str, time: &str) -> Arc<Entry> {
    let resource = store.resource("core/events");
    let value = object(name, time).into();
    let write = Write {
        resource: resource.clone(),
        key: name.into(),
        expect: Expect::Any,
        change: WriteOp::Put { value, shape: 0 },
        actor: None,
        depends_on: Vec::new(),
        part_of: None,
    };
    store.commit(write).await.expect("the write succeeds");
    resource.get(name).expect("the object exists")
}

fn names(entries: &[Arc<Entry>]) -> Vec<&str> {
    entries.iter().map(|entry| entry.key()).collect()
}

#[test]
fn the_age_counts_from_the_last_change() {
    let entry = |time: &str| Entry::new("a".into(), 1, &object("a", time), 0).expect("an object");
    let difference = age(&entry("yesterday")).abs_diff(age(&entry("2020-01-02T00:00:00Z")));
    assert!(difference.abs_diff(Duration::from_secs(86_400)) < Duration::from_secs(600));
    assert_eq!(age(&entry("2999-01-01T00:00:00Z")), Duration::ZERO);
}

#[test]
fn the_age_is_never_overestimated() {
    let changed = jiff::Timestamp::now();
    let second = changed.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let entry = Entry::new("a".into(), 1, &object("a", &second), 0).expect("an object");
    let estimated = age(&entry);
    let passed = jiff::Timestamp::now().duration_since(changed);
    assert!(
        estimated <= Duration::try_from(passed).expect("time passes"),
        "{estimated:?}"
    );
}

#[tokio::test]
async fn objects_expire_in_the_order_of_their_last_changes() {
    let store = store();
    for (name, time) in [
        ("a", "2020-03-01"),
        ("b", "2020-02-01"),
        ("c", "2020-01-02"),
    ] {
        put(&store, name, &format!("{time}T00:00:00Z")).await;
    }
    let now = Instant::now();
    let resource = store.resource("core/events");
    let mut deadlines = Deadlines::of_all(resource, TTL, |entry| match entry.key() {
        "a" => Duration::from_secs(10),
        "b" => Duration::from_secs(30),
        _ => Duration::from_secs(20),
    });
    assert!(deadlines.pop_due(now, 9).is_empty());
    let changed = put(&store, "c", "2020-04-01T00:00:00Z").await;
    assert_eq!(
        deadlines.push(&changed, now),
        None,
        "the list was not empty"
    );
    assert_eq!(names(&deadlines.pop_due(now + TTL * 2, 1)), ["b"]);
    assert_eq!(names(&deadlines.pop_due(now + TTL * 2, 9)), ["a", "c"]);
    assert_eq!(deadlines.next(), None);
    assert!(deadlines.push(&changed, now).is_some());
}

#[tokio::test]
async fn an_object_that_changes_often_has_few_deadlines() {
    let store = store();
    let mut deadlines = Deadlines::of_all(store.resource("core/events"), TTL, age);
    for _ in 0..1000 {
        let changed = put(&store, "busy", "2020-01-01T00:00:00Z").await;
        deadlines.push(&changed, Instant::now());
        assert!(deadlines.list.len() <= TOLERATED + 3);
    }
    assert_eq!(
        names(&deadlines.pop_due(Instant::now() + TTL * 2, 9)),
        ["busy"]
    );
}
