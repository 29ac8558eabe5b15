//! Tests of memory limits, eviction and sharing.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};

use bareboat_storage::{
    CommitError, Expect, Feed, MemoryBackend, Resource, Snapshot, Store, StoreOptions, VariantKey,
    WatchSpec, Watcher, Write,
};

fn object(size: usize) -> bytes::Bytes {
    let padding = "x".repeat(size);
    format!(r#"{{"apiVersion":"v1","kind":"X","metadata":{{"name":"x"}},"p":"{padding}"}}"#).into()
}

fn open(options: StoreOptions) -> Store {
    Store::open(Arc::new(MemoryBackend::new()), options).unwrap()
}

async fn put(store: &Store, resource: &Arc<Resource>, key: &str, size: usize) -> u64 {
    let write = Write::create(resource, key, object(size)).expecting(Expect::Any);
    store.commit(write).await.unwrap().revision
}

#[test]
fn shared_types_are_send_and_sync() {
    fn crosses<T: Send + Sync>() {}
    crosses::<Store>();
    crosses::<Resource>();
    crosses::<Snapshot>();
    crosses::<Watcher>();
    crosses::<Feed>();
}

#[tokio::test]
async fn a_frame_is_built_once_and_evicted_by_later_events() {
    let options = StoreOptions {
        frame_bytes: 1000,
        ..StoreOptions::default()
    };
    let store = open(options);
    let resource = store.resource("core/configmaps");
    let after = store.visible();
    let mut watchers = [0, 1].map(|_| resource.watch(WatchSpec::all(after)).unwrap());
    put(&store, &resource, "x", 10).await;
    let key = VariantKey { form: 1, shape: 2 };
    let built = AtomicUsize::new(0);
    let build = || {
        built.fetch_add(1, Ordering::Relaxed);
        bytes::Bytes::from(vec![b'f'; 600])
    };
    let mut first = None;
    for watcher in &mut watchers {
        let events = watcher.next_batch(9).await.unwrap();
        assert_eq!(events[0].frame(key, build).len(), 600);
        first = Some(events[0].clone());
    }
    assert_eq!(built.load(Ordering::Relaxed), 1);
    // Another 600 bytes exceed the limit; the next batch evicts the older frames.
    put(&store, &resource, "x", 11).await;
    watchers[0].next_batch(9).await.unwrap()[0].frame(key, build);
    put(&store, &resource, "x", 12).await;
    first.unwrap().frame(key, build);
    assert_eq!(built.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn frames_beyond_the_limit_are_not_kept() {
    let options = StoreOptions {
        frame_bytes: 1000,
        ..StoreOptions::default()
    };
    let store = open(options);
    let resource = store.resource("core/configmaps");
    let mut watcher = resource.watch(WatchSpec::all(store.visible())).unwrap();
    for n in 0..5 {
        put(&store, &resource, "x", n).await;
    }
    let mut events = Vec::new();
    while events.len() < 5 {
        events.extend(watcher.next_batch(9).await.unwrap());
    }
    let built = AtomicUsize::new(0);
    // Without further writes nothing evicts frames: they must not accumulate.
    for event in events.iter().chain(&events) {
        event.frame(VariantKey { form: 1, shape: 2 }, || {
            built.fetch_add(1, Ordering::Relaxed);
            vec![b'f'; 600].into()
        });
    }
    assert_eq!(built.load(Ordering::Relaxed), 2 + 3 * 2, "two are kept");
}

#[tokio::test]
async fn a_busy_resource_does_not_evict_the_minimum_of_a_quiet_one() {
    let options = StoreOptions {
        ring_bytes: 64 << 10,
        ring_floor_bytes: 8 << 10,
        ..StoreOptions::default()
    };
    let store = open(options);
    let (busy, quiet) = (store.resource("a/busy"), store.resource("a/quiet"));
    for n in 0..50 {
        put(&store, &quiet, &format!("{n}"), 1000).await;
    }
    for n in 0..500 {
        put(&store, &busy, &format!("{n}"), 1000).await;
    }
    let (busy, quiet) = (busy.stats(), quiet.stats());
    assert!(
        (48 << 10..=64 << 10).contains(&busy.event_bytes),
        "{busy:?}"
    );
    assert!(
        (6 << 10..=8 << 10).contains(&quiet.event_bytes),
        "{quiet:?}"
    );
    assert_eq!(quiet.entries, 50);
}

struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn a_watcher_is_woken_once_until_it_polls_again() {
    let store = open(StoreOptions::default());
    let resource = store.resource("core/configmaps");
    let count = Arc::new(Count(AtomicUsize::new(0)));
    let waker = Waker::from(count.clone());
    let mut watcher = resource
        .watch(WatchSpec::namespace(store.visible(), "mine"))
        .unwrap();
    let mut look = || {
        let mut events = Vec::new();
        let _ = watcher.poll_batch(&mut Context::from_waker(&waker), &mut events, 100);
        events.len()
    };
    assert_eq!(look(), 0);
    put(&store, &resource, "other/x", 1).await;
    assert_eq!(
        count.0.load(Ordering::SeqCst),
        0,
        "what can't match costs nothing"
    );
    for n in 0..5 {
        put(&store, &resource, "mine/x", n).await;
    }
    // Watchers are woken after the answer; the next answer proves that they were woken.
    put(&store, &resource, "other/x", 1).await;
    assert_eq!(count.0.load(Ordering::SeqCst), 1);
    assert_eq!(look(), 5);
    assert_eq!(look(), 0);
}

#[tokio::test]
async fn a_resource_of_another_store_is_refused() {
    let (one, other) = (open(StoreOptions::default()), open(StoreOptions::default()));
    let write = Write::create(&other.resource("a/b"), "x", object(1));
    assert!(matches!(one.commit(write).await, Err(CommitError::Foreign)));
}
