//! A standby of PostgreSQL that lags is promoted under load: acknowledged writes are lost, and every client learns it.

use crate::fleet::Fleet;
use crate::log;
use crate::postgres::Cluster;
use crate::run::{RETAIN, Work, healthy, report};
use bareboat_rig::history::{Epoch, Outcome, Row, assert_explained};
use bareboat_rig::plan;
use std::time::{Duration, Instant};

/// Keeps a copy of every record in another table, which compaction does not know. An epoch raises the floor, and servers
/// soon delete most records below it; the checker needs them.
const KEEP: &str =
    "CREATE TABLE public.kept AS SELECT rev, prev, resource, key, value FROM faults.log;
    CREATE FUNCTION public.keep() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO public.kept VALUES (NEW.rev, NEW.prev, NEW.resource, NEW.key, NEW.value);
        RETURN NULL;
    END $$;
    CREATE TRIGGER keep AFTER INSERT ON faults.log FOR EACH ROW EXECUTE FUNCTION public.keep()";

/// Reads all records above a revision, and the epochs.
fn kept(cluster: &Cluster, after: u64) -> (Vec<Row>, Vec<Epoch>) {
    let select = format!(
        "SELECT rev || ' ' || prev || ' ' || resource || '/' || key || ' ' ||
            coalesce(translate(encode(value, 'base64'), E'\\n', ''), '-') FROM public.kept WHERE rev > {after} ORDER BY rev"
    );
    let text = cluster.ask(&select).unwrap();
    let (mut rows, mut epochs) = (Vec::new(), Vec::new());
    for line in text.lines() {
        let parts: Vec<&str> = line.split(' ').collect();
        let value = match parts[3] {
            "-" => None,
            text => {
                use base64::Engine as _;
                let engine = base64::engine::general_purpose::STANDARD;
                Some(engine.decode(text).unwrap())
            }
        };
        let (revision, prev) = (parts[0].parse().unwrap(), parts[1].parse().unwrap());
        let row = log::made(revision, prev, parts[2].to_owned(), value.as_deref());
        if parts[2].starts_with("/epoch-") {
            epochs.extend(log::epoch(&row, &value.unwrap()));
        }
        rows.push(row);
    }
    (rows, epochs)
}

/// Waits for work that blocks.
fn block<T>(work: impl FnOnce() -> T) -> T {
    tokio::task::block_in_place(work)
}

/// Waits until a question is answered as expected.
fn wait(cluster: &Cluster, question: &str, expected: &str) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while cluster.ask(question).as_deref() != Some(expected) {
        assert!(Instant::now() < deadline, "{question}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until the log has `more` records than it has now.
fn wait_for_writes(cluster: &Cluster, more: u64) {
    let last = "SELECT max(rev) FROM faults.log";
    let now: u64 = cluster.ask(last).unwrap().parse().unwrap();
    let question = format!("SELECT (SELECT max(rev) FROM faults.log) >= {}", now + more);
    wait(cluster, &question, "t");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_promoted_standby_that_lags_loses_only_what_it_declares() {
    let Some(primary) = Cluster::start(&[]) else {
        assert_ne!(
            std::env::var("CI").as_deref(),
            Ok("true"),
            "PostgreSQL is missing"
        );
        return eprintln!("skipped: PostgreSQL is missing");
    };
    let standby = primary.standby();
    let other = standby.port;
    let url = |port: u16| {
        format!(
            "postgres://postgres@127.0.0.1:{port},127.0.0.1:{other}/postgres?target_session_attrs=read-write&schema=faults"
        )
    };
    let fleet = block(|| Fleet::with(3, RETAIN, url, primary.port));
    block(|| primary.ask(KEEP).unwrap());
    let work = Work::start(&fleet, plan::seed()).await;
    let many = plan::count(100, 500);
    block(|| {
        wait_for_writes(&primary, many);
        // The standby stops following, and writes go on.
        standby
            .ask("ALTER SYSTEM SET primary_conninfo TO ''")
            .unwrap();
        standby.ask("SELECT pg_reload_conf()").unwrap();
        wait(&standby, "SELECT count(*) FROM pg_stat_wal_receiver", "0");
        wait_for_writes(&primary, many);
        primary.kill();
        standby.ask("SELECT pg_promote()").unwrap();
        wait(
            &standby,
            "SELECT count(*) FROM faults.log WHERE resource = ''",
            "1",
        );
        wait_for_writes(&standby, many);
    });
    let after = work.after;
    let mut history = work.end().await;
    let (rows, epochs) = block(|| kept(&standby, after));
    history.rows = rows;
    history.epochs = epochs;
    history.declared_epochs = 1;
    report("promotion", &history, 1);
    assert_explained("promotion", &history);
    let epoch = history.epochs[0];
    assert!(epoch.at >= epoch.from + (1 << 20));
    // Something was lost, or the test proves nothing; and every watcher had to list again.
    let lost = history.operations.iter().filter(|one| {
        matches!(one.outcome, Outcome::Written(Some(revision)) if revision > epoch.from && revision < epoch.at)
    });
    let lost = lost.count();
    println!("{lost} acknowledged writes were lost, as declared");
    assert!(lost > 0);
    let expired = history.streams.iter().filter(|stream| stream.expired);
    assert!(expired.count() >= 6);
    healthy(&url(primary.port));
}
