//! Tests of idle sessions: how often they poll, and what happens when a writer stops while it holds the log.

use std::time::{Duration, Instant};

use bareboat_rig::plan;
use bareboat_sql::Mysql;
use bareboat_storage::{Appended, Backend as _, Batch, Record, Value, WatchSpec};

use super::cluster::{Cluster, shared};
use super::{object, open};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_servers_ask_little() {
    let cluster = Cluster::start(&[]).unwrap();
    let store = open(&cluster.fresh());
    let asked = || -> f64 {
        let status = cluster.ask("SHOW GLOBAL STATUS LIKE 'Questions'").unwrap();
        status.rsplit('|').next().unwrap().parse().unwrap()
    };
    let rate = async || {
        let (before, begun) = (asked(), Instant::now());
        tokio::time::sleep(Duration::from_secs(2)).await;
        // Do not count the queries of this test.
        (asked() - before - 2.0) / begun.elapsed().as_secs_f64()
    };
    let alone = plan::lowest_rate(13.0, &rate).await;
    assert!(alone > 0.0 && alone <= 13.0, "{alone} statements a second");
    let resource = store.resource("core/pods");
    let _watcher = resource.watch(WatchSpec::all(store.visible())).unwrap();
    let watched = plan::lowest_rate(53.0, &rate).await;
    assert!(watched <= 53.0, "{watched} statements a second");
    store.close().await;
}

/// Returns the processor time that a process has used.
fn used(pid: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // The name of the program is in parentheses. The times are in hundredths of a second.
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    let fields: Vec<&str> = fields.split(' ').collect();
    let ticks = |at: usize| fields[at].parse::<u64>().unwrap();
    Duration::from_millis(10 * (ticks(11) + ticks(12)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_idle_servers_ask_little() {
    let cluster = Cluster::start(&[]).unwrap();
    let url = cluster.fresh();
    let stores = [0, 1, 2].map(|_| open(&url));
    let asked = || -> f64 {
        let status = cluster.ask("SHOW GLOBAL STATUS LIKE 'Questions'").unwrap();
        status.rsplit('|').next().unwrap().parse().unwrap()
    };
    let measure = async || {
        tokio::time::sleep(Duration::from_secs(1)).await;
        // The time includes both counts, or a slow answer would raise the rate.
        let (begun, before, work) = (Instant::now(), asked(), used(cluster.pid()));
        tokio::time::sleep(Duration::from_secs(plan::count(3, 60))).await;
        let (after, used) = (asked(), used(cluster.pid()));
        let time = begun.elapsed().as_secs_f64();
        let work = (used - work).as_secs_f64() / time;
        ((after - before - 2.0) / time, work)
    };
    let (alone, work) = measure().await;
    println!("three idle stores: {alone:.1} statements a second, {work:.4} of a core");
    assert!(alone < 40.0, "{alone} statements a second");
    assert!(plan::torture().is_none() || work < 0.01, "{work} of a core");
    let resources = stores.each_ref().map(|store| store.resource("core/pods"));
    let _watchers = resources
        .each_ref()
        .map(|resource| resource.watch(WatchSpec::all(stores[0].visible())).unwrap());
    let (watched, work) = measure().await;
    println!("with watchers: {watched:.1} statements a second, {work:.4} of a core");
    assert!(watched < 160.0, "{watched} statements a second");
    assert!(plan::torture().is_none() || work < 0.02, "{work} of a core");
    for store in &stores {
        store.close().await;
    }
}

fn batch(id: u128, after: u64) -> Batch {
    let record = Record {
        revision: after + 1,
        prev: 0,
        cluster: "".into(),
        resource: "core/pods".into(),
        key: format!("a/{id}").into(),
        actor: None,
        value: Some(Value::new(object(1))),
    };
    Batch {
        id,
        writer: id,
        records: vec![record],
    }
}

#[test]
fn a_writer_that_stops_while_it_holds_the_log_loses_its_lock() {
    let url = shared().fresh();
    let [slow, other] = [0, 1].map(|_| Mysql::open(&url).unwrap());
    let base = slow.mark().unwrap();
    let mut theirs = None;
    let appended = slow.append_held(&base, &mut |_| {
        // Returns when the server has ended the transaction that waits for this test.
        theirs = Some(other.append(&base, &batch(7, base.last)).unwrap());
        Some((base, batch(8, base.last)))
    });
    let end = batch(7, base.last).end(&base);
    assert_eq!(theirs, Some(Appended::Done(end)));
    let Ok(Some(Appended::Moved(tail))) = appended else {
        panic!("unexpected: {appended:?}");
    };
    assert_eq!(slow.tail(&base).unwrap(), tail);
    assert_eq!(slow.mark().unwrap(), end);
}
