//! Tests of three stores on one database.

use std::pin::pin;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use bareboat_rig::plan;
use bareboat_storage::{CommitError, Store, WatchSpec, Write};

use super::cluster::shared;
use super::{Engine, number, object, open, wait_for};
use bareboat_rig::proxy::Proxy;

fn three(schema: &str) -> Vec<Store> {
    let cluster = shared();
    let url = cluster.url(cluster.port, schema);
    (0..3).map(|_| open(&url)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_stores_lose_no_update_and_see_one_order() {
    let stores = three("replicas_order");
    let here = stores[0].resource("core/configmaps");
    let first = stores[0]
        .commit(Write::create(&here, "c", object(0)))
        .await
        .unwrap();
    let tasks: Vec<_> = (0..6)
        .map(|task| {
            let store = stores[task % 3].clone();
            tokio::spawn(async move {
                assert!(store.freshen(Duration::from_secs(30)).await.unwrap());
                let resource = store.resource("core/configmaps");
                let other = store.resource("core/secrets");
                let mut found = resource.get("c").unwrap();
                let mut raised = 0;
                while raised < 40 {
                    let next = object(number(found.json()) + 1);
                    // Writes the counter and a record of it in one batch.
                    let pair = vec![
                        Write::replace(&resource, &found, next),
                        Write::create(&other, format!("{task}-{raised}"), object(1)),
                    ];
                    match store.commit_many(pair).await {
                        Ok(done) => {
                            found = done[0].entry.clone();
                            raised += 1;
                        }
                        Err(lost) => match lost.error {
                            CommitError::Conflict { found: Some(now) } => found = now,
                            other => panic!("unexpected: {other}"),
                        },
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let mut seen = Vec::new();
    for store in &stores {
        assert!(store.freshen(Duration::from_secs(30)).await.unwrap());
        assert_eq!(store.visible(), first.revision + 480);
        let resource = store.resource("core/configmaps");
        assert_eq!(number(resource.get("c").unwrap().json()), 240);
        assert_eq!(store.resource("core/secrets").len(), 240);
        let mut watcher = resource.watch(WatchSpec::all(first.revision)).unwrap();
        let mut reported = Vec::new();
        while reported.len() < 240 {
            let events = watcher.next_batch(50).await.unwrap();
            reported.extend(events.iter().map(|e| (e.rev, number(e.entry.json()))));
        }
        assert!(reported.is_sorted());
        seen.push(reported);
    }
    assert!(seen[0] == seen[1] && seen[1] == seen[2]);
    for store in &stores {
        store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_store_wrote_another_reads_at_once() {
    let stores = three("replicas_fresh");
    for n in 0..plan::count(150, 100_000) as usize {
        let (writer, reader) = (&stores[n % 3], &stores[(n + 1) % 3]);
        let resource = writer.resource("core/configmaps");
        let key = format!("k{n}");
        let done = writer
            .commit(Write::create(&resource, key.clone(), object(1)))
            .await
            .unwrap();
        assert!(reader.freshen(Duration::from_secs(30)).await.unwrap());
        let found = reader.resource("core/configmaps").get(&key).unwrap();
        assert_eq!(found.revision(), done.revision);
    }
    for store in &stores {
        store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_reach_other_stores_soon() {
    let stores = three("replicas_soon");
    let there = stores[1].resource("core/configmaps");
    let mut watcher = there.watch(WatchSpec::all(stores[1].visible())).unwrap();
    let resource = stores[0].resource("core/configmaps");
    // The listening session may still be starting.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let mut waits = Vec::new();
    for n in 0..plan::count(100, 10_000) {
        let write = Write::create(&resource, format!("k{n}"), object(n));
        let done = stores[0].commit(write).await.unwrap();
        let answered = Instant::now();
        let events = watcher.next_batch(9).await.unwrap();
        assert_eq!(events[0].rev, done.revision);
        waits.push(answered.elapsed());
    }
    let typical = plan::typical(&mut waits);
    let (median, late) = (waits[waits.len() / 2], waits[waits.len() * 99 / 100]);
    println!("an event on another store: {median:?} at the median, {late:?} of one in a hundred");
    // Without notifications, stores read the log once a second.
    let bound = plan::bound(Duration::from_millis(400), super::SOON);
    assert!(typical < bound, "{typical:?}");
    for store in &stores {
        store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_was_silent_for_longer_than_the_history_loads_again() {
    let cluster = shared();
    let proxy = Proxy::to(cluster.port);
    let slow = open(&cluster.url(proxy.port, "replicas_silent"));
    let store = open(&cluster.url(cluster.port, "replicas_silent"));
    let resource = store.resource("core/configmaps");
    let first = store
        .commit(Write::create(&resource, "a", object(0)))
        .await
        .unwrap();
    wait_for("the first write arrives", || {
        slow.visible() == first.revision
    })
    .await;
    let there = slow.resource("core/configmaps");
    let mut watcher = there.watch(WatchSpec::all(first.revision)).unwrap();
    proxy.set_silent(true);
    let mut found = first.entry;
    for n in 1..20 {
        let write = Write::replace(&resource, &found, object(n));
        found = store.commit(write).await.unwrap().entry;
    }
    store.compact(store.visible()).await.unwrap();
    let last = store.visible();
    proxy.set_silent(false);
    wait_for("it catches up", || slow.visible() >= last).await;
    assert_eq!(number(there.get("a").unwrap().json()), 19);
    let ended = watcher.next_batch(9).await.unwrap_err();
    assert!(ended.to_string().contains("compacted"), "{ended}");
    assert!(slow.poison().is_none());
    for store in [slow, store] {
        store.close().await;
    }
}

/// Uses up the steps that a task of a runtime may take before it must return.
fn use_up_budget() {
    let mut context = Context::from_waker(Waker::noop());
    loop {
        let (to, from) = tokio::sync::oneshot::channel();
        to.send(()).unwrap();
        if pin!(from).poll(&mut context).is_pending() {
            return;
        }
    }
}

#[test]
fn a_store_opens_on_a_thread_of_a_runtime_that_worked_long() {
    let url = shared().fresh();
    let (done, opened) = std::sync::mpsc::sync_channel(1);
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.unwrap().block_on(async {
            use_up_budget();
            done.send(Engine::open(&url).is_ok()).unwrap();
        });
    });
    let opened = opened.recv_timeout(Duration::from_secs(60));
    assert!(opened.expect("it does not open"));
}
