//! Tests of compaction by other programs, and of an etcd without space.

use bareboat_storage::{CommitError, Expect, WatchSpec, Write};

use super::member::{Member, lease};
use super::{number, object, open, wait_for};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compaction_by_others_raises_the_floor() {
    let member = lease();
    let url = member.fresh();
    let forgetful = bareboat_storage::StoreOptions {
        ring_bytes: 1,
        ring_floor_bytes: 0,
        ring_preload: 0,
        ..Default::default()
    };
    let backend = bareboat_etcd::Etcd::open(&url).unwrap();
    let store = bareboat_storage::Store::open(std::sync::Arc::new(backend), forgetful).unwrap();
    let resource = store.resource("core/configmaps");
    let mut revisions = Vec::new();
    let mut middle = 0;
    for n in 0..20 {
        let write = Write::create(&resource, "a", object(n)).expecting(Expect::Any);
        revisions.push(store.commit(write).await.unwrap().revision);
        if n == 9 {
            middle = member.revision();
        }
    }
    let past = resource.snapshot_at(revisions[4]).await.unwrap();
    assert_eq!(number(past.get("a").unwrap().json()), 4);
    // Equal requests share a loaded state while it is in use.
    drop(past);
    member.compact(middle);
    // A read returns the exact state, or fails because the history was compacted.
    let gone = resource.snapshot_at(revisions[4]).await.unwrap_err();
    assert!(gone.to_string().contains("compacted"), "{gone}");
    wait_for("the floor is learnt", || store.floor() >= revisions[9]).await;
    assert_eq!(store.floor(), revisions[9]);
    for n in [9, 10, 15] {
        let past = resource.snapshot_at(revisions[n]).await.unwrap();
        assert_eq!(number(past.get("a").unwrap().json()), n as u64);
    }
    let mut watcher = resource.watch(WatchSpec::all(revisions[9])).unwrap();
    let mut reported = Vec::new();
    while reported.len() < 10 {
        let events = watcher.next_batch(50).await.unwrap();
        reported.extend(events.iter().map(|event| event.rev));
    }
    assert_eq!(reported, revisions[10..]);
    store.close().await;
    // Everything is compacted while no server runs: only the history is lost.
    member.put("/unrelated", "x");
    member.compact(member.revision());
    let store = open(&url);
    assert_eq!(store.visible(), revisions[19]);
    assert_eq!(store.floor(), revisions[19]);
    let resource = store.resource("core/configmaps");
    assert_eq!(number(resource.get("a").unwrap().json()), 19);
    let write = Write::create(&resource, "b", object(1));
    assert_eq!(
        store.commit(write).await.unwrap().revision,
        revisions[19] + 1
    );
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_etcd_without_space_fails_writes_and_not_reads() {
    let quota = ["--quota-backend-bytes", "16777216"];
    let member = Member::start(&quota).unwrap();
    let store = open(&member.url(member.port, "space"));
    let resource = store.resource("core/configmaps");
    let large = |n: usize| {
        let head = r#"{"apiVersion":"v1","kind":"X","metadata":{"name":"x"},"n":""#;
        bytes::Bytes::from(format!("{head}{}\"}}", "n".repeat(1_000_000 + n)))
    };
    let mut written = 0;
    let refused = loop {
        let write = Write::create(&resource, "a", large(written)).expecting(Expect::Any);
        match store.commit(write).await {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 100, "there is no limit");
    };
    assert!(matches!(refused, CommitError::Full), "{refused:?}");
    assert!(written > 3 && store.poison().is_none());
    // Reads still work, also in a server that starts now.
    assert!(
        store
            .freshen(std::time::Duration::from_secs(20))
            .await
            .unwrap()
    );
    let other = open(&member.url(member.port, "space"));
    assert_eq!(other.visible(), store.visible());
    assert!(other.resource("core/configmaps").get("a").is_some());
    // Do what the error message advises.
    member.compact(member.revision());
    member.ask("maintenance/defragment", "{}");
    member.disarm();
    let write = Write::create(&resource, "b", object(1));
    store.commit(write).await.unwrap();
    wait_for("the other one follows", || {
        other.visible() == store.visible()
    })
    .await;
    for store in [store, other] {
        store.close().await;
    }
}
