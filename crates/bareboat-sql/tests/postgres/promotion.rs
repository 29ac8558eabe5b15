//! Tests of a log that loses its last writes: a promoted standby, a restored copy.

use std::time::{Duration, Instant};

use bareboat_storage::{CommitError, Committed, Store, WatchError, WatchSpec, Write};

use super::cluster::{Cluster, shared};
use super::{object, open, wait_for};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_writes_begin_another_epoch() {
    // A copy that lacks the last batch, and a copy to which other servers have written in the meantime.
    for (schema, rewritten) in [("lost_tail", false), ("lost_other", true)] {
        let cluster = shared();
        let stores = [0, 1].map(|_| open(&cluster.url(cluster.port, schema)));
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
                "INSERT INTO {schema}.log (rev, prev, resource, key, value)
                     SELECT rev, 0, 'core/pods', 'x' || rev, convert_to('{}', 'UTF8') FROM generate_series({last}, {last} + 1) rev;
                 INSERT INTO {schema}.batch (first, last, id, writer, epoch, digest, bytes)
                     VALUES ({last}, {last} + 1, gen_random_uuid(), gen_random_uuid(), 1, sha256('other'), 9);",
                std::str::from_utf8(&object(1)).unwrap()
            ),
        };
        // The state of a standby that lagged by one batch.
        let lose = format!(
            "BEGIN; SELECT pg_advisory_xact_lock(1113682533, '{schema}'::regnamespace::oid::int);
            DELETE FROM {schema}.log WHERE rev = {last}; DELETE FROM {schema}.batch WHERE last = {last}; {go_on} COMMIT"
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
            "SELECT epoch, (SELECT count(*) FROM {schema}.log WHERE resource = '') FROM {schema}.meta"
        );
        assert_eq!(cluster.ask(&epochs).as_deref(), Some("2|1"));
        for store in &stores {
            store.close().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_timeline_begins_another_epoch() {
    let cluster = shared();
    let url = cluster.url(cluster.port, "timeline");
    let store = open(&url);
    let resource = store.resource("core/configmaps");
    let first = store
        .commit(Write::create(&resource, "a", object(1)))
        .await
        .unwrap();
    store.close().await;
    // What a server sees after a promotion when it connects.
    cluster
        .ask("UPDATE timeline.meta SET timeline = '000000FF'")
        .unwrap();
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
    cluster
        .ask("UPDATE timeline.meta SET timeline = '000000FE'")
        .unwrap();
    let store = open(&format!("{url}&failover=trust"));
    assert!(store.visible() < first.revision + (2 << 20));
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_promoted_standby_that_lags_begins_another_epoch() {
    let primary = Cluster::start(&[]).unwrap();
    let standby = primary.standby();
    let url = format!(
        "postgres://postgres@127.0.0.1:{},127.0.0.1:{}/postgres?target_session_attrs=read-write",
        primary.port, standby.port
    );
    let stores = [open(&url), open(&url)];
    let resource = stores[0].resource("core/configmaps");
    let kept = stores[0].commit(Write::create(&resource, "kept", object(1)));
    let kept = kept.await.unwrap().revision;
    let there = "SELECT max(rev) FROM bareboat.log";
    wait_for("the standby follows", || {
        standby.ask(there) == Some(kept.to_string())
    })
    .await;
    // The standby stops replicating, and writes continue.
    standby
        .ask("ALTER SYSTEM SET primary_conninfo TO ''")
        .unwrap();
    standby.ask("SELECT pg_reload_conf()").unwrap();
    let receiving = "SELECT count(*) FROM pg_stat_wal_receiver";
    wait_for("the standby is cut off", || {
        standby.ask(receiving).as_deref() == Some("0")
    })
    .await;
    let lost = stores[0].commit(Write::create(&resource, "lost", object(1)));
    let lost = lost.await.unwrap().revision;
    wait_for("both have it", || stores[1].visible() == lost).await;
    let mut watcher = resource.watch(WatchSpec::all(lost)).unwrap();
    primary.kill();
    standby.ask("SELECT pg_promote()").unwrap();
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
    // The old primary comes back, and is the first host of the address. It must receive no writes and serve no reads.
    primary.run(&[]);
    let cut = "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity
        WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
    standby.ask(cut).unwrap();
    let patience = Duration::from_secs(20);
    for store in &stores {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let refused = store.freshen(patience).await.unwrap_err();
            let why = std::error::Error::source(&refused).unwrap().to_string();
            if why.contains("older epoch") {
                break;
            }
            // The store may not have noticed yet that its connection was cut.
            assert!(Instant::now() < deadline, "{why}");
        }
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
    primary.kill();
    for store in &stores {
        assert!(store.freshen(patience).await.unwrap());
        assert!((again.revision..=most).contains(&store.visible()));
        store.close().await;
    }
}
