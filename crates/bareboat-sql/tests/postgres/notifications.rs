//! Tests of a database whose notifications do not arrive, and of what idle stores ask.

use std::time::{Duration, Instant};

use bareboat_rig::plan;
use bareboat_rig::proxy::Proxy;
use bareboat_storage::{WatchSpec, Write};

use super::cluster::{Cluster, shared};
use super::{object, open};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_notifications_events_arrive_and_reads_are_right() {
    let cluster = shared();
    let proxy = Proxy::to(cluster.port);
    let writer = open(&cluster.url(cluster.port, "deaf"));
    let reader = open(&cluster.url(proxy.port, "deaf"));
    let resource = writer.resource("core/configmaps");
    let there = reader.resource("core/configmaps");
    // Notifications arrive at first, so that nothing is polled; then they are dropped without a sign.
    tokio::time::sleep(Duration::from_millis(500)).await;
    proxy.set_deaf(true);
    let mut watcher = there.watch(WatchSpec::all(reader.visible())).unwrap();
    let rounds = plan::count(4, 200);
    let mut slowest = Duration::ZERO;
    for n in 0..rounds {
        let write = Write::create(&resource, format!("k{n}"), object(n));
        let done = writer.commit(write).await.unwrap();
        let answered = Instant::now();
        if n % 2 == 0 {
            // A read of the newest state does not wait for the poll.
            assert!(reader.freshen(Duration::from_secs(30)).await.unwrap());
            assert!(there.get(&format!("k{n}")).is_some());
        }
        let events = watcher.next_batch(9).await.unwrap();
        assert_eq!(events[0].rev, done.revision);
        slowest = slowest.max(answered.elapsed());
    }
    println!("the slowest event without notifications: {slowest:?}");
    // The log is read once a second; the rest is for a busy machine.
    let most = plan::bound(Duration::from_secs(30), Duration::from_millis(1100));
    assert!(slowest < most, "{slowest:?}");
    writer.close().await;
    reader.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_gets_no_notifications_polls() {
    let cluster = shared();
    let proxy = Proxy::to(cluster.port);
    // As behind a pooler in transaction mode: not one arrives. The store notices it after two seconds.
    proxy.set_deaf(true);
    let writer = open(&cluster.url(cluster.port, "pooled"));
    let reader = open(&cluster.url(proxy.port, "pooled"));
    tokio::time::sleep(Duration::from_millis(2500)).await;
    let resource = writer.resource("core/configmaps");
    let there = reader.resource("core/configmaps");
    let mut watcher = there.watch(WatchSpec::all(reader.visible())).unwrap();
    let mut waits = Vec::new();
    for n in 0..20 {
        let write = Write::create(&resource, format!("k{n}"), object(n));
        writer.commit(write).await.unwrap();
        let answered = Instant::now();
        watcher.next_batch(9).await.unwrap();
        waits.push(answered.elapsed());
    }
    let typical = plan::typical(&mut waits);
    println!("an event by polling: {typical:?}");
    // A store that expects notifications reads the log once a second.
    assert!(typical < Duration::from_millis(400), "{typical:?}");
    writer.close().await;
    reader.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_stores_ask_little() {
    let cluster = Cluster::start(&["autovacuum=off"]).unwrap();
    let url = cluster.url(cluster.port, "idle");
    let stores = [0, 1, 2].map(|_| open(&url));
    tokio::time::sleep(Duration::from_secs(2)).await;
    let count = || {
        cluster.ask("SELECT pg_stat_clear_snapshot()").unwrap();
        let commits =
            "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = 'postgres'";
        cluster.ask(commits).unwrap().parse::<u64>().unwrap()
    };
    // The counters of a session are published once a second at most, so those of the start may come late.
    let rate = plan::lowest_rate(10.0, async || {
        let (before, start) = (count(), Instant::now());
        tokio::time::sleep(Duration::from_secs(plan::count(4, 60))).await;
        // Our own questions are among them.
        count().saturating_sub(before + 2) as f64 / start.elapsed().as_secs_f64()
    });
    let rate = rate.await;
    println!("three idle stores: {rate:.1} transactions a second");
    assert!(rate <= 10.0, "{rate}");
    for store in &stores {
        store.close().await;
    }
}
