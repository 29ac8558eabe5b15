//! Tests of a log that gets another history: restored from a backup, or without its last writes.

use std::collections::BTreeMap;
use std::sync::Arc;

use bareboat_storage::{
    Event, EventKind, FeedError, MemoryBackend, Observer, Snapshot, Store, StoreOptions,
    WatchError, WatchSpec, Write,
};
use parking_lot::Mutex;

use super::{number, object, wait_for};

/// A view of the contents of a resource.
#[derive(Default)]
struct View(Mutex<BTreeMap<String, u64>>);

impl Observer for View {
    fn reset(&self, snapshot: &Snapshot) {
        for entry in snapshot.range("", None) {
            (self.0.lock()).insert(entry.key().to_owned(), number(entry.json()));
        }
    }

    fn changed(&self, event: &Arc<Event>) {
        let mut view = self.0.lock();
        match event.kind {
            EventKind::Deleted => view.remove(event.key()),
            _ => view.insert(event.key().to_owned(), number(event.entry.json())),
        };
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_epoch_ends_every_watch_and_loads_the_log_again() {
    let log = MemoryBackend::new().shared();
    let stores =
        [0, 1].map(|_| Store::open(Arc::new(log.clone()), StoreOptions::default()).unwrap());
    let resource = stores[0].resource("core/configmaps");
    for key in ["kept", "changed", "gone"] {
        let create = Write::create(&resource, key, object(1));
        stores[0].commit(create).await.unwrap();
    }
    let before = stores[0].visible();
    let found = resource.get("changed").unwrap();
    let change = Write::replace(&resource, &found, object(2));
    stores[0].commit(change).await.unwrap();
    let create = Write::create(&resource, "lost", object(3));
    let last = stores[0].commit(create).await.unwrap().revision;
    wait_for(|| stores[1].visible() == last).await;

    let view = Arc::new(View::default());
    stores[1].observe("core/configmaps", view.clone());
    let mut watchers = Vec::new();
    for store in &stores {
        let resource = store.resource("core/configmaps");
        watchers.push(resource.watch(WatchSpec::all(last)).unwrap());
        watchers.push(resource.watch(WatchSpec::all(before)).unwrap());
    }
    let mut feed = stores[1].feed(None).unwrap();

    // The change and the creation after `before` are lost.
    log.begin_epoch(2);
    for watcher in &mut watchers {
        let ended = loop {
            match watcher.next_batch(9).await {
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        let WatchError::Expired { floor } = ended else {
            panic!("{ended:?}");
        };
        assert!(floor >= last + (1 << 20));
    }
    assert_eq!(feed.next_batch(9).await.unwrap_err(), FeedError::Lagged);
    for store in &stores {
        wait_for(|| store.visible() > last + (1 << 19)).await;
        assert!(store.poison().is_none());
        let resource = store.resource("core/configmaps");
        assert_eq!(resource.len(), 3);
        assert_eq!(number(resource.get("changed").unwrap().json()), 1);
        assert!(resource.get("lost").is_none());
        for version in [before, last, last + 1, store.floor() - 1] {
            assert!(resource.watch(WatchSpec::all(version)).is_err());
        }
        assert!(resource.snapshot_at(last).await.is_err());
    }
    let seen = view.0.lock().clone();
    let expected = [("changed", 1), ("gone", 1), ("kept", 1)].map(|(k, n)| (k.to_owned(), n));
    assert_eq!(seen, BTreeMap::from(expected));

    // Both stores write in the new epoch, and see each other's writes.
    let mut watcher = stores[1]
        .resource("core/configmaps")
        .watch(WatchSpec::all(stores[1].visible()))
        .unwrap();
    let create = Write::create(&resource, "lost", object(4));
    let again = stores[0].commit(create).await.unwrap();
    assert!(again.revision > last + (1 << 20));
    assert_eq!(watcher.next_batch(9).await.unwrap()[0].rev, again.revision);
    let found = stores[1].resource("core/configmaps").get("gone").unwrap();
    let delete = Write::delete(&stores[1].resource("core/configmaps"), &found);
    let deleted = stores[1].commit(delete).await.unwrap();
    assert_eq!(deleted.revision, again.revision + 1);
    wait_for(|| resource.get("gone").is_none()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_of_an_older_epoch_decides_again() {
    let log = MemoryBackend::new().shared();
    let store = Store::open(Arc::new(log.clone()), StoreOptions::default()).unwrap();
    let resource = store.resource("core/configmaps");
    let first = store.commit(Write::create(&resource, "a", object(1)));
    let first = first.await.unwrap();
    let found = first.entry.clone();
    log.begin_epoch(1);
    // The object that the write replaces no longer exists.
    let refused = store
        .commit(Write::replace(&resource, &found, object(2)))
        .await;
    assert!(refused.is_err(), "{refused:?}");
    let again = store.commit(Write::create(&resource, "a", object(3)));
    assert!(again.await.unwrap().revision > first.revision + (1 << 20));
}
