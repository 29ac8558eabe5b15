//! Tests of a server that takes no writes: a full disk, a server that becomes read-only.

use std::process::Command;
use std::time::{Duration, Instant};

use bareboat_rig::checks::a_full_disk_fails_writes_and_not_reads;
use bareboat_rig::small_disk::SmallDisk;
use bareboat_storage::{CommitError, Expect, WatchSpec, Write};

use super::cluster::Cluster;
use super::{object, open};

/// The tables are on the small disk, the log of the database is not.
///
/// Objects are small: InnoDB keeps large values in pages of their own, and MariaDB ends itself when there is no space for
/// such a page.
#[test]
fn a_full_disk_is_survived() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(folder.path(), 24, 8) else {
        return;
    };
    let cluster = Cluster::start(&[]).unwrap();
    let url = cluster.url(cluster.port, "space");
    let place = folder.path().join("space");
    let tables = cluster.data().join("space");
    let moved = Command::new("mv").arg(&tables).arg(&place).status();
    assert!(moved.unwrap().success());
    std::os::unix::fs::symlink(&place, &tables).unwrap();
    let store = open(&url);
    a_full_disk_fails_writes_and_not_reads(&store, 1_500, || disk.make_space());
    drop(store);
    cluster.kill();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_becomes_read_only_refuses_writes_and_serves_reads() {
    let cluster = Cluster::start(&[]).unwrap();
    let url = cluster.url(cluster.port, "frozen");
    // An administrator may write to a server that is read-only.
    cluster
        .ask("CREATE USER plain@'127.0.0.1'; GRANT ALL ON frozen.* TO plain@'127.0.0.1'")
        .unwrap();
    let store = open(&url.replace("root@", "plain@"));
    let resource = store.resource("core/configmaps");
    let first = store.commit(Write::create(&resource, "a", object(1)));
    let first = first.await.unwrap().revision;
    let mut watcher = resource.watch(WatchSpec::all(first)).unwrap();
    cluster.ask("SET GLOBAL read_only = 1").unwrap();
    for _ in 0..2 {
        let start = Instant::now();
        let write = Write::create(&resource, "b", object(1));
        let refused = store.commit(write).await.unwrap_err();
        println!("{refused} after {:?}", start.elapsed());
        assert!(matches!(refused, CommitError::ReadOnly), "{refused:?}");
        assert!(start.elapsed() < Duration::from_secs(15));
        assert!(store.poison().is_none());
        assert!(store.freshen(Duration::from_secs(10)).await.unwrap());
        assert!(resource.get("a").is_some() && resource.get("b").is_none());
    }
    assert!(
        store.compact(store.visible()).await.is_ok(),
        "compaction waits"
    );
    assert!(store.poison().is_none());
    cluster.ask("SET GLOBAL read_only = 0").unwrap();
    let write = Write::create(&resource, "b", object(2)).expecting(Expect::Absent);
    let second = store.commit(write).await.unwrap();
    assert_eq!(second.revision, first + 1, "nothing else was written");
    assert_eq!(watcher.next_batch(9).await.unwrap()[0].rev, first + 1);
    store.close().await;
    cluster.kill();
}
