//! Checks the invariants of a file after its writing process ended for any reason.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use bareboat_sqlite::{Sqlite, SqliteOptions};
use bareboat_storage::{Backend, EventKind, Record, Store, StoreOptions, WatchSpec};

pub(crate) fn options() -> StoreOptions {
    StoreOptions {
        retain_revisions: 400,
        compact_rows: 32,
        ring_preload: 50,
        ..StoreOptions::default()
    }
}

/// The known state of a key.
#[derive(Clone, Default, Debug)]
struct Known {
    /// The last acknowledged state: revision and mark, or `None` after a deletion.
    acknowledged: Option<(u64, String)>,
    /// The later request whose outcome is not known. `-` is a deletion.
    asked: Option<String>,
}

/// The known state of all keys.
#[derive(Clone, Default)]
pub(crate) struct Ledger {
    known: BTreeMap<String, Known>,
    last: u64,
    /// The number of acknowledged writes.
    pub(crate) acknowledged: u64,
    /// The number of refused writes.
    pub(crate) refused: u64,
    /// The number of writes with an unknown outcome.
    pub(crate) unknown: u64,
}

impl Ledger {
    /// Records a line that the child printed.
    pub(crate) fn hear(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["ask", key, mark] => {
                let known = self.known.entry(key.into()).or_default();
                assert_eq!(known.asked, None, "{key}: one thing at a time");
                known.asked = Some(mark.into());
            }
            ["put", key, revision, mark] => self.done(key, revision, Some(mark)),
            ["del", key, revision] => self.done(key, revision, None),
            ["ref", key] => {
                self.known.entry(key.into()).or_default().asked = None;
                self.refused += 1;
            }
            ["unk", _] => self.unknown += 1,
            _ => {}
        }
    }

    fn done(&mut self, key: &str, revision: &str, mark: Option<&str>) {
        let revision = revision.parse().unwrap();
        let known = self.known.entry(key.into()).or_default();
        known.acknowledged = mark.map(|mark| (revision, mark.into()));
        known.asked = None;
        self.last = self.last.max(revision);
        self.acknowledged += 1;
    }

    /// Opens the file and compares its content with the known state. The content becomes the known state.
    pub(crate) fn check(&mut self, path: &Path) {
        let file = SqliteOptions {
            reserve_bytes: 0,
            ..SqliteOptions::default()
        };
        let backend = Arc::new(Sqlite::open_with(path, file).unwrap());
        replay_equals_links(&*backend);
        // Nothing may be compacted during the check: otherwise a floor that was read may be outdated.
        let still = StoreOptions {
            retain_revisions: u64::MAX,
            ..options()
        };
        let store = Store::open(backend, still).unwrap();
        assert!(!store.has_damaged());
        assert!(
            store.visible() >= self.last,
            "an acknowledged revision is gone"
        );
        self.last = store.visible();
        let snapshot = store.resource("core/configmaps").snapshot();
        for (key, known) in &mut self.known {
            let found = snapshot.get(key).map(|e| (e.revision(), mark(e.json())));
            let happened = match (&found, &known.asked) {
                (Some((_, mark)), Some(asked)) => mark == asked,
                (None, Some(asked)) => asked == "-",
                _ => false,
            };
            assert!(
                happened || found == known.acknowledged,
                "{key}: found {found:?}, {known:?}"
            );
            known.acknowledged = found;
            known.asked = None;
        }
        for entry in snapshot.range("", None) {
            assert!(
                self.known.contains_key(entry.key()),
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
}

fn mark(json: &[u8]) -> String {
    let text = std::str::from_utf8(json).unwrap();
    let (_, rest) = text.split_once(r#""w":""#).unwrap();
    rest.split('"').next().unwrap().to_owned()
}

/// Checks that the replayed log has increasing revisions and correct `prev` links.
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
