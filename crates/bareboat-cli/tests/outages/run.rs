//! A run: servers, load, watchers and faults, and the check of everything at the end.

use crate::database::Database;
use crate::disturb::disturb;
use crate::fleet::Fleet;
use crate::load::{Client, NAMESPACE, revision};
use crate::log;
use crate::process::run;
use crate::server::bareboat;
use crate::watchers::{END, Watcher};
use bareboat_rig::history::{History, Operation, Outcome, Stream, assert_explained};
use bareboat_rig::plan::{self, Dice};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, ListParams, PostParams};
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// How long faults are injected in `make test`.
const SHORT: Duration = Duration::from_secs(20);
/// The checker needs the whole log.
pub(crate) const RETAIN: &[&str] = &["--retain-for", "48h", "--retain-revisions", "100000000"];
const CLIENTS: usize = 12;
const WATCHERS: usize = 6;

/// Clients and watchers that work.
pub(crate) struct Work {
    /// The revision before the first write.
    pub(crate) after: u64,
    servers: Vec<kube::Client>,
    stop: Arc<AtomicBool>,
    /// The answers with a code of 500 or above.
    pub(crate) errors: Arc<Mutex<Vec<String>>>,
    clients: Vec<JoinHandle<Vec<Operation>>>,
    watchers: Vec<JoinHandle<(Vec<Stream>, u64)>>,
}

impl Work {
    /// Starts clients and watchers of all servers.
    pub(crate) async fn start(fleet: &Fleet, seed: u64) -> Self {
        let servers = fleet.clients().await;
        let space: Namespace =
            serde_json::from_value(json!({"metadata": {"name": NAMESPACE}})).unwrap();
        let spaces = Api::all(servers[0].clone());
        spaces.create(&PostParams::default(), &space).await.unwrap();
        let maps: Api<ConfigMap> = Api::namespaced(servers[0].clone(), NAMESPACE);
        // A controller writes one object into every namespace, also into this new one.
        let deadline = Instant::now() + Duration::from_secs(60);
        while maps
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .is_empty()
        {
            assert!(Instant::now() < deadline, "no controller works");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let list = maps.list(&ListParams::default()).await.unwrap();
        let after = revision(list.metadata.resource_version.as_deref());
        let (start, stop) = (Instant::now(), Arc::new(AtomicBool::new(false)));
        let errors = Arc::new(Mutex::default());
        let client = |number: usize| {
            let client = Client {
                number,
                servers: servers.clone(),
                start,
                stop: stop.clone(),
                dice: Dice::new(seed, number as u64 + 1),
                pause: Duration::from_millis(40),
                errors: errors.clone(),
            };
            tokio::spawn(client.run())
        };
        let watcher = |number: usize| {
            let dice = Dice::new(seed, 1000 + number as u64);
            tokio::spawn(Watcher::new(servers.clone(), dice, after).run())
        };
        Self {
            after,
            clients: (0..CLIENTS).map(client).collect(),
            watchers: (0..WATCHERS).map(watcher).collect(),
            servers,
            stop,
            errors,
        }
    }

    /// Ends the load, waits until every watcher has seen everything, and returns the history without the log.
    pub(crate) async fn end(self) -> History {
        self.stop.store(true, Ordering::Relaxed);
        let mut operations = Vec::new();
        for client in self.clients {
            operations.extend(client.await.unwrap());
        }
        let map = json!({"metadata": {"name": END}, "data": {"n": "end"}});
        let map: ConfigMap = serde_json::from_value(map).unwrap();
        let deadline = Instant::now() + Duration::from_secs(120);
        for server in self.servers.iter().cycle() {
            let maps: Api<ConfigMap> = Api::namespaced(server.clone(), NAMESPACE);
            let made = maps.create(&PostParams::default(), &map).await;
            if made.is_ok() || maps.get(END).await.is_ok() {
                break;
            }
            assert!(
                Instant::now() < deadline,
                "nothing can be written: {made:?}"
            );
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        let (mut streams, mut connections) = (Vec::new(), 0);
        for watcher in self.watchers {
            let watched = tokio::time::timeout(Duration::from_secs(120), watcher).await;
            let (all, connected) = watched.expect("a watcher stays behind").unwrap();
            streams.extend(all);
            connections += connected;
        }
        println!("{WATCHERS} watchers, {connections} connections");
        let least = match plan::torture() {
            // A watcher moves every few seconds, and all of them a hundred times in a minute.
            Some(length) if length >= Duration::from_secs(60) => 100,
            _ => WATCHERS as u64,
        };
        assert!(connections >= least, "{connections} connections");
        History {
            after: self.after,
            operations,
            streams,
            ..History::default()
        }
    }
}

/// Says what a run consisted of, and that it was not empty.
pub(crate) fn report(name: &str, history: &History, faults: usize) {
    let count = |wanted: fn(&Outcome) -> bool| {
        let operations = history.operations.iter();
        operations.filter(|one| wanted(&one.outcome)).count()
    };
    let written = count(|outcome| matches!(outcome, Outcome::Written(_)));
    let read = count(|outcome| matches!(outcome, Outcome::Found(_) | Outcome::Listed { .. }));
    let conflicts = count(|outcome| *outcome == Outcome::Conflict);
    let refused = count(|outcome| *outcome == Outcome::Refused);
    let unknown = count(|outcome| *outcome == Outcome::Unknown);
    let events: usize = history
        .streams
        .iter()
        .map(|stream| stream.events.len())
        .sum();
    println!(
        "{name}: {faults} faults, {} records; {written} written, {read} read, {conflicts} conflicts, {refused} refused, {unknown} unknown; {} streams with {events} events",
        history.rows.len(),
        history.streams.len(),
    );
    assert!(
        written > 50 && read > 50 && events > written,
        "the load did not work"
    );
}

/// Runs servers under load while faults are injected, and checks everything.
pub(crate) async fn faults(name: &str, database: Database, servers: usize) {
    let seed = plan::seed();
    let fleet = tokio::task::block_in_place(|| Fleet::fragile(&database, servers, RETAIN));
    let work = Work::start(&fleet, seed).await;
    println!("{name}: seed {seed}");
    let faults = tokio::task::block_in_place(|| {
        disturb(&fleet, &database, Dice::new(seed, 0), plan::length(SHORT))
    });
    let mut history = work.end().await;
    let url = database.url(database.port());
    history.rows = tokio::task::block_in_place(|| log::read(&url, history.after));
    report(name, &history, faults);
    assert_explained(name, &history);
    healthy(&url);
}

/// Examines the log with `bareboat doctor`, which must find nothing.
pub(crate) fn healthy(url: &str) {
    let doctor = ["doctor", "--storage", url, "-o", "json"];
    let output = tokio::task::block_in_place(|| run(&mut bareboat(doctor), ""));
    let report: serde_json::Value = serde_json::from_str(&output.stdout).unwrap_or_default();
    assert_eq!(report["findings"], json!([]), "{}", output.all());
}
