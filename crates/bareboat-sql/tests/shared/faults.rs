//! Tests of lost connections, a killed server, and a server that cannot be reached.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bareboat_rig::failing_disk::{FailingDisk, has_ended};
use bareboat_rig::plan;
use bareboat_sql::SqlOptions;
use bareboat_storage::{
    Appended, Backend as _, Batch, CommitError, Expect, Record, Store, StoreOptions, Value,
    WatchSpec, Write,
};

use super::cluster::{Cluster, shared};
use super::{Engine, object, open, wait_for};
use bareboat_rig::proxy::{Cut, Proxy};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn appends_with_lost_connections_happen_once() {
    let cluster = shared();
    let proxy = Proxy::to(cluster.port);
    let schema = "faults_once";
    let store = open(&cluster.url(proxy.port, schema));
    let resource = store.resource("core/configmaps");
    let after = store.visible();
    let rounds = plan::count(40, 1_000);
    for n in 0..rounds {
        let key = format!("marked-{n}-");
        let mark = key.clone().into_bytes();
        proxy.cut(match n % 2 {
            0 => Cut::Request(mark),
            _ => Cut::Answer(mark),
        });
        let done = store.commit(Write::create(&resource, key, object(n))).await;
        assert_eq!(done.unwrap().revision, after + n + 1);
        assert!(proxy.has_cut());
    }
    let stats = store.stats().backend;
    let connections = stats.connections;
    // Each cut ended a connection, and a new connection was made.
    assert!(connections.lost >= rounds, "{connections:?}");
    assert!(connections.opened > connections.lost, "{connections:?}");
    assert!(stats.clock_ahead_millis.is_some());
    assert_eq!(resource.len() as u64, rounds);
    let rows = format!("SELECT count(*), max(rev) - min(rev) + 1 FROM {schema}.log");
    let expected = format!("{rounds}|{rounds}");
    assert_eq!(cluster.ask(&rows), Some(expected));
    let batches = format!("SELECT count(*) FROM {schema}.batch");
    assert_eq!(cluster.ask(&batches), Some(format!("{}", rounds + 1)));
    store.close().await;
}

#[test]
fn a_repeated_batch_has_the_digest_of_what_is_stored() {
    let backend = Engine::open(&shared().fresh()).unwrap();
    let base = backend.mark().unwrap();
    // The same value, encrypted twice, has different bytes.
    let batch = |n| Batch {
        id: 7,
        writer: 1,
        records: vec![Record {
            revision: base.last + 1,
            prev: 0,
            cluster: "".into(),
            resource: "core/secrets".into(),
            key: "a/b".into(),
            actor: None,
            value: Some(Value::new(object(n))),
        }],
    };
    let stored = backend.append(&base, &batch(1)).unwrap();
    assert_eq!(stored, Appended::Done(backend.mark().unwrap()));
    assert_eq!(backend.append(&base, &batch(2)).unwrap(), stored);
    assert_eq!(stored, Appended::Done(batch(1).end(&base)));
    backend.close().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_away_fails_writes_and_not_reads() {
    let cluster = shared();
    let proxy = Proxy::to(cluster.port);
    let url = cluster.url(proxy.port, "faults_away");
    let options = SqlOptions {
        patience: Duration::from_millis(300),
    };
    let backend = Engine::open_with(&url, options).unwrap();
    let store = Store::open(Arc::new(backend), StoreOptions::default()).unwrap();
    let resource = store.resource("core/configmaps");
    let first = store
        .commit(Write::create(&resource, "a", object(1)))
        .await
        .unwrap();
    let mut watcher = resource.watch(WatchSpec::all(first.revision)).unwrap();
    proxy.set_down(true);
    let refused = store.commit(Write::create(&resource, "b", object(1))).await;
    let refused = refused.unwrap_err();
    // The first attempt may have been on its way when the connection was lost.
    assert!(
        matches!(refused, CommitError::Unreachable | CommitError::Unknown(_)),
        "{refused:?}"
    );
    assert!(store.freshen(Duration::from_secs(20)).await.is_err());
    assert!(resource.get("a").is_some() && store.poison().is_none());
    wait_for("it is noticed", || {
        store.stats().unproven_for > Duration::from_secs(1)
    })
    .await;
    proxy.set_down(false);
    let other = open(&cluster.url(cluster.port, "faults_away"));
    let there = other.resource("core/configmaps");
    other
        .commit(Write::create(&there, "c", object(1)))
        .await
        .unwrap();
    assert!(store.freshen(Duration::from_secs(20)).await.unwrap());
    assert!(resource.get("c").is_some());
    // The watch continues without a gap.
    let mut told = Vec::new();
    while told.last().is_none_or(|rev| *rev < store.visible()) {
        told.extend(watcher.next_batch(9).await.unwrap().iter().map(|e| e.rev));
    }
    let expected: Vec<u64> = (first.revision + 1..=store.visible()).collect();
    assert_eq!(told, expected);
    store.close().await;
    other.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_server_loses_no_acknowledged_write() {
    let cluster = Cluster::start(&[]).unwrap();
    survive(&cluster, plan::count(3, 100), &|| {
        cluster.kill();
        cluster.run(&[]);
    })
    .await;
}

/// Within this time a database ends itself when its disk fails. Only a failure waits this long.
const SOON: Duration = Duration::from_secs(60);

/// The disk fails like one that loses its power: the database cannot sync, and what it did not sync before is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failing_disk_loses_no_acknowledged_write() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = FailingDisk::mount(folder.path(), 512) else {
        return;
    };
    let cluster = Cluster::start(&[]).unwrap();
    cluster.kill();
    // Its children end a little later.
    tokio::time::sleep(Duration::from_millis(500)).await;
    disk.take(&cluster.data());
    cluster.run(&[]);
    survive(&cluster, plan::count(2, 20), &|| {
        disk.fail(cluster.pid());
        let ended = has_ended(cluster.pid(), SOON);
        assert!(ended, "the database goes on without a disk");
        cluster.kill();
        disk.mend();
        cluster.run(&[]);
    })
    .await;
    cluster.kill();
}

/// Writes through two stores while the database breaks down `rounds` times, and checks that no write is lost.
async fn survive(cluster: &Cluster, rounds: u64, break_down: &dyn Fn()) {
    let stores = [0, 1].map(|_| open(&cluster.url(cluster.port, "killed")));
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..6)
        .map(|task| {
            let (store, stop) = (stores[task % 2].clone(), stop.clone());
            tokio::spawn(async move {
                let resource = store.resource("core/configmaps");
                let mut acknowledged = BTreeMap::new();
                let mut n = 0;
                while !stop.load(Ordering::Relaxed) {
                    n += 1;
                    let key = format!("k{task}-{}", n % 50);
                    let write = Write::create(&resource, key.clone(), object(n));
                    match store.commit(write.expecting(Expect::Any)).await {
                        Ok(done) => drop(acknowledged.insert(key, (done.revision, n))),
                        // A database without a disk may say so before it ends.
                        Err(CommitError::ReadOnly | CommitError::Full) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
                acknowledged
            })
        })
        .collect();
    for _ in 0..rounds {
        tokio::time::sleep(Duration::from_millis(400)).await;
        tokio::task::block_in_place(break_down);
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    stop.store(true, Ordering::Relaxed);
    let mut expected = BTreeMap::new();
    for writer in writers {
        expected.extend(writer.await.unwrap());
    }
    let last = expected.values().map(|(revision, _)| *revision).max();
    for store in &stores {
        assert!(store.freshen(Duration::from_secs(30)).await.unwrap());
        assert_eq!(Some(store.visible()), last);
        store.close().await;
    }
    // What a new server reads from the database.
    let store = open(&cluster.url(cluster.port, "killed"));
    let resource = store.resource("core/configmaps");
    assert_eq!(resource.len(), expected.len());
    for (key, (revision, n)) in expected {
        let entry = resource.get(&key).unwrap();
        assert_eq!(
            (entry.revision(), super::number(entry.json())),
            (revision, n)
        );
    }
    let gaps = "SELECT max(rev) - 1 - count(*) FROM killed.log";
    assert_eq!(cluster.ask(gaps).as_deref(), Some("0"));
    store.close().await;
}
