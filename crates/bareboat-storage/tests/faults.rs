//! Tests of a store whose backend fails.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use bareboat_storage::faults::{Fault, Faulty};
use bareboat_storage::{
    CommitError, Expect, MemoryBackend, Resource, Store, StoreOptions, WatchError, WatchSpec, Write,
};

fn object(n: u64) -> bytes::Bytes {
    format!(r#"{{"apiVersion":"v1","kind":"X","metadata":{{"name":"x"}},"n":{n}}}"#).into()
}

fn faulty() -> (Arc<Faulty>, Store, Arc<Resource>) {
    let backend = Arc::new(Faulty::new(Arc::new(MemoryBackend::new())));
    let store = Store::open(backend.clone(), StoreOptions::default()).unwrap();
    let resource = store.resource("core/configmaps");
    (backend, store, resource)
}

#[tokio::test]
async fn a_full_disk_fails_writes_until_there_is_space() {
    let (backend, store, resource) = faulty();
    let first = store
        .commit(Write::create(&resource, "a", object(1)))
        .await
        .unwrap();
    let mut watcher = resource.watch(WatchSpec::all(first.revision)).unwrap();
    backend.set(Some(Fault::Full));
    let failed = store.commit(Write::create(&resource, "b", object(1))).await;
    assert!(matches!(failed, Err(CommitError::Full)));
    assert!(store.poison().is_none());
    assert_eq!(store.visible(), first.revision);
    assert!(resource.get("a").is_some() && resource.get("b").is_none());
    backend.set(None);
    let second = store
        .commit(Write::create(&resource, "b", object(2)))
        .await
        .unwrap();
    assert_eq!(second.revision, first.revision + 1, "no revision was lost");
    assert_eq!(watcher.next_batch(9).await.unwrap()[0].rev, second.revision);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conflict_with_a_failed_write_is_not_reported() {
    let (backend, store, resource) = faulty();
    let gate = tokio::task::block_in_place(|| backend.hold());
    // The first write keeps the sequencer busy, so that the next two share a batch.
    let spawn = |key: &'static str, n| {
        let (store, resource) = (store.clone(), resource.clone());
        tokio::spawn(async move { store.commit(Write::create(&resource, key, object(n))).await })
    };
    let busy = spawn("busy", 0);
    tokio::time::sleep(Duration::from_millis(50)).await;
    let rivals = [spawn("same", 1), spawn("same", 2)];
    let taken = spawn("busy", 3);
    tokio::time::sleep(Duration::from_millis(50)).await;
    backend.set(Some(Fault::Full));
    drop(gate);
    assert!(matches!(busy.await.unwrap(), Err(CommitError::Full)));
    for rival in rivals {
        assert!(matches!(rival.await.unwrap(), Err(CommitError::Full)));
    }
    assert!(matches!(taken.await.unwrap(), Err(CommitError::Full)));
    assert!(resource.is_empty());
}

#[tokio::test]
async fn a_failed_commit_poisons_the_store_but_reads_still_work() {
    let (backend, store, resource) = faulty();
    store
        .commit(Write::create(&resource, "a", object(1)))
        .await
        .unwrap();
    backend.set(Some(Fault::Failed));
    let failed = store.commit(Write::create(&resource, "b", object(1))).await;
    assert!(matches!(failed, Err(CommitError::Unknown(_))));
    let reason = store.poisoned().await;
    assert_eq!(&*reason, "the log failed: injected fault");
    backend.set(None);
    let write = Write::create(&resource, "a", object(2)).expecting(Expect::Any);
    let refused = store.commit(write).await;
    assert!(
        matches!(refused, Err(CommitError::Poisoned(_))),
        "once is enough"
    );
    assert!(resource.get("a").is_some());
}

#[tokio::test]
async fn a_panic_in_the_backend_fails_all_waiting_writes() {
    let (backend, store, resource) = faulty();
    let mut watcher = resource.watch(WatchSpec::all(store.visible())).unwrap();
    backend.set(Some(Fault::Panic));
    let failed = store.commit(Write::create(&resource, "a", object(1))).await;
    assert!(matches!(failed, Err(CommitError::Unknown(_))));
    assert!(matches!(
        watcher.next_batch(1).await,
        Err(WatchError::Closed)
    ));
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_queue_makes_writers_wait_and_loses_none() {
    let backend = Arc::new(Faulty::new(Arc::new(MemoryBackend::new())));
    let options = StoreOptions {
        max_queue: 4,
        ..StoreOptions::default()
    };
    let store = Store::open(backend.clone(), options).unwrap();
    let resource = store.resource("core/configmaps");
    let gate = tokio::task::block_in_place(|| backend.hold());
    let writes: Vec<_> = (0..100)
        .map(|n| {
            let (store, resource) = (store.clone(), resource.clone());
            tokio::spawn(async move {
                let write = Write::create(&resource, format!("{n}"), object(n));
                store.commit(write).await.map(|done| done.revision)
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(store.stats().queued <= 4);
    drop(gate);
    for write in writes {
        write.await.unwrap().unwrap();
    }
    assert_eq!(resource.len(), 100);
}

#[tokio::test]
async fn dropping_every_handle_closes_the_store() {
    let backend = MemoryBackend::new();
    let store = Store::open(Arc::new(backend), StoreOptions::default()).unwrap();
    let resource = store.resource("core/configmaps");
    let mut watcher = resource.watch(WatchSpec::all(store.visible())).unwrap();
    drop(store);
    assert!(matches!(
        watcher.next_batch(1).await,
        Err(WatchError::Closed)
    ));
}
