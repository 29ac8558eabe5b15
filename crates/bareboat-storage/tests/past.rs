//! Tests of old lists and old watches: their memory, and that other callers do not wait for them.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bareboat_storage::{
    Backend, BackendError, ChangePage, Expect, Mark, MemoryBackend, PageLimit, Record, Resource,
    SnapshotError, Stop, Store, StoreOptions, Value, WatchSpec, Write,
};

/// An engine whose values are copies, like those of a file, and which counts its reads.
struct Copies {
    log: MemoryBackend,
    states: AtomicUsize,
    largest_page: AtomicUsize,
}

impl Copies {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            log: MemoryBackend::new(),
            states: AtomicUsize::new(0),
            largest_page: AtomicUsize::new(0),
        })
    }
}

fn copy(record: Record) -> Record {
    Record {
        value: record.value.map(|value| Value::new(value.to_bytes())),
        ..record
    }
}

impl Backend for Copies {
    bareboat_storage::delegate_backend!(log: append compact compacted mark);

    fn load(&self, after: u64, visit: &mut dyn FnMut(Record)) -> Result<Mark, BackendError> {
        self.log.load(after, &mut |record| visit(copy(record)))
    }

    fn read_since(
        &self,
        resource: Option<&str>,
        after: u64,
        upto: u64,
        limit: PageLimit,
        stop: &Stop,
    ) -> Result<ChangePage, BackendError> {
        let mut page = self.log.read_since(resource, after, upto, limit, stop)?;
        self.largest_page.fetch_max(page.bytes, Ordering::SeqCst);
        for change in &mut page.changes {
            change.record = copy(change.record.clone());
            change.previous = change.previous.take().map(copy);
        }
        Ok(page)
    }

    fn read_at(
        &self,
        resource: &str,
        revision: u64,
        visit: &mut dyn FnMut(Record),
        stop: &Stop,
    ) -> Result<(), BackendError> {
        self.states.fetch_add(1, Ordering::SeqCst);
        let visit = &mut |record| visit(copy(record));
        self.log.read_at(resource, revision, visit, stop)
    }
}

fn object(size: usize) -> bytes::Bytes {
    let padding = "x".repeat(size);
    format!(r#"{{"apiVersion":"v1","kind":"X","metadata":{{"name":"x"}},"p":"{padding}"}}"#).into()
}

async fn put(store: &Store, resource: &Arc<Resource>, key: &str, size: usize) -> u64 {
    let write = Write::create(resource, key, object(size)).expecting(Expect::Any);
    store.commit(write).await.unwrap().revision
}

async fn remove(store: &Store, resource: &Arc<Resource>, key: &str) {
    let found = resource.get(key).unwrap();
    let write = Write::delete(resource, &found);
    store.commit(write).await.unwrap();
}

/// Returns options under which memory keeps almost no history, so that reads go to the log.
fn forgetful() -> StoreOptions {
    StoreOptions {
        ring_bytes: 1,
        ring_floor_bytes: 0,
        ring_preload: 0,
        ..StoreOptions::default()
    }
}

#[tokio::test]
async fn lists_of_the_same_past_state_share_one_read_and_one_copy() {
    let log = Copies::new();
    let store = Store::open(log.clone(), forgetful()).unwrap();
    let resource = store.resource("core/configmaps");
    for n in 0..10 {
        put(&store, &resource, &format!("ns/{n}"), 10_000).await;
    }
    let past = store.visible();
    // Half of the entries change; the others are still live and shared with the present state.
    for n in 0..5 {
        put(&store, &resource, &format!("ns/{n}"), 20_000).await;
    }
    put(&store, &resource, "ns/x", 1).await;
    let lists: Vec<_> = (0..20)
        .map(|_| {
            let resource = resource.clone();
            tokio::spawn(async move { resource.snapshot_at(past).await.unwrap() })
        })
        .collect();
    let mut snapshots = Vec::new();
    for list in lists {
        snapshots.push(list.await.unwrap());
    }
    // A later request shares the state with the snapshots that still exist.
    snapshots.push(resource.snapshot_at(past).await.unwrap());
    assert_eq!(log.states.load(Ordering::SeqCst), 1);
    assert!(snapshots.iter().all(|snapshot| snapshot.len() == 10));
    let held = store.stats().past_bytes;
    assert!((50_000..70_000).contains(&held), "{held}");
    // Another revision shares the unchanged entries.
    let other = resource.snapshot_at(past + 1).await.unwrap();
    assert_eq!(log.states.load(Ordering::SeqCst), 2);
    assert_eq!(store.stats().past_bytes, held);
    drop((snapshots, other));
    assert_eq!(store.stats().past_bytes, 0);
}

#[tokio::test]
async fn past_states_are_refused_while_too_many_bytes_are_held() {
    let options = StoreOptions {
        past_bytes: 140_000,
        ..forgetful()
    };
    let store = Store::open(Copies::new(), options).unwrap();
    let resource = store.resource("core/configmaps");
    let mut past = Vec::new();
    for round in 0..5 {
        for n in 0..5 {
            put(&store, &resource, &format!("ns/{n}"), 10_000 + round).await;
        }
        past.push(store.visible());
    }
    let mut held = Vec::new();
    for revision in &past[..3] {
        held.push(resource.snapshot_at(*revision).await.unwrap());
    }
    let refused = resource.snapshot_at(past[3]).await;
    assert!(matches!(refused, Err(SnapshotError::Busy)));
    assert!(resource.snapshot_at(past[4]).await.is_ok(), "the present");
    held.clear();
    assert!(resource.snapshot_at(past[3]).await.is_ok());
}

#[tokio::test]
async fn a_long_undo_is_exact_and_shared() {
    let store = Store::open(Arc::new(MemoryBackend::new()), StoreOptions::default()).unwrap();
    let resource = store.resource("core/configmaps");
    let mut sizes = std::collections::BTreeMap::new();
    let mut past = Vec::new();
    for n in 0..3000_usize {
        let key = format!("ns/{}", n * 7 % 40);
        let revision = put(&store, &resource, &key, n % 100).await;
        sizes.insert(key, n % 100);
        if n % 500 == 0 {
            past.push((revision, sizes.clone()));
        }
    }
    for (revision, sizes) in past {
        let (one, other) = tokio::join!(
            resource.snapshot_at(revision),
            resource.snapshot_at(revision)
        );
        for snapshot in [one.unwrap(), other.unwrap()] {
            let found = snapshot.range("", None);
            let found = found.map(|e| (e.key().to_owned(), e.persisted().1.len()));
            let found: Vec<_> = found.collect();
            let empty = object(0);
            let expected = sizes.iter().map(|(key, size)| {
                let at = bareboat_storage::Layout::locate(&empty)
                    .unwrap()
                    .metadata_at;
                (key.clone(), empty.len() - at as usize + size)
            });
            assert_eq!(found, expected.collect::<Vec<_>>(), "as of {revision}");
        }
    }
}

#[tokio::test]
async fn pages_of_a_resumed_watch_are_bounded_in_bytes_and_shared() {
    let log = Copies::new();
    let store = Store::open(log.clone(), forgetful()).unwrap();
    let resource = store.resource("core/configmaps");
    let start = store.visible();
    const EVENTS: usize = 60;
    for n in 0..EVENTS {
        put(&store, &resource, "ns/x", 500_000 + n).await;
    }
    let mut watchers = Vec::new();
    for _ in 0..40 {
        let mut watcher = resource.watch(WatchSpec::all(start)).unwrap();
        let first = watcher.next_batch(1).await.unwrap();
        watchers.push((watcher, first));
    }
    // All watchers are at the same position: they share one page, of one change and the next.
    let held = store.stats().past_bytes;
    assert!(held < 4_000_000, "{held}");
    let largest = log.largest_page.load(Ordering::SeqCst);
    assert!(largest < 2_000_000, "{largest}");
    let (mut watcher, first) = watchers.pop().unwrap();
    let mut seen = first.len();
    while seen < EVENTS {
        seen += watcher.next_batch(100).await.unwrap().len();
    }
    assert_eq!(seen, EVENTS);
}

#[tokio::test]
async fn pins_are_limited_by_the_bytes_only_they_keep_alive() {
    let options = StoreOptions {
        pin_bytes: 1_000_000,
        ..StoreOptions::default()
    };
    let store = Store::open(Arc::new(MemoryBackend::new()), options).unwrap();
    let resource = store.resource("core/configmaps");
    let mut pinned = Vec::new();
    for round in 0..20 {
        for n in 0..10 {
            put(&store, &resource, &format!("ns/{n}"), 10_000 + round).await;
        }
        let snapshot = resource.snapshot();
        resource.pin(&snapshot);
        // Nothing has changed since: pinning the state repeatedly costs nothing.
        assert!(store.stats().pinned_bytes <= 1_000_000);
        pinned.push(snapshot.revision());
    }
    // Each round replaced 100 KB which the previous pin holds.
    let kept: Vec<bool> = (pinned.iter())
        .map(|revision| resource.pinned(*revision).is_some())
        .collect();
    assert!((8..=11).contains(&kept.iter().filter(|kept| **kept).count()));
    assert!(kept.is_sorted(), "the oldest go first: {kept:?}");
    // Another resource does not lose its pins because of this resource.
    let other = store.resource("core/secrets");
    put(&store, &other, "ns/x", 10).await;
    other.pin(&other.snapshot());
    let quiet = other.snapshot().revision();
    for n in 0..10 {
        put(&store, &resource, &format!("ns/{n}"), 30_000).await;
    }
    assert!(other.pinned(quiet).is_some());
    assert!(store.stats().pinned_bytes <= 1_000_000);
}

#[tokio::test]
async fn a_late_pin_is_charged_for_entries_replaced_before() {
    let store = Store::open(Arc::new(MemoryBackend::new()), StoreOptions::default()).unwrap();
    let resource = store.resource("core/configmaps");
    put(&store, &resource, "ns/x", 10_000).await;
    let snapshot = resource.snapshot();
    put(&store, &resource, "ns/x", 1).await;
    resource.pin(&snapshot);
    let held = store.stats().pinned_bytes;
    assert!((10_000..13_000).contains(&held), "{held}");
    let past = resource.snapshot_at(snapshot.revision() + 1).await.unwrap();
    put(&store, &resource, "ns/x", 2).await;
    assert!(past.get("ns/x").is_some());
    resource.pin(&past);
    assert!(store.stats().pinned_bytes >= held);
}

#[tokio::test]
async fn pins_expire_without_further_requests() {
    let options = StoreOptions {
        pin_for: Duration::from_millis(20),
        ..StoreOptions::default()
    };
    let store = Store::open(Arc::new(MemoryBackend::new()), options).unwrap();
    let resource = store.resource("core/configmaps");
    put(&store, &resource, "ns/x", 10_000).await;
    resource.pin(&resource.snapshot());
    put(&store, &resource, "ns/x", 1).await;
    let wait = async {
        while store.stats().pinned_bytes > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), wait)
        .await
        .expect("the pin expires");
}

#[tokio::test]
async fn empty_unused_resources_are_removed_with_their_history() {
    let store = Store::open(Arc::new(MemoryBackend::new()), StoreOptions::default()).unwrap();
    let start = store.visible();
    for n in 0..100 {
        let resource = store.resource(&format!("example.com/{n}"));
        put(&store, &resource, "ns/x", 10).await;
        remove(&store, &resource, "ns/x").await;
    }
    let (kept, watched) = (store.resource("a/kept"), store.resource("a/watched"));
    put(&store, &kept, "ns/x", 10).await;
    drop(kept);
    let watcher = watched.watch(WatchSpec::all(start)).unwrap();
    drop(watched);
    assert_eq!(store.resources().len(), 102);
    // The history of the removed resources can still be watched.
    let mut late = (store.resource("example.com/7"))
        .watch(WatchSpec::all(start))
        .unwrap();
    assert_eq!(late.next_batch(9).await.unwrap().len(), 2);
    drop(late);
    store.compact(store.visible()).await.unwrap();
    let mut names: Vec<_> = store
        .resources()
        .iter()
        .map(|r| r.name().to_owned())
        .collect();
    names.sort();
    assert_eq!(names, ["a/kept", "a/watched"]);
    // A resource that is created again gets a new number.
    let again = store.resource("example.com/7");
    let revision = put(&store, &again, "ns/x", 10).await;
    let mut watcher_again = again.watch(WatchSpec::all(store.floor())).unwrap();
    assert_eq!(watcher_again.next_batch(9).await.unwrap()[0].rev, revision);
    assert_eq!(again.len(), 1);
    drop(watcher);
}

#[tokio::test]
async fn a_restarted_store_can_read_history_it_did_not_load() {
    let log = Copies::new();
    let options = || StoreOptions {
        ring_preload: 10,
        ..StoreOptions::default()
    };
    let store = Store::open(log.clone(), options()).unwrap();
    let start = store.visible();
    let (gone, busy) = (store.resource("a/gone"), store.resource("a/busy"));
    let created = put(&store, &gone, "ns/x", 10).await;
    remove(&store, &gone, "ns/x").await;
    for n in 0..100 {
        put(&store, &busy, &format!("ns/{}", n % 3), n).await;
    }
    store.close().await;
    let store = Store::open(log, options()).unwrap();
    assert_eq!(store.resource("a/busy").len(), 3);
    let gone = store.resource("a/gone");
    assert!(gone.is_empty());
    // Nothing of this resource was loaded, but its past can be read.
    let then = gone.snapshot_at(created).await.unwrap();
    assert!(then.get("ns/x").is_some());
    let mut watcher = gone.watch(WatchSpec::all(start)).unwrap();
    let mut seen = 0;
    while seen < 2 {
        seen += watcher.next_batch(9).await.unwrap().len();
    }
}

#[tokio::test]
async fn the_ring_counts_replaced_states() {
    let options = StoreOptions {
        ring_bytes: 200_000,
        ring_floor_bytes: 0,
        ..StoreOptions::default()
    };
    let store = Store::open(Arc::new(MemoryBackend::new()), options).unwrap();
    let resource = store.resource("core/configmaps");
    for n in 0..100 {
        put(&store, &resource, &format!("ns/{n}"), 50_000).await;
    }
    // All objects shrink: the ring keeps the large states only up to its limit.
    for n in 0..100 {
        put(&store, &resource, &format!("ns/{n}"), 1).await;
    }
    let stats = resource.stats();
    assert!(stats.events <= 4, "{stats:?}");
}
