//! Tests of a process of the database that is stopped in the middle of an append, and goes on after the store has
//! repeated the append over another connection.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bareboat_rig::plan;
use bareboat_rig::proxy::Proxy;
use bareboat_storage::Write;

use super::cluster::Cluster;
use super::{object, open, wait_for};

fn signal(name: &str, pid: &str) {
    let sent = Command::new("kill")
        .args([format!("-{name}"), pid.to_owned()])
        .status();
    assert!(sent.unwrap().success());
}

/// Returns the address of a schema, for a role of its name: its sessions are told from others by the role.
fn as_own_role(cluster: &Cluster, port: u16, schema: &str) -> String {
    let role = format!("CREATE ROLE {schema} SUPERUSER LOGIN");
    cluster.ask(&role).unwrap();
    let url = cluster.url(port, schema);
    url.replace("postgres@", &format!("{schema}@"))
}

/// Returns the process of the session whose last or current statement is an append of this test, in this state.
fn process(cluster: &Cluster, name: &str, state: &str) -> Option<String> {
    let found = format!(
        "SELECT a.pid FROM pg_stat_activity a JOIN pg_locks l ON l.pid = a.pid
            WHERE a.usename = '{name}' AND a.query LIKE '%append_v1%' AND {state} LIMIT 1"
    );
    cluster.ask(&found).filter(|pid| !pid.is_empty())
}

/// Returns the revisions, predecessors, batches and digests of the log.
fn log(cluster: &Cluster, schema: &str) -> String {
    let all = format!(
        "SELECT (SELECT string_agg(rev || ' ' || prev || ' ' || key, ',' ORDER BY rev) FROM {schema}.log),
            (SELECT string_agg(first || ' ' || last || ' ' || id || ' ' || digest, ',' ORDER BY first) FROM {schema}.batch)"
    );
    cluster.ask(&all).unwrap()
}

/// A session that holds the lock of all writers.
struct Locker(Child);

impl Locker {
    fn lock(cluster: &Cluster, schema: &str) -> Self {
        let lock = format!(
            "SELECT pg_advisory_lock(1113682533, '{schema}'::regnamespace::oid::int); SELECT pg_sleep(600)"
        );
        let mut psql = cluster.psql(&lock);
        let psql = psql.env("PGAPPNAME", format!("{schema}_locker"));
        Self(psql.stdout(Stdio::null()).spawn().unwrap())
    }

    fn release(mut self, cluster: &Cluster, schema: &str) {
        let end = format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{schema}_locker'"
        );
        cluster.ask(&end).unwrap();
        let _ = self.0.wait();
    }
}

/// The process has received the append and has not begun with it. The repetition is faster.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_append_of_a_stopped_process_changes_nothing_after_its_repetition() {
    // A server of its own: while its processes are stopped, those of other tests would wait for them.
    let (cluster, schema) = (&Cluster::start(&[]).unwrap(), "stopped_before");
    let proxy = Proxy::to(cluster.port);
    let store = open(&as_own_role(cluster, proxy.port, schema));
    let resource = store.resource("core/configmaps");
    let rounds = plan::count(3, 50);
    for n in 0..rounds {
        let first = Write::create(&resource, format!("first-{n}"), object(n));
        let before = store.commit(first).await.unwrap().revision;
        // All sessions of the store: one of them is for appends.
        let sessions = format!("SELECT pid FROM pg_stat_activity WHERE usename = '{schema}'");
        let sessions = cluster.ask(&sessions).unwrap();
        let sessions: Vec<&str> = sessions.lines().collect();
        sessions.iter().for_each(|pid| signal("STOP", pid));
        let committing = tokio::spawn({
            let (store, resource) = (store.clone(), resource.clone());
            async move {
                let write = Write::create(&resource, format!("late-{n}"), object(n));
                store.commit(write).await
            }
        });
        // The request is in the socket of the process.
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!(!committing.is_finished());
        proxy.drop_all();
        let done = committing.await.unwrap().unwrap();
        assert_eq!(done.revision, before + 1);
        let known = log(cluster, schema);
        sessions.iter().for_each(|pid| signal("CONT", pid));
        let gone = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE pid IN ({})",
            sessions.join(",")
        );
        wait_for("the processes end", || {
            cluster.ask(&gone).as_deref() == Some("0")
        })
        .await;
        assert_eq!(log(cluster, schema), known, "round {n}");
    }
    store.close().await;
}

/// The process waits for the lock, and gets it while it is stopped: the repetition waits for it, and finds the batch.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_append_of_a_stopped_process_that_has_the_lock_happens_once() {
    let (cluster, schema) = (&Cluster::start(&[]).unwrap(), "stopped_locked");
    let proxy = Proxy::to(cluster.port);
    let store = open(&as_own_role(cluster, proxy.port, schema));
    let resource = store.resource("core/configmaps");
    let before = store
        .commit(Write::create(&resource, "first", object(0)))
        .await
        .unwrap()
        .revision;
    let locker = Locker::lock(cluster, schema);
    let locked = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = '{schema}_locker' AND wait_event = 'PgSleep'"
    );
    wait_for("the lock is held", || {
        cluster.ask(&locked).as_deref() == Some("1")
    })
    .await;
    let committing = tokio::spawn({
        let (store, resource) = (store.clone(), resource.clone());
        async move {
            store
                .commit(Write::create(&resource, "once", object(1)))
                .await
        }
    });
    let waits = || {
        process(
            cluster,
            schema,
            "a.wait_event = 'advisory' AND NOT l.granted",
        )
    };
    wait_for("the append waits", || waits().is_some()).await;
    let pid = waits().unwrap();
    signal("STOP", &pid);
    proxy.drop_all();
    locker.release(cluster, schema);
    // The repetition has come, and waits.
    let waiting = || {
        let found = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE usename = '{schema}'
                AND wait_event = 'advisory' AND pid <> {pid}"
        );
        cluster.ask(&found).is_some_and(|count| count != "0")
    };
    wait_for("the repetition waits", waiting).await;
    assert!(!committing.is_finished());
    signal("CONT", &pid);
    let done = committing.await.unwrap().unwrap();
    assert_eq!(done.revision, before + 1);
    let count = format!("SELECT count(*) FROM {schema}.log WHERE key = 'once'");
    assert_eq!(cluster.ask(&count).as_deref(), Some("1"));
    let after = Write::create(&resource, "after", object(2));
    assert_eq!(store.commit(after).await.unwrap().revision, before + 2);
    store.close().await;
}
