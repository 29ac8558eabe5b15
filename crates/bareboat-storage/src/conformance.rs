//! The test suite for backends: `bareboat_storage::conformance!(my_site)` in a test file runs it.
//!
//! `my_site` is a function that returns a [`Site`]: a place with an empty log that can be opened
//! repeatedly. The suite cannot simulate a crash; durable engines have separate crash tests.

#![allow(clippy::missing_panics_doc)]

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::{
    Backend, Committed, Entry, Event, EventKind, Expect, Resource, Snapshot, Store, StoreOptions,
    WatchSpec, Watcher, Write,
};

mod backups;
mod history;
mod streams;
mod writes;

pub use backups::*;
pub use history::*;
pub use streams::*;
pub use writes::*;

/// A log that can be opened, closed and opened again.
///
/// A function that opens it is enough. This one keeps its log in memory; that of an engine opens a file or a database:
///
/// ```
/// use bareboat_storage::conformance::{self, Site};
/// use bareboat_storage::{Backend, MemoryBackend};
/// use std::sync::Arc;
///
/// fn site() -> impl Site {
///     let log = Arc::new(MemoryBackend::starting_at(1));
///     move || -> Arc<dyn Backend> { log.clone() }
/// }
///
/// // In a file of tests, `bareboat_storage::conformance!(site);` makes a test of each check.
/// conformance::expectations_are_checked(&site());
/// ```
pub trait Site: Send + Sync {
    /// Opens the log; the previous backend has been closed.
    fn open(&self) -> Arc<dyn Backend>;
}

impl<F: Fn() -> Arc<dyn Backend> + Send + Sync> Site for F {
    fn open(&self) -> Arc<dyn Backend> {
        self()
    }
}

/// Generates the suite's tests for a backend: `conformance!(path::to::make_site)`.
#[macro_export]
macro_rules! conformance {
    ($site:path) => {
        $crate::conformance!(@each $site:
            one_of_many_creators_wins
            compare_and_swap_loses_no_update
            expectations_are_checked
            revisions_rise_and_are_never_zero
            wire_bytes_contain_the_revision
            thousands_of_concurrent_writes_are_committed
            a_dropped_future_does_not_cancel_a_queued_write
            transactions_happen_together_or_not_at_all
            parts_of_what_is_deleted_are_refused
            snapshots_never_change
            past_states_are_exact_from_memory
            past_states_are_exact_from_the_log
            a_restart_keeps_everything
            records_keep_their_actor_and_cluster
            opening_skips_replaced_records
            a_restart_keeps_counting_after_a_compacted_deletion
            compaction_deletes_only_below_the_floor
            compaction_by_count_runs_by_itself
            compaction_by_age_runs_by_itself
            pinned_snapshots_outlive_compaction
            a_pin_is_not_renewed
            watches_resume_from_any_revision_in_memory
            watches_resume_from_any_revision_in_the_log
            watches_resume_during_writes
            watches_resume_after_a_restart
            watchers_see_only_events_in_their_scope
            a_slow_watcher_is_closed_and_an_idle_one_is_not
            bookmarks_never_pass_due_events
            the_feed_has_all_events_in_order
            a_slow_feed_gets_one_error
            observers_see_a_write_before_its_answer
            closing_ends_watches_and_writes
        );
    };
    (@each $site:path: $($name:ident)*) => {
        $(#[test]
        fn $name() {
            $crate::conformance::$name(&$site());
        })*
    };
}

/// Generates tests for a backend that supports [`Backend::refill`] and has epochs.
#[macro_export]
macro_rules! backup_conformance {
    ($site:path) => {
        $crate::conformance!(@each $site:
            a_backup_is_the_state_of_one_moment
            a_restored_log_equals_its_source
            a_restore_begins_another_epoch
            an_incomplete_restore_is_not_served
            a_healthy_log_has_no_findings
            history_is_not_compacted_under_a_backup
            a_backup_continues_another
        );
    };
}

/// Generates tests for a backend that knows when its history was written ([`Backend::history`]).
#[macro_export]
macro_rules! clock_conformance {
    ($site:path) => {
        $crate::conformance!(@each $site:
            history_expires_by_its_time_after_a_restart
        );
    };
}

/// Runs a test on a runtime with two workers, so that tasks run in parallel.
fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .expect("a runtime for the test")
        .block_on(async {
            tokio::time::timeout(Duration::from_secs(120), test)
                .await
                .expect("the test hangs");
        });
}

fn open(site: &dyn Site) -> Store {
    open_with(site, StoreOptions::default())
}

fn open_with(site: &dyn Site, options: StoreOptions) -> Store {
    Store::open(site.open(), options).expect("the log opens")
}

/// Returns options under which memory keeps almost no history, so that reads go to the log.
fn forgetful() -> StoreOptions {
    StoreOptions {
        ring_bytes: 1,
        ring_floor_bytes: 0,
        ring_preload: 0,
        ..StoreOptions::default()
    }
}

fn object(key: &str, content: u64) -> Bytes {
    labelled(key, content, "none")
}

fn labelled(key: &str, content: u64, tier: &str) -> Bytes {
    let name = key.rsplit('/').next().unwrap_or(key);
    format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}","labels":{{"tier":"{tier}"}}}},"data":{{"n":"{content}"}}}}"#
    )
    .into()
}

fn content(entry: &Entry) -> u64 {
    let text = std::str::from_utf8(entry.json()).expect("objects are text");
    let (_, rest) = text.rsplit_once(r#""n":""#).expect("the test's own object");
    let digits = rest.split('"').next().unwrap_or_default();
    digits.parse().expect("the test's own object")
}

async fn put(store: &Store, resource: &Arc<Resource>, key: &str, n: u64) -> Committed {
    let write = Write::create(resource, key, object(key, n)).expecting(Expect::Any);
    store.commit(write).await.expect("an unconditional write")
}

async fn delete(store: &Store, resource: &Arc<Resource>, key: &str) -> Committed {
    let found = resource.get(key).expect("something to delete");
    let write = Write::delete(resource, &found);
    store
        .commit(write)
        .await
        .expect("a deletion of what is there")
}

/// The content of a snapshot: key, revision, content.
type State = BTreeMap<String, (u64, u64)>;

fn state_of(snapshot: &Snapshot) -> State {
    snapshot
        .range("", None)
        .map(|entry| (entry.key().to_owned(), (entry.revision(), content(entry))))
        .collect()
}

/// The model: every event of a resource, and the state after each revision.
#[derive(Default)]
struct Model {
    events: Vec<(u64, EventKind, String)>,
    states: BTreeMap<u64, State>,
}

/// A small random generator with a fixed seed, so that tests are reproducible.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// Writes at random to two resources and returns the expected history of the first.
async fn scribble(store: &Store, writes: u64, seed: u64) -> Model {
    let mut dice = Dice(seed);
    let watched = store.resource("core/configmaps");
    let other = store.resource("apps/deployments");
    let mut model = Model::default();
    let mut state = state_of(&watched.snapshot());
    model.states.insert(store.visible(), state.clone());
    for n in 0..writes {
        let key = format!("ns{}/o{}", dice.roll(3), dice.roll(7));
        let here = dice.roll(4) > 0;
        let resource = if here { &watched } else { &other };
        let exists = resource.get(&key).is_some();
        let (kind, revision) = if exists && dice.roll(3) == 0 {
            let done = delete(store, resource, &key).await;
            if here {
                state.remove(&key);
            }
            (EventKind::Deleted, done.revision)
        } else {
            let done = put(store, resource, &key, n).await;
            if here {
                state.insert(key.clone(), (done.revision, n));
            }
            let kind = if exists {
                EventKind::Modified
            } else {
                EventKind::Added
            };
            (kind, done.revision)
        };
        if here {
            model.events.push((revision, kind, key));
        }
        model.states.insert(revision, state.clone());
    }
    model
}

/// Takes `count` events, which must be due.
async fn take(watcher: &mut Watcher, count: usize) -> Vec<Arc<Event>> {
    let mut events = Vec::new();
    while events.len() < count {
        let batch = tokio::time::timeout(Duration::from_secs(60), watcher.next_batch(7)).await;
        events.extend(batch.expect("events are due").expect("the watch goes on"));
    }
    events
}

/// Returns whether no event is due.
async fn is_quiet(watcher: &mut Watcher) -> bool {
    let wait = Duration::from_millis(20);
    tokio::time::timeout(wait, watcher.next_batch(1))
        .await
        .is_err()
}

fn told(events: &[Arc<Event>]) -> Vec<(u64, EventKind, String)> {
    events
        .iter()
        .map(|event| (event.rev, event.kind, event.key().to_owned()))
        .collect()
}

async fn resumes_everywhere(store: &Store, model: &Model) {
    let resource = store.resource("core/configmaps");
    for &after in model.states.keys() {
        let expected: Vec<_> = model
            .events
            .iter()
            .filter(|(revision, ..)| *revision > after)
            .cloned()
            .collect();
        let mut watcher = resource
            .watch(WatchSpec::all(after))
            .expect("not compacted");
        let events = take(&mut watcher, expected.len()).await;
        assert_eq!(told(&events), expected, "resumed after {after}");
        for event in &events {
            check_states(event, model);
        }
    }
}

/// Checks that an event's two states are those of the model.
fn check_states(event: &Event, model: &Model) {
    let after = &model.states[&event.rev];
    let before = model.states.range(..event.rev).next_back().map(|(_, s)| s);
    let before = before.and_then(|state| state.get(event.key()));
    let seen = |entry: &Arc<Entry>| (entry.revision(), content(entry));
    assert_eq!(event.prev.as_ref().map(seen).as_ref(), before);
    match event.kind {
        EventKind::Deleted => assert_eq!(after.get(event.key()), None),
        _ => assert_eq!(after.get(event.key()), Some(&seen(&event.entry))),
    }
}
