//! Tests of two stores on one log, like two servers on one database: the memory model of remote
//! engines.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bareboat_storage::faults::{Fault, Faulty};
use bareboat_storage::{
    Attention, Backend, CommitError, Expect, MemoryBackend, Store, StoreOptions, WatchSpec, Write,
};

mod counted;
mod epochs;
mod history;
mod shaky;
mod told;

use shaky::Shaky;

fn object(n: u64) -> bytes::Bytes {
    format!(r#"{{"apiVersion":"v1","kind":"X","metadata":{{"name":"x"}},"n":{n}}}"#).into()
}

fn number(json: &[u8]) -> u64 {
    let text = std::str::from_utf8(json).unwrap();
    let (_, rest) = text.rsplit_once(':').unwrap();
    rest.trim_end_matches('}').parse().unwrap()
}

async fn wait_for(mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < deadline, "it takes too long");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn open(backend: Arc<dyn Backend>) -> Store {
    Store::open(backend, StoreOptions::default()).unwrap()
}

fn two() -> [Store; 2] {
    let backend = MemoryBackend::new().shared();
    [0, 1].map(|_| Store::open(Arc::new(backend.clone()), StoreOptions::default()).unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counters_incremented_by_both_stores_lose_no_increment() {
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
async fn both_stores_see_all_writes_in_one_order() {
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
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transactions_of_both_stores_happen_together_or_not_at_all() {
    let stores = two();
    let mut tasks = Vec::new();
    for store in stores.iter().cycle().take(6) {
        let store = store.clone();
        tasks.push(tokio::spawn(async move {
            let (left, right) = (store.resource("a"), store.resource("b"));
            let mut won = 0;
            for n in 0..30 {
                let pair = vec![
                    Write::create(&left, format!("{n}"), object(n)),
                    Write::create(&right, format!("{n}"), object(n)),
                ];
                match store.commit_many(pair).await {
                    Ok(pair) => {
                        assert_eq!(pair[0].revision + 1, pair[1].revision);
                        won += 1;
                    }
                    Err(lost) => {
                        assert!(matches!(lost.error, CommitError::AlreadyExists { .. }));
                        // A refused write has seen the state that refused it.
                        assert!(left.get(&format!("{n}")).is_some());
                    }
                }
            }
            won
        }));
    }
    let mut won = 0;
    for task in tasks {
        won += task.await.unwrap();
    }
    assert_eq!(won, 30);
    for store in &stores {
        assert!(store.freshen(Duration::from_secs(60)).await.unwrap());
        assert_eq!(
            (store.resource("a").len(), store.resource("b").len()),
            (30, 30)
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_is_never_refused_for_a_state_that_is_gone() {
    let stores = two();
    for round in 0..200 {
        let (here, there) = (&stores[round % 2], &stores[(round + 1) % 2]);
        let resource = here.resource("core/configmaps");
        // The other store may not have seen the deletion yet.
        let made = here
            .commit(Write::create(&resource, "x", object(1)))
            .await
            .unwrap();
        assert!(there.freshen(Duration::from_secs(60)).await.unwrap());
        here.commit(Write::delete(&resource, &made.entry))
            .await
            .unwrap();
        let elsewhere = there.resource("core/configmaps");
        let made = there
            .commit(Write::create(&elsewhere, "x", object(2)))
            .await
            .unwrap();
        there
            .commit(Write::delete(&elsewhere, &made.entry))
            .await
            .unwrap();
        assert!(here.freshen(Duration::from_secs(60)).await.unwrap());
        assert!(resource.get("x").is_none());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_outcomes_are_resolved() {
    let log = MemoryBackend::new().shared();
    let faulty = Arc::new(Faulty::new(Arc::new(log.clone())));
    let (shaken, other) = (open(faulty.clone()), open(Arc::new(log)));
    let resource = shaken.resource("core/configmaps");
    let after = shaken.visible();
    let mut watcher = resource.watch(WatchSpec::all(after)).unwrap();
    for (fault, key) in [(Fault::LostAnswer, "stored"), (Fault::LostRequest, "sent")] {
        faulty.set(Some(fault));
        let create = Write::create(&resource, key, object(1));
        let unknown = shaken.commit(create).await.unwrap_err();
        assert!(matches!(unknown, CommitError::Unknown(_)), "{unknown:?}");
        // No other write is stored before the outcome is known.
        let create = Write::create(&resource, "later", object(1));
        let refused = shaken.commit(create).await.unwrap_err();
        assert!(matches!(refused, CommitError::Unreachable), "{refused:?}");
        faulty.set(None);
        // The repeated request also arrives, without another write.
        wait_for(|| resource.get(key).is_some()).await;
    }
    let create = Write::create(&resource, "later", object(1));
    shaken.commit(create).await.unwrap();
    let mut told = Vec::new();
    while told.len() < 3 {
        for event in watcher.next_batch(9).await.unwrap() {
            told.push((event.rev, event.key().to_owned()));
        }
    }
    let keys = ["stored", "sent", "later"].map(str::to_owned);
    let expected: Vec<_> = (after + 1..).zip(keys).collect();
    assert_eq!(told, expected);
    assert!(shaken.poison().is_none());
    assert!(other.freshen(Duration::from_secs(60)).await.unwrap());
    assert_eq!(other.resource("core/configmaps").len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_cannot_be_reached_fails_writes_and_not_reads() {
    let faulty = Arc::new(Faulty::new(Arc::new(MemoryBackend::new().shared())));
    let store = open(faulty.clone());
    let resource = store.resource("core/configmaps");
    store
        .commit(Write::create(&resource, "a", object(1)))
        .await
        .unwrap();
    faulty.set(Some(Fault::Unreachable));
    let refused = store.commit(Write::create(&resource, "b", object(1))).await;
    assert!(matches!(refused, Err(CommitError::Unreachable)));
    assert!(store.poison().is_none() && resource.get("a").is_some());
    faulty.set(None);
    store
        .commit(Write::create(&resource, "b", object(1)))
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_keeps_losing_holds_the_log() {
    let log = MemoryBackend::new().shared();
    let shaky = Shaky::new(&log, 7, 0);
    let store = open(shaky.clone());
    let resource = store.resource("core/configmaps");
    for (lost, held) in [(3, 0), (4, 1), (100, 2)] {
        shaky.moved.store(lost, Ordering::SeqCst);
        let write = Write::create(&resource, "a", object(lost)).expecting(Expect::Any);
        store.commit(write).await.unwrap();
        assert_eq!(shaky.held.load(Ordering::SeqCst), held);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_is_refused_while_another_store_writes_all_the_time() {
    let log = MemoryBackend::new().shared();
    let shaky = Shaky::new(&log, 7, 0);
    let store = open(shaky.clone());
    let resource = store.resource("core/configmaps");
    let create = || Write::create(&resource, "a", object(1));
    store.commit(create()).await.unwrap();
    shaky.growing.store(true, Ordering::SeqCst);
    let refused = tokio::time::timeout(Duration::from_secs(30), store.commit(create())).await;
    shaky.growing.store(false, Ordering::SeqCst);
    let refused = refused.expect("an answer").unwrap_err();
    assert!(matches!(refused, CommitError::AlreadyExists { .. }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_part_of_what_was_missed_refuses_nothing() {
    let log = MemoryBackend::new().shared();
    let shaky = Shaky::new(&log, 7, 0);
    let store = open(shaky.clone());
    let resource = store.resource("core/configmaps");
    shaky.moved.store(4, Ordering::SeqCst);
    shaky.flood.store(true, Ordering::SeqCst);
    let made = store.commit(Write::create(&resource, "x", object(1))).await;
    assert!(made.unwrap().revision > 300);
    assert!(shaky.held.load(Ordering::SeqCst) > 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_read_of_the_log_answers_all_who_wait() {
    let log = MemoryBackend::new().shared();
    let shaky = Shaky::new(&log, 7, 0);
    let (store, other) = (open(shaky.clone()), open(Arc::new(log)));
    let before = shaky.marks.load(Ordering::SeqCst);
    let written = other
        .commit(Write::create(&other.resource("a"), "x", object(1)))
        .await
        .unwrap();
    let waits: Vec<_> = (0..2000)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move {
                assert!(store.freshen(Duration::from_secs(60)).await.unwrap());
                store.visible()
            })
        })
        .collect();
    for wait in waits {
        assert!(wait.await.unwrap() >= written.revision);
    }
    let reads = shaky.marks.load(Ordering::SeqCst) - before;
    assert!(reads < 1000, "{reads} reads for 2000 callers");
    assert!(store.stats().unproven_for < Duration::from_secs(60));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_floor_is_learnt_from_other_stores() {
    let stores = two();
    let resource = stores[0].resource("core/configmaps");
    for n in 0..10 {
        let write = Write::create(&resource, "a", object(n)).expecting(Expect::Any);
        stores[0].commit(write).await.unwrap();
    }
    let last = stores[0].visible();
    wait_for(|| stores[1].visible() == last).await;
    stores[0].compact(last).await.unwrap();
    wait_for(|| stores[1].floor() == last).await;
    let there = stores[1].resource("core/configmaps");
    assert!(there.watch(WatchSpec::all(last - 1)).is_err());
    assert!(there.watch(WatchSpec::all(last)).is_ok());
    assert_eq!(there.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_engine_knows_who_waits() {
    let backend = Shaky::new(&MemoryBackend::new().shared(), 1, 0);
    let store = open(backend.clone());
    let told = |expected| {
        let backend = backend.clone();
        wait_for(move || *backend.attention.lock().unwrap() == expected)
    };
    told(Attention::Nobody).await;
    let resource = store.resource("core/configmaps");
    let watcher = resource.watch(WatchSpec::all(store.visible())).unwrap();
    told(Attention::Watchers).await;
    let waiting = store.clone();
    let read = tokio::spawn(async move {
        let beyond = waiting.visible() + 1;
        waiting.wait_for(beyond, Duration::from_secs(60)).await
    });
    told(Attention::Reads).await;
    read.abort();
    told(Attention::Watchers).await;
    drop(watcher);
    told(Attention::Nobody).await;
    store.close().await;
}
