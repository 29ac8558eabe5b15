//! A child process writes under load and is killed, again and again: every acknowledged write must be found.
//!
//! The child is this test binary run anew with a path in its environment; it tells of each answer on its stdout.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;

use bareboat_sqlite::Sqlite;
use bareboat_storage::{Backend, EventKind, Expect, Record, Store, StoreOptions, WatchSpec, Write};

const CHILD: &str = "BAREBOAT_CRASH_TEST_FILE";
const ROUNDS: u64 = 12;
const WRITERS: u64 = 16;

fn object(key: &str, round: u64, n: u64) -> bytes::Bytes {
    let padding = "p".repeat(200 + (n as usize * 37) % 900);
    format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{key}"}},"data":{{"w":"{round}.{n}","p":"{padding}"}}}}"#
    )
    .into()
}

fn mark(json: &[u8]) -> String {
    let text = std::str::from_utf8(json).unwrap();
    let (_, rest) = text.split_once(r#""w":""#).unwrap();
    rest.split('"').next().unwrap().to_owned()
}

fn options() -> StoreOptions {
    StoreOptions {
        retain_revisions: 400,
        compact_rows: 32,
        ring_preload: 50,
        ..StoreOptions::default()
    }
}

/// Runs in the child: writes until it is killed.
#[test]
fn child_that_writes_until_it_is_killed() {
    let Ok(path) = std::env::var(CHILD) else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    // The harness may have begun a line of its own.
    println!();
    runtime.block_on(async {
        let (path, round) = path.rsplit_once('#').unwrap();
        let round: u64 = round.parse().unwrap();
        let store = Store::open(Arc::new(Sqlite::open(path).unwrap()), options()).unwrap();
        let resource = store.resource("core/configmaps");
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (store, resource) = (store.clone(), resource.clone());
                tokio::spawn(async move {
                    for n in 0u64.. {
                        let key = format!("w{writer}/k{}", n % 5);
                        let n = n * WRITERS + writer;
                        // Told before it is asked for: what is found must have been asked for.
                        println!("ask {key} {round}.{n}");
                        let done = match resource.get(&key) {
                            Some(found) if n.is_multiple_of(7) => {
                                store
                                    .commit(Write::delete(&resource, &found))
                                    .await
                                    .unwrap();
                                println!("del {key} {}", found.revision());
                                continue;
                            }
                            _ => {
                                let write = Write::create(&resource, &*key, object(&key, round, n));
                                store.commit(write.expecting(Expect::Any)).await.unwrap()
                            }
                        };
                        println!("put {key} {} {round}.{n}", done.revision);
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.await.unwrap();
        }
    });
}

/// What is known about a key from outside.
#[derive(Default, Debug)]
struct Known {
    /// The last acknowledged state: revision and mark, or `None` after a deletion.
    acknowledged: Option<(u64, String)>,
    /// Everything asked for since then, of which any prefix may have happened.
    asked: Vec<String>,
}

#[test]
fn every_acknowledged_write_survives_the_kill() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let mut known: BTreeMap<String, Known> = BTreeMap::new();
    let mut last = 0;
    let mut acknowledged = 0;
    for round in 0..ROUNDS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "child_that_writes_until_it_is_killed",
                "--nocapture",
            ])
            .env(CHILD, format!("{}#{round}", path.display()))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // It is killed in the middle of its work, however long it took to begin: all that it still said is read
        // afterwards.
        let mut said = Vec::new();
        let mut answers = 0;
        while answers < 20 + 67 * round % 400 {
            let line = lines.next().expect("it writes until it is killed").unwrap();
            answers += u64::from(line.starts_with("put ") || line.starts_with("del "));
            said.push(line);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        said.extend(lines.map_while(Result::ok));
        for line in said {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["ask", key, mark] => {
                    known.entry(key.into()).or_default().asked.push(mark.into());
                }
                ["put", key, revision, mark] => {
                    let known = known.get_mut(key).unwrap();
                    known.acknowledged = Some((revision.parse().unwrap(), mark.into()));
                    known.asked.clear();
                    acknowledged += 1;
                    last = last.max(revision.parse().unwrap());
                }
                ["del", key, _] => {
                    let known = known.get_mut(key).unwrap();
                    known.acknowledged = None;
                    known.asked.clear();
                    acknowledged += 1;
                }
                _ => {}
            }
        }
        check(&path, &mut known, &mut last);
    }
    println!("{acknowledged} acknowledged writes, {ROUNDS} kills");
}

fn check(path: &std::path::Path, known: &mut BTreeMap<String, Known>, last: &mut u64) {
    let backend = Arc::new(Sqlite::open(path).unwrap());
    replay_equals_links(&*backend);
    // Nothing may be compacted while it is looked at: a floor that was read would be below the next one.
    let still = StoreOptions {
        retain_revisions: u64::MAX,
        ..options()
    };
    let store = Store::open(backend, still).unwrap();
    assert!(store.visible() >= *last, "an acknowledged revision is gone");
    *last = store.visible();
    let resource = store.resource("core/configmaps");
    let snapshot = resource.snapshot();
    for (key, known) in known.iter_mut() {
        let found = snapshot.get(key).map(|e| (e.revision(), mark(e.json())));
        // Each writer asks for one thing at a time, so at most one is open: it happened or it did not.
        assert!(known.asked.len() <= 1, "{key}: {known:?}");
        let happened = match (&found, known.asked.first()) {
            (Some((_, mark)), Some(asked)) => mark == asked,
            (None, Some(_)) => known.acknowledged.is_some(),
            _ => false,
        };
        assert!(
            happened || found == known.acknowledged,
            "{key}: found {found:?}, {known:?}"
        );
        known.acknowledged = found;
        known.asked.clear();
    }
    for entry in snapshot.range("", None) {
        assert!(
            known.contains_key(entry.key()),
            "{} is a phantom",
            entry.key()
        );
    }
    watch_from_the_floor_ends_at_the_state(&store);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(store.close());
}

/// The log, replayed, has rising revisions and links that lead to what was there before.
fn replay_equals_links(backend: &dyn Backend) {
    let floor = backend.compacted();
    let mut heads: HashMap<Arc<str>, Record> = HashMap::new();
    let mut previous = 0;
    backend
        .load(floor, &mut |record| {
            assert!(record.revision > previous, "revisions rise");
            previous = record.revision;
            let head = heads.get(&record.key).map_or(0, |head| head.revision);
            if record.revision > floor {
                assert_eq!(record.prev, head, "{} links back", record.revision);
            }
            match record.value {
                Some(_) => heads.insert(record.key.clone(), record),
                None => heads.remove(&record.key),
            };
        })
        .unwrap();
}

fn watch_from_the_floor_ends_at_the_state(store: &Store) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let resource = store.resource("core/configmaps");
        let floor = store.floor();
        let base = resource.snapshot_at(floor).await.unwrap();
        let mut state: BTreeMap<String, u64> = base
            .range("", None)
            .map(|entry| (entry.key().to_owned(), entry.revision()))
            .collect();
        let mut watcher = resource.watch(WatchSpec::all(floor)).unwrap();
        while watcher.progress() < resource.changed_at() {
            for event in watcher.next_batch(100).await.unwrap() {
                match event.kind {
                    EventKind::Deleted => state.remove(event.key()),
                    _ => state.insert(event.key().to_owned(), event.rev),
                };
            }
        }
        let now: BTreeMap<String, u64> = resource
            .snapshot()
            .range("", None)
            .map(|entry| (entry.key().to_owned(), entry.revision()))
            .collect();
        assert_eq!(state, now);
    });
}
