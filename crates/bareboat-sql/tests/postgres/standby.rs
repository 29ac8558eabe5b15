//! Tests of standbys: one that is synchronous is promoted and trusted, and one that was not promoted is refused.

use std::time::Duration;

use bareboat_sql::{Postgres, SqlError};
use bareboat_storage::{WatchSpec, Write};

use super::cluster::Cluster;
use super::{object, open, wait_for};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_promoted_synchronous_standby_continues_the_history() {
    let primary = Cluster::start(&[]).unwrap();
    let standby = primary.standby();
    primary
        .ask("ALTER SYSTEM SET synchronous_standby_names TO 'ANY 1 (*)'")
        .unwrap();
    primary.ask("SELECT pg_reload_conf()").unwrap();
    let synchronous = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'quorum'";
    wait_for("the standby is synchronous", || {
        primary.ask(synchronous).as_deref() == Some("1")
    })
    .await;
    // A standby alone is not a store.
    let refused = Postgres::open(&standby.fresh()).unwrap_err();
    assert!(matches!(refused, SqlError::Unsafe(_)), "{refused}");
    assert!(refused.to_string().contains("standby"), "{refused}");
    let url = format!(
        "postgres://postgres@127.0.0.1:{},127.0.0.1:{}/postgres?target_session_attrs=read-write&failover=trust",
        primary.port, standby.port
    );
    let stores = [open(&url), open(&url)];
    let resource = stores[0].resource("core/configmaps");
    let there = stores[1].resource("core/configmaps");
    let first = stores[0].commit(Write::create(&resource, "k-0", object(0)));
    let first = first.await.unwrap().revision;
    wait_for("both have it", || stores[1].visible() == first).await;
    let mut watcher = there.watch(WatchSpec::all(first)).unwrap();
    let mut last = first;
    for n in 1..40 {
        if n == 20 {
            tokio::task::block_in_place(|| primary.kill());
            standby.ask("SELECT pg_promote()").unwrap();
            standby
                .ask("ALTER SYSTEM SET synchronous_standby_names TO ''")
                .unwrap();
            standby.ask("SELECT pg_reload_conf()").unwrap();
        }
        let key = format!("k-{n}");
        let done = stores[n as usize % 2].commit(match n % 2 {
            0 => Write::create(&resource, key, object(n)),
            _ => Write::create(&there, key, object(n)),
        });
        let done = done.await.unwrap().revision;
        assert_eq!(done, last + 1, "nothing is lost, and no epoch begins");
        last = done;
    }
    for store in &stores {
        assert!(store.freshen(Duration::from_secs(30)).await.unwrap());
        assert_eq!(store.resource("core/configmaps").len(), 40);
    }
    // The watch goes on without a gap.
    let mut seen = Vec::new();
    while seen.last() != Some(&last) {
        let events = watcher.next_batch(50).await.unwrap();
        seen.extend(events.iter().map(|event| event.rev));
    }
    assert!(seen.iter().copied().eq(first + 1..=last), "{seen:?}");
    for store in &stores {
        store.close().await;
    }
}
