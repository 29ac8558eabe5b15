//! Tests of a log that loses its last writes: a restored copy, another cluster.

use std::path::Path;

use bareboat_storage::{WatchError, WatchSpec, Write};

use super::member::{Member, lease};
use super::{object, open, wait_for};

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).unwrap()),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_copy_begins_another_epoch() {
    let member = Member::start(&[]).unwrap();
    let url = member.url(member.port, "lost");
    let stores = [open(&url), open(&url)];
    let resource = stores[0].resource("core/configmaps");
    let kept = stores[0].commit(Write::create(&resource, "kept", object(1)));
    let kept = kept.await.unwrap().revision;
    let saved = tempfile::tempdir().unwrap();
    tokio::task::block_in_place(|| {
        member.kill();
        copy(&member.data(), saved.path());
        member.run(&[]);
    });
    let lost = stores[0].commit(Write::create(&resource, "lost", object(1)));
    let lost = lost.await.unwrap().revision;
    wait_for("both have it", || stores[1].visible() == lost).await;
    let there = stores[1].resource("core/configmaps");
    let mut watcher = there.watch(WatchSpec::all(lost)).unwrap();
    tokio::task::block_in_place(|| {
        member.kill();
        std::fs::remove_dir_all(member.data()).unwrap();
        copy(saved.path(), &member.data());
        member.run(&[]);
    });
    for store in &stores {
        wait_for("another epoch", || store.visible() >= lost + (1 << 20)).await;
        let resource = store.resource("core/configmaps");
        assert!(resource.get("lost").is_none() && resource.get("kept").is_some());
        for version in [kept, lost] {
            assert!(resource.watch(WatchSpec::all(version)).is_err());
        }
        assert!(store.poison().is_none());
    }
    let ended = watcher.next_batch(9).await.unwrap_err();
    assert!(matches!(ended, WatchError::Expired { floor } if floor > lost + (1 << 19)));
    let again = stores[1]
        .commit(Write::create(&there, "lost", object(2)))
        .await;
    let again = again.unwrap();
    assert!(again.revision > lost + (1 << 20));
    wait_for("both go on", || stores[0].visible() == again.revision).await;
    // Only one of the stores began the epoch.
    assert!(member.get("/lost/t").contains(r#""epoch":2"#));
    for store in &stores {
        store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_history_of_the_same_length_begins_another_epoch() {
    let member = Member::start(&[]).unwrap();
    let url = member.url(member.port, "other");
    let store = open(&url);
    let resource = store.resource("core/configmaps");
    let saved = tempfile::tempdir().unwrap();
    tokio::task::block_in_place(|| {
        member.kill();
        copy(&member.data(), saved.path());
        member.run(&[]);
    });
    let mine = store.commit(Write::create(&resource, "mine", object(1)));
    let mine = mine.await.unwrap().revision;
    tokio::task::block_in_place(|| {
        member.kill();
        std::fs::remove_dir_all(member.data()).unwrap();
        copy(saved.path(), &member.data());
        member.run(&[]);
    });
    // A new server does not know the lost writes, and may be the first to write.
    let other = open(&url);
    let there = other.resource("core/configmaps");
    for key in ["theirs", "more"] {
        let write = Write::create(&there, key, object(2));
        other.commit(write).await.unwrap();
    }
    for store in [&store, &other] {
        wait_for("another epoch", || store.visible() >= mine + (1 << 20)).await;
        assert!(store.resource("core/configmaps").get("mine").is_none());
        assert!(store.poison().is_none());
        store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_cluster_begins_another_epoch() {
    let member = lease();
    let prefix = "restored";
    let url = member.url(member.port, prefix);
    let store = open(&url);
    let resource = store.resource("core/configmaps");
    let first = store
        .commit(Write::create(&resource, "a", object(1)))
        .await
        .unwrap();
    store.close().await;
    // What a server sees after `etcdutl snapshot restore` when it connects.
    let key = format!("/{prefix}/m");
    let meta = member.get(&key);
    let (head, tail) = meta.split_once(r#""cluster":""#).unwrap();
    let (_, tail) = tail.split_once('"').unwrap();
    member.put(&key, &format!(r#"{head}"cluster":"1"{tail}"#));
    let store = open(&url);
    wait_for("another epoch", || {
        store.visible() >= first.revision + (1 << 20)
    })
    .await;
    let resource = store.resource("core/configmaps");
    assert!(resource.get("a").is_some());
    assert!(resource.watch(WatchSpec::all(first.revision)).is_err());
    let last = store.visible();
    store.close().await;
    // The epoch begins only once.
    let store = open(&url);
    assert_eq!(store.visible(), last);
    store.close().await;
}
