//! Tests of lost connections, a killed server, and a server that cannot be reached.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bareboat_etcd::{Etcd, EtcdOptions};
use bareboat_rig::failing_disk::{FailingDisk, has_ended};
use bareboat_rig::plan;
use bareboat_storage::{
    Appended, Backend as _, Batch, CommitError, Expect, Record, Store, StoreOptions, Value,
    WatchSpec, Write,
};

use super::member::{Member, lease};
use super::{number, object, open, wait_for};
use bareboat_rig::proxy::{Cut, Proxy};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn appends_with_lost_connections_happen_once() {
    let member = lease();
    let proxy = Proxy::to(member.port);
    let store = open(&member.url(proxy.port, "faults_once"));
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
    let connections = store.stats().backend.connections;
    // Each cut ended a connection, and a new connection was made.
    assert!(connections.lost >= rounds, "{connections:?}");
    assert!(connections.opened > connections.lost, "{connections:?}");
    let found = |below: &str| member.paths("/faults_once/", below);
    assert_eq!(found("o/").len() as u64, rounds);
    // The additional row is the empty start.
    assert_eq!(found("b/").len() as u64, rounds + 1);
    store.close().await;
}

#[test]
fn a_repeated_batch_has_the_digest_of_what_is_stored() {
    let member = lease();
    let backend = Etcd::open(&member.fresh()).unwrap();
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
    // Another batch after the same mark is not added.
    let other = Batch { id: 8, ..batch(3) };
    let moved = backend.append(&base, &other).unwrap();
    assert!(matches!(moved, Appended::Moved(_)), "{moved:?}");
    backend.close().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_that_is_away_fails_writes_and_not_reads() {
    let member = lease();
    let proxy = Proxy::to(member.port);
    let url = member.url(proxy.port, "faults_away");
    let options = EtcdOptions {
        patience: Duration::from_millis(300),
    };
    let backend = Etcd::open_with(&url, options).unwrap();
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
    let other = open(&member.url(member.port, "faults_away"));
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
    let member = lease();
    let kill = |_| {
        member.kill();
        member.run(&[]);
    };
    survive(&member.fresh(), plan::count(3, 100), &kill).await;
}

/// Within this time a database ends itself when its disk fails. Only a failure waits this long.
const SOON: Duration = Duration::from_secs(60);

/// The disk fails like one that loses its power: etcd cannot sync, and what it did not sync before is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failing_disk_loses_no_acknowledged_write() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = FailingDisk::mount(folder.path(), 512) else {
        return;
    };
    let member = Member::start(&[]).unwrap();
    // A member that is killed before its first entry is stored never starts again.
    member.put("first", "entry");
    member.kill();
    disk.take(&member.data());
    member.run(&[]);
    let fail = |_| {
        disk.fail(member.pid());
        assert!(has_ended(member.pid(), SOON), "etcd goes on without a disk");
        member.kill();
        disk.mend();
        member.run(&[]);
    };
    survive(&member.fresh(), plan::count(2, 20), &fail).await;
    member.kill();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_members_one_after_another_lose_no_acknowledged_write() {
    let members = Member::cluster(3);
    let ports: Vec<String> = members
        .iter()
        .map(|member| format!("127.0.0.1:{}", member.port))
        .collect();
    // One of the three killed members is the leader.
    let kill = |round: usize| {
        let member = &members[round % members.len()];
        member.kill();
        std::thread::sleep(Duration::from_millis(700));
        member.run(&[]);
    };
    survive(
        &format!("etcd://{}/three", ports.join(",")),
        plan::count(3, 100),
        &kill,
    )
    .await;
}

/// Writes through two stores while `break_down` is called `rounds` times, and checks that no write is lost.
async fn survive(url: &str, rounds: u64, break_down: &dyn Fn(usize)) {
    let stores = [open(url), open(url)];
    let begun = stores[0].visible();
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
                    let done = store.commit(write.expecting(Expect::Any)).await;
                    acknowledged.insert(key, (done.unwrap().revision, n));
                }
                acknowledged
            })
        })
        .collect();
    for round in 0..rounds as usize {
        tokio::time::sleep(Duration::from_millis(400)).await;
        tokio::task::block_in_place(|| break_down(round));
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
    // What a new server reads from etcd.
    let store = open(url);
    let resource = store.resource("core/configmaps");
    assert_eq!(resource.len(), expected.len());
    for (key, (revision, n)) in expected {
        let entry = resource.get(&key).unwrap();
        assert_eq!((entry.revision(), number(entry.json())), (revision, n));
    }
    // Every revision is present exactly once.
    let mut watcher = resource.watch(WatchSpec::all(begun)).unwrap();
    let mut next = begun + 1;
    while next <= store.visible() {
        for event in watcher.next_batch(100).await.unwrap() {
            assert_eq!(event.rev, next);
            next += 1;
        }
    }
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_member_is_used_when_one_is_gone() {
    let member = lease();
    let proxies = [Proxy::to(member.port), Proxy::to(member.port)];
    let url = format!(
        "etcd://127.0.0.1:{},127.0.0.1:{}/members",
        proxies[0].port, proxies[1].port
    );
    let store = open(&url);
    let resource = store.resource("core/configmaps");
    for n in 0..6 {
        // One of the two members is always down.
        proxies[n % 2].set_down(true);
        proxies[(n + 1) % 2].set_down(false);
        let write = Write::create(&resource, format!("k{n}"), object(1));
        store.commit(write).await.unwrap();
        assert!(store.freshen(Duration::from_secs(20)).await.unwrap());
    }
    assert_eq!(resource.len(), 6);
    store.close().await;
}
