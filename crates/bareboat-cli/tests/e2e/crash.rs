//! Kills a server under load again and again, also while it recovers. Every acknowledged write is present, nothing is
//! present that was not written, and a resumed watch sees each change once.

use crate::process::PATIENCE;
use crate::server::Home;
use futures_util::{StreamExt as _, pin_mut};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{
    Api, DeleteParams, ListParams, ObjectList, ObjectMeta, PostParams, WatchEvent, WatchParams,
};
use kube::{Error, ResourceExt as _};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const WRITERS: u64 = 8;
const NAMES: u64 = 6;
const KILLS: u64 = 12;
const LAST: &str = "last";
/// Selects the objects of this test, not those of the server.
const OWN: &str = "app=crash";

/// An object as it was acknowledged.
#[derive(Clone, Debug, PartialEq)]
struct Held {
    value: String,
    version: u64,
}

/// A change of one name; a deletion is acknowledged without a resourceVersion.
#[derive(Clone, Debug, PartialEq)]
enum MapChange {
    Written(String, Held),
    Deleted(String),
}

#[test]
fn every_acknowledged_write_survives_sigkill_and_a_resumed_watch_has_no_gap() {
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let mut dice = Dice(seed.as_nanos() as u64 | 1);
    println!("seed {}", dice.0);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let home = Home::new();
    let mut server = home.serve();
    let over = Arc::new(AtomicBool::new(false));
    let count = Arc::new(AtomicU64::new(0));

    let watched = runtime.block_on(maps(&home));
    let start = runtime
        .block_on(watched.list(&ListParams::default().labels(OWN)))
        .unwrap();
    let watching = runtime.spawn(follow(watched, start));
    let writing: Vec<_> = (0..WRITERS)
        .map(|index| {
            let writer = Writer {
                index,
                maps: runtime.block_on(maps(&home)),
                held: BTreeMap::new(),
                changes: Vec::new(),
                newest: 0,
                uncertain: 0,
                dice: Dice(dice.roll()),
            };
            runtime.spawn(writer.work(over.clone(), count.clone()))
        })
        .collect();

    for round in 0..KILLS {
        let before = count.load(Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(100 + dice.roll() % 500));
        // Killing an idle server tests nothing: wait until it works again.
        let work = WRITERS + dice.roll() % 40;
        let begun = Instant::now();
        while count.load(Ordering::Relaxed) < before + work {
            assert!(server.is_alive(), "the server ended by itself");
            assert!(begun.elapsed() < PATIENCE, "no write in round {round}");
            std::thread::sleep(Duration::from_millis(20));
        }
        server.kill();
        if round % 3 == 1 {
            let recovering = home.launch();
            std::thread::sleep(Duration::from_millis(dice.roll() % 200));
            recovering.kill();
        }
        server = home.serve();
    }
    over.store(true, Ordering::Relaxed);

    let mut final_state = BTreeMap::new();
    let mut changes: Vec<Vec<MapChange>> = Vec::new();
    let mut uncertain = 0;
    for writer in writing {
        let writer = runtime.block_on(writer).expect("no writer found a fault");
        uncertain += writer.uncertain;
        final_state.extend(writer.held);
        changes.push(writer.changes);
    }
    let maps = runtime.block_on(maps(&home));
    let last = runtime
        .block_on(maps.create(&PostParams::default(), &config_map(LAST, "end", None)))
        .unwrap();
    final_state.insert(LAST.to_owned(), held(&last));

    let seen = runtime
        .block_on(async { tokio::time::timeout(PATIENCE, watching).await })
        .expect("the watch sees the last write")
        .expect("the watch is in order");
    let listed = runtime
        .block_on(maps.list(&ListParams::default().labels(OWN)))
        .unwrap();
    let listed: BTreeMap<_, _> = listed
        .iter()
        .map(|map| (map.name_any(), held(map)))
        .collect();
    assert_eq!(
        listed, final_state,
        "what is listed is what was acknowledged"
    );
    assert_eq!(
        replay(&seen),
        listed,
        "what was watched adds up to what is listed"
    );
    for (index, own) in changes.iter().enumerate() {
        let prefix = format!("w{index}-");
        let watched: Vec<&MapChange> = seen
            .iter()
            .filter(|change| name_of(change).starts_with(&prefix))
            .collect();
        assert_eq!(
            watched,
            own.iter().collect::<Vec<_>>(),
            "writer {index}: each change is watched once, in order"
        );
    }
    let written: usize = changes.iter().map(Vec::len).sum();
    println!("{written} writes, {uncertain} of them cut off by {KILLS} kills");
    let (status, _) = server.stop();
    assert!(status.success());
}

async fn maps(home: &Home) -> Api<ConfigMap> {
    Api::namespaced(home.client().await, "default")
}

fn config_map(name: &str, value: &str, version: Option<u64>) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            resource_version: version.map(|version| version.to_string()),
            labels: Some(BTreeMap::from([("app".to_owned(), "crash".to_owned())])),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([("value".to_owned(), value.to_owned())])),
        ..ConfigMap::default()
    }
}

fn held(map: &ConfigMap) -> Held {
    let version = map.resource_version().expect("every object has a version");
    Held {
        value: map
            .data
            .as_ref()
            .and_then(|data| data.get("value"))
            .cloned()
            .unwrap_or_default(),
        version: version.parse().expect("a version is a number here"),
    }
}

fn name_of(change: &MapChange) -> &str {
    match change {
        MapChange::Written(name, _) | MapChange::Deleted(name) => name,
    }
}

fn replay(changes: &[MapChange]) -> BTreeMap<String, Held> {
    let mut state = BTreeMap::new();
    for change in changes {
        match change {
            MapChange::Written(name, held) => drop(state.insert(name.clone(), held.clone())),
            MapChange::Deleted(name) => {
                assert!(state.remove(name).is_some(), "{name} is deleted twice");
            }
        }
    }
    state
}

/// One writer: no other writer uses its names, so it knows the state of each.
struct Writer {
    index: u64,
    maps: Api<ConfigMap>,
    held: BTreeMap<String, Held>,
    changes: Vec<MapChange>,
    newest: u64,
    uncertain: u64,
    dice: Dice,
}

impl Writer {
    async fn work(mut self, over: Arc<AtomicBool>, count: Arc<AtomicU64>) -> Writer {
        let mut turn = 0;
        while !over.load(Ordering::Relaxed) {
            turn += 1;
            let name = format!("w{}-{}", self.index, self.dice.roll() % NAMES);
            let value = format!("{}-{turn}", self.index);
            let before = self.held.get(&name).cloned();
            let wanted = match &before {
                Some(_) if self.dice.roll().is_multiple_of(5) => None,
                _ => Some(value),
            };
            match self
                .attempt(&name, wanted.as_deref(), before.as_ref())
                .await
            {
                Ok(after) => self.record(name, after),
                // A refusal means that the server has another state than it acknowledged.
                Err(Error::Api(status)) => {
                    panic!("{name} should be {before:?}, but: {status:?}")
                }
                Err(_) => self.resolve(name, wanted, before).await,
            }
            count.fetch_add(1, Ordering::Relaxed);
        }
        self
    }

    async fn attempt(
        &self,
        name: &str,
        wanted: Option<&str>,
        before: Option<&Held>,
    ) -> Result<Option<Held>, Error> {
        let parameters = PostParams::default();
        let written = match (wanted, before) {
            (None, _) => {
                self.maps.delete(name, &DeleteParams::default()).await?;
                return Ok(None);
            }
            (Some(value), None) => {
                let map = config_map(name, value, None);
                self.maps.create(&parameters, &map).await?
            }
            (Some(value), Some(before)) => {
                let map = config_map(name, value, Some(before.version));
                self.maps.replace(name, &parameters, &map).await?
            }
        };
        let written = held(&written);
        assert_eq!(Some(written.value.as_str()), wanted);
        Ok(Some(written))
    }

    /// After a write without an answer: checks that it happened completely or not at all.
    async fn resolve(&mut self, name: String, wanted: Option<String>, before: Option<Held>) {
        self.uncertain += 1;
        let found = loop {
            match self.maps.get_opt(&name).await {
                Ok(found) => break found.as_ref().map(held),
                Err(Error::Api(status)) => panic!("{name} cannot be read: {status:?}"),
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        };
        if found == before {
            return;
        }
        let found_value = found.as_ref().map(|held| held.value.clone());
        assert_eq!(
            found_value, wanted,
            "{name} was {before:?} and is neither that nor what was asked for"
        );
        self.record(name, found);
    }

    fn record(&mut self, name: String, after: Option<Held>) {
        match after {
            Some(held) => {
                assert!(
                    held.version > self.newest,
                    "{name}: version {} after {}",
                    held.version,
                    self.newest
                );
                self.newest = held.version;
                self.held.insert(name.clone(), held.clone());
                self.changes.push(MapChange::Written(name, held));
            }
            None => {
                self.held.remove(&name);
                self.changes.push(MapChange::Deleted(name));
            }
        }
    }
}

/// Watches from a list to the last write; resumes from the last version it saw.
async fn follow(maps: Api<ConfigMap>, start: ObjectList<ConfigMap>) -> Vec<MapChange> {
    let version = start.metadata.resource_version.unwrap();
    let mut newest: u64 = version.parse().unwrap();
    let mut seen: Vec<MapChange> = start
        .items
        .iter()
        .map(|map| MapChange::Written(map.name_any(), held(map)))
        .collect();
    loop {
        let stream = match maps
            .watch(&WatchParams::default().labels(OWN), &newest.to_string())
            .await
        {
            Ok(stream) => stream,
            Err(Error::Api(status)) => panic!("no watch from {newest}: {status:?}"),
            Err(_) => {
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            }
        };
        pin_mut!(stream);
        // An error of the stream ends the connection: resume with the next one.
        while let Some(Ok(event)) = stream.next().await {
            let (map, deleted) = match event {
                WatchEvent::Added(map) | WatchEvent::Modified(map) => (map, false),
                WatchEvent::Deleted(map) => (map, true),
                WatchEvent::Bookmark(mark) => {
                    let version: u64 = mark.metadata.resource_version.parse().unwrap();
                    assert!(version >= newest, "bookmark {version} after {newest}");
                    newest = version;
                    continue;
                }
                WatchEvent::Error(status) => panic!("the watch from {newest} fails: {status:?}"),
            };
            let held = held(&map);
            assert!(held.version > newest, "{held:?} after version {newest}");
            newest = held.version;
            let name = map.name_any();
            let is_last = name == LAST;
            seen.push(match deleted {
                true => MapChange::Deleted(name),
                false => MapChange::Written(name, held),
            });
            if is_last {
                return seen;
            }
        }
    }
}

/// Small random numbers (xorshift); the seed is printed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 3
    }
}
