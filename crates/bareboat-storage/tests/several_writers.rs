//! Two stores on one log, as two servers on one database: the memory model of remote engines.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use bareboat_storage::{CommitError, Expect, MemoryBackend, Store, StoreOptions, WatchSpec, Write};

fn object(n: u64) -> bytes::Bytes {
    format!(r#"{{"apiVersion":"v1","kind":"X","metadata":{{"name":"x"}},"n":{n}}}"#).into()
}

fn number(json: &[u8]) -> u64 {
    let text = std::str::from_utf8(json).unwrap();
    let (_, rest) = text.rsplit_once(':').unwrap();
    rest.trim_end_matches('}').parse().unwrap()
}

fn two() -> [Store; 2] {
    let backend = MemoryBackend::new().shared();
    [0, 1].map(|_| Store::open(Arc::new(backend.clone()), StoreOptions::default()).unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counters_raised_by_both_lose_nothing() {
    let stores = two();
    let here = stores[0].resource("core/configmaps");
    stores[0]
        .commit(Write::create(&here, "c", object(0)))
        .await
        .unwrap();
    assert!(stores[1].freshen(Duration::from_secs(60)).await.unwrap());
    let mut tasks = Vec::new();
    for store in stores.iter().cycle().take(6) {
        let store = store.clone();
        tasks.push(tokio::spawn(async move {
            let resource = store.resource("core/configmaps");
            let mut found = resource.get("c").unwrap();
            let mut raised = 0;
            while raised < 30 {
                let next = object(number(found.json()) + 1);
                match store.commit(Write::replace(&resource, &found, next)).await {
                    Ok(done) => {
                        assert!(store.visible() >= done.revision);
                        found = done.entry;
                        raised += 1;
                    }
                    Err(CommitError::Conflict { found: Some(now) }) => found = now,
                    Err(other) => panic!("unexpected: {other}"),
                }
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    for store in &stores {
        assert!(store.freshen(Duration::from_secs(60)).await.unwrap());
        let entry = store.resource("core/configmaps").get("c").unwrap();
        assert_eq!(number(entry.json()), 180);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_sees_the_others_writes_in_one_order() {
    let stores = two();
    let after = stores[0].visible();
    let mut tasks = Vec::new();
    for (writer, store) in stores.iter().cycle().take(8).cloned().enumerate() {
        tasks.push(tokio::spawn(async move {
            let resource = store.resource("core/configmaps");
            for n in 0..25 {
                let key = format!("k{}", (writer as u64 + n) % 5);
                let write = Write::create(&resource, key, object(n)).expecting(Expect::Any);
                store.commit(write).await.unwrap();
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let mut told = Vec::new();
    for store in &stores {
        let resource = store.resource("core/configmaps");
        let mut watcher = resource.watch(WatchSpec::all(after)).unwrap();
        let mut revisions = Vec::new();
        while revisions.len() < 200 {
            let events = watcher.next_batch(50).await.unwrap();
            revisions.extend(
                events
                    .iter()
                    .map(|event| (event.rev, event.key().to_owned())),
            );
        }
        told.push(revisions);
    }
    assert!(told[0].is_sorted());
    assert_eq!(told[0], told[1]);
    let lost = stores[0]
        .commit_many(vec![
            Write::create(&stores[0].resource("a"), "x", object(1)),
            Write::create(&stores[0].resource("a"), "y", object(1)),
        ])
        .await
        .unwrap_err();
    assert!(matches!(lost.error, CommitError::Unsupported));
}
