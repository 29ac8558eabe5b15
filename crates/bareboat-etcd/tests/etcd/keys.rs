//! Tests of the keys as people see them, and of limits.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use bareboat_etcd::{Etcd, EtcdError};
use bareboat_storage::{Backend as _, CommitError, Expect, Store, StoreOptions, Write};

use super::member::{Member, lease};
use super::{object, open, wait_for};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_and_values_can_be_read_by_people() {
    let member = lease();
    let store = open(&member.url(member.port, "seen"));
    let pods = store.resource("core/pods");
    let write = Write::create(&pods, "shop/web", object(1)).by(r#"{"user":"eve"}"#.into());
    let done = store.commit(write).await.unwrap();
    let value = member.get("/seen/o/core/pods/shop/web");
    let stored = std::str::from_utf8(&object(1)).unwrap().to_owned();
    let expected = format!(
        "{stored}\n{{\"rev\":{},\"actor\":\"{{\\\"user\\\":\\\"eve\\\"}}\"}}",
        done.revision
    );
    assert_eq!(value, expected);
    assert_eq!(member.paths("/seen/", "o/"), ["o/core/pods/shop/web"]);
    let row = format!("b/{:016x}", done.revision);
    assert_eq!(member.paths("/seen/", "b/"), ["b/0000000000000001", &row]);
    let row = member.get(&format!("/seen/{row}"));
    assert!(row.contains(r#""path":"o/core/pods/shop/web""#), "{row}");
    let tail = member.get("/seen/t");
    assert!(tail.starts_with(&format!(r#"{{"last":{},"epoch":1,"#, done.revision)));
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_old_batches_are_deleted() {
    let member = lease();
    let backend = Etcd::open(&member.url(member.port, "old")).unwrap();
    let options = StoreOptions {
        compact_rows: 3,
        ..StoreOptions::default()
    };
    let store = Store::open(Arc::new(backend), options).unwrap();
    let pods = store.resource("core/pods");
    for n in 0..10 {
        // Both writes are in one batch: the first value is stored beside the object.
        let write = |value| Write::create(&pods, format!("{n}"), object(value));
        let again = write(2).expecting(bareboat_storage::Expect::Present);
        store.commit_many(vec![write(1), again]).await.unwrap();
    }
    let count = |below: &str| member.paths("/old/", below).len();
    store.compact(store.visible()).await.unwrap();
    assert_eq!((count("b/"), count("i/")), (11, 10));
    for path in member.paths("/old/", "b/") {
        let row = member.get(&format!("/old/{path}"));
        let (head, tail) = row.split_once(r#""at":"#).unwrap();
        let (_, tail) = tail.split_once(',').unwrap();
        member.put(&format!("/old/{path}"), &format!(r#"{head}"at":1,{tail}"#));
    }
    // The floor stays where it is; its row is needed.
    store.compact(store.visible()).await.unwrap();
    assert_eq!((count("b/"), count("i/")), (1, 1));
    assert_eq!(pods.len(), 10);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_of_many_compactions_is_done_too() {
    // A compaction takes longer than a round.
    let slow = [
        "--compaction-batch-limit=10",
        "--compaction-sleep-interval=50ms",
    ];
    let member = Member::start(&slow).expect("etcd is built");
    let store = open(&member.fresh());
    let maps = store.resource("core/configmaps");
    let mut last = 0;
    for n in 0..200 {
        let write = Write::create(&maps, format!("k{}", n % 10), object(n));
        store.commit(write.expecting(Expect::Any)).await.unwrap();
        if n % 10 == 9 {
            last = member.revision();
            store.compact(store.visible()).await.unwrap();
        }
    }
    wait_for("etcd has compacted everything", || {
        member.metric("etcd_debugging_mvcc_compact_revision") >= last as f64
    })
    .await;
    assert_eq!(maps.len(), 10);
    store.close().await;
}

/// Returns an object of exactly `len` bytes.
fn of_length(len: usize) -> bytes::Bytes {
    let head = r#"{"apiVersion":"v1","kind":"X","metadata":{"name":"x"},"n":""#;
    format!("{head}{}\"}}", "n".repeat(len - head.len() - 2)).into()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_etcd_can_take_is_taken_and_more_is_refused() {
    let member = lease();
    let store = open(&member.fresh());
    let resource = store.resource("core/configmaps");
    let max = store.max_value_bytes();
    assert_eq!(max, (3 << 19) - (16 << 10));
    let write = |key: String, len| Write::create(&resource, key, of_length(len));
    store.commit(write("largest".into(), max)).await.unwrap();
    let refused = store.commit(write("larger".into(), max + 1)).await;
    assert!(matches!(refused, Err(CommitError::TooLarge { .. })));
    let all = |count: usize, len| {
        (0..count)
            .map(|n| write(format!("{count}-{n}"), len))
            .collect()
    };
    let whole = store.commit_many(all(126, 10_000)).await.unwrap();
    assert_eq!(whole.len(), 126);
    let refused = store.commit_many(all(127, 100)).await.unwrap_err();
    assert!(matches!(refused.error, CommitError::TooMany { .. }));
    let refused = store.commit_many(all(2, 700_000)).await.unwrap_err();
    assert!(matches!(refused.error, CommitError::TooLarge { .. }));
    // Many concurrent writes are split into batches that fit.
    let many: Vec<_> = (0..300)
        .map(|n| {
            let write = write(format!("m{n}"), 50_000);
            let store = store.clone();
            tokio::spawn(async move { store.commit(write).await })
        })
        .collect();
    for done in many {
        done.await.unwrap().unwrap();
    }
    assert_eq!(resource.len(), 1 + 126 + 300);
    store.close().await;
}

#[test]
fn stores_of_newer_programs_and_unreachable_ones_are_refused() {
    let error = Etcd::open("etcd://127.0.0.1:1/x").unwrap_err();
    assert!(matches!(error, EtcdError::Unreachable { .. }), "{error}");
    let member = lease();
    let url = member.url(member.port, "newer");
    let first = Etcd::open(&url).unwrap();
    assert_eq!(first.mark().unwrap().last, 1);
    drop(first);
    let meta = member.get("/newer/m");
    let newer = meta.replace(r#""min_writer":1"#, r#""min_writer":99"#);
    member.put("/newer/m", &newer);
    let refused = Etcd::open(&url).unwrap_err();
    assert!(matches!(refused, EtcdError::Newer { found: 99, .. }));
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
    let member = lease();
    let url = member.fresh();
    let (done, opened) = std::sync::mpsc::sync_channel(1);
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.unwrap().block_on(async {
            use_up_budget();
            done.send(Etcd::open(&url).is_ok()).unwrap();
        });
    });
    let opened = opened.recv_timeout(Duration::from_secs(60));
    assert!(opened.expect("it does not open"));
}
