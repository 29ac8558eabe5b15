//! Tests of a log that loses its last writes: a promoted standby, a restored copy.

use bareboat_storage::{CommitError, Committed, Store, WatchError, WatchSpec, Write};

use super::cluster::{Cluster, shared};
use super::{object, open, wait_for};
use bareboat_rig::proxy::Proxy;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_writes_begin_another_epoch() {
    // A copy that lacks the last batch, and a copy to which other servers have written in the meantime.
    for (database, rewritten) in [("lost_tail", false), ("lost_other", true)] {
        let cluster = shared();
        let url = cluster.url(cluster.port, database);
        let stores = [0, 1].map(|_| open(&url));
        let resource = stores[0].resource("core/configmaps");
        let mut revisions = Vec::new();
        for key in ["kept", "lost"] {
            let create = Write::create(&resource, key, object(1));
            revisions.push(stores[0].commit(create).await.unwrap().revision);
        }
        let last = revisions[1];
        wait_for("both have it", || stores[1].visible() == last).await;
        let there = stores[1].resource("core/configmaps");
        let mut watcher = there.watch(WatchSpec::all(last)).unwrap();
        let go_on = match rewritten {
            false => String::new(),
            true => format!(
                "SET @value = '{}';
                 INSERT INTO log VALUES ({last}, 0, '', 'core/pods', 'x', NULL, @value), ({last} + 1, 0, '', 'core/pods', 'y', NULL, @value);
                 INSERT INTO batch VALUES ({last}, {last} + 1, 'a', 'b', 1, 'other', 9, UTC_TIMESTAMP(6));
                 UPDATE meta SET last = {last} + 1, digest = 'other';",
                std::str::from_utf8(&object(1)).unwrap()
            ),
        };
        let lose = format!(
            "USE {database}; START TRANSACTION; SELECT last FROM meta FOR UPDATE;
             DELETE FROM log WHERE rev = {last}; DELETE FROM batch WHERE last = {last};
             UPDATE meta SET last = {last} - 1, digest = (SELECT digest FROM batch ORDER BY first DESC LIMIT 1);
             {go_on} COMMIT"
        );
        cluster.ask(&lose).unwrap();
        for store in &stores {
            wait_for("another epoch", || store.visible() > last + (1 << 19)).await;
            let resource = store.resource("core/configmaps");
            assert!(resource.get("lost").is_none() && resource.get("kept").is_some());
            assert!(resource.watch(WatchSpec::all(last)).is_err());
            assert!(store.poison().is_none());
        }
        let ended = watcher.next_batch(9).await.unwrap_err();
        assert!(matches!(ended, WatchError::Expired { floor } if floor > last + (1 << 19)));
        let again = stores[1].commit(Write::create(&there, "lost", object(2)));
        let again = again.await.unwrap();
        assert!(again.revision > last + (1 << 20));
        wait_for("both go on", || stores[0].visible() == again.revision).await;
        let epochs = format!(
            "SELECT epoch, (SELECT count(*) FROM {database}.log WHERE resource = '') FROM {database}.meta"
        );
        assert_eq!(cluster.ask(&epochs).as_deref(), Some("2|1"));
        for store in &stores {
            store.close().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_server_begins_another_epoch() {
    let cluster = shared();
    let url = cluster.url(cluster.port, "other_server");
    let store = open(&url);
    let resource = store.resource("core/configmaps");
    let first = store
        .commit(Write::create(&resource, "a", object(1)))
        .await
        .unwrap();
    store.close().await;
    // Replication carries the name of the old primary to a promoted standby.
    let rename = |name| {
        let rename = format!("UPDATE other_server.meta SET server = '{name}'");
        cluster.ask(&rename).unwrap();
    };
    rename("old-primary");
    let store = open(&url);
    wait_for("another epoch", || {
        store.visible() >= first.revision + (1 << 20)
    })
    .await;
    let resource = store.resource("core/configmaps");
    assert!(resource.get("a").is_some());
    assert!(resource.watch(WatchSpec::all(first.revision)).is_err());
    store.close().await;
    // With `failover=trust` and the last known batch present, the history continues.
    rename("older-primary");
    let store = open(&format!("{url}?failover=trust"));
    assert!(store.visible() < first.revision + (2 << 20));
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_promoted_replica_that_lags_begins_another_epoch() {
    let primary = ["log-bin=binlog", "sync-binlog=1", "server-id=1"];
    let primary = Cluster::start(&primary).unwrap();
    let standby = Cluster::start(&["server-id=2", "read-only=1"]).unwrap();
    let follow = format!(
        "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={}, MASTER_USER='root',
            MASTER_USE_GTID=slave_pos; START SLAVE",
        primary.port
    );
    standby.ask(&follow).unwrap();
    // The address leads to the primary at first.
    let address = Proxy::to(primary.port);
    let url = primary
        .url(primary.port, "bareboat")
        .replace(&primary.port.to_string(), &address.port.to_string());
    let stores = [open(&url), open(&url)];
    let resource = stores[0].resource("core/configmaps");
    let kept = stores[0].commit(Write::create(&resource, "kept", object(1)));
    let kept = kept.await.unwrap().revision;
    let there = "SELECT max(rev) FROM bareboat.log";
    wait_for("the standby follows", || {
        standby.ask(there) == Some(kept.to_string())
    })
    .await;
    let refused =
        bareboat_sql::Mysql::open(&format!("mysql://root@127.0.0.1:{}/bareboat", standby.port));
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("read_only=1"), "{refused}");
    // The standby stops replicating, and writes continue.
    standby.ask("STOP SLAVE").unwrap();
    let lost = stores[0].commit(Write::create(&resource, "lost", object(1)));
    let lost = lost.await.unwrap().revision;
    wait_for("both have it", || stores[1].visible() == lost).await;
    let mut watcher = resource.watch(WatchSpec::all(lost)).unwrap();
    primary.kill();
    standby.ask("SET GLOBAL read_only = 0").unwrap();
    address.lead_to(standby.port);
    for store in &stores {
        wait_for("another epoch", || store.visible() >= lost + (1 << 20)).await;
        let resource = store.resource("core/configmaps");
        assert!(resource.get("kept").is_some() && resource.get("lost").is_none());
        for version in [kept, lost] {
            assert!(resource.watch(WatchSpec::all(version)).is_err());
        }
        assert!(store.poison().is_none());
    }
    let ended = watcher.next_batch(9).await.unwrap_err();
    assert!(matches!(ended, WatchError::Expired { .. }), "{ended}");
    let again = stores[1].resource("core/configmaps");
    let again = stores[1].commit(Write::create(&again, "lost", object(2)));
    let again = again.await.unwrap();
    wait_for("both go on", || stores[0].visible() == again.revision).await;
    // The old primary comes back, and the address leads to it. It must receive no writes and serve no reads.
    primary.run(&["log-bin=binlog", "sync-binlog=1", "server-id=1"]);
    address.lead_to(primary.port);
    for store in &stores {
        let patience = std::time::Duration::from_secs(20);
        let refused = store.freshen(patience).await.unwrap_err();
        let why = std::error::Error::source(&refused).unwrap().to_string();
        assert!(why.contains("older epoch"), "{why}");
    }
    let write = |store: &Store| {
        let resource = store.resource("core/configmaps");
        let (created, store) = (Write::create(&resource, "old", object(3)), store.clone());
        async move { store.commit(created).await }
    };
    let (first, second) = tokio::join!(write(&stores[0]), write(&stores[1]));
    assert!(first.is_err() && second.is_err(), "{first:?} {second:?}");
    // One that was sent over a lost connection is sent again to the next server; one that was refused is not.
    let unknown = |write: &Result<Committed, CommitError>| {
        u64::from(matches!(write, Err(CommitError::Unknown(_))))
    };
    let most = again.revision + unknown(&first) + unknown(&second);
    for store in &stores {
        assert_eq!(store.visible(), again.revision);
        let resource = store.resource("core/configmaps");
        assert!(resource.get("old").is_none());
        assert_eq!(resource.get("lost").unwrap().revision(), again.revision);
    }
    assert_eq!(primary.ask(there), Some(lost.to_string()));
    address.lead_to(standby.port);
    for store in &stores {
        let visible = async || store.freshen(std::time::Duration::from_secs(20)).await;
        assert!(visible().await.unwrap());
        assert!((again.revision..=most).contains(&store.visible()));
        store.close().await;
    }
}
