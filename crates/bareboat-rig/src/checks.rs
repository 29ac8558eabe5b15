//! Tests of every engine that several stores share: `bareboat_rig::checks!(my_database)`, in a module `checks` of a test
//! program, runs them.
//!
//! `my_database` is a function that returns a [`Shared`]. The tests run with small numbers; `make torture` runs them with
//! those of `docs/storage-checks.md`.

mod child;
mod compaction;
mod limits;
mod order;
mod requests;
mod space;
mod writers;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bareboat_storage::{Backend, Store, StoreOptions};
use bytes::Bytes;

use crate::plan::Dice;

pub use child::*;
pub use compaction::*;
pub use limits::*;
pub use order::*;
pub use requests::*;
pub use space::*;
pub use writers::*;

/// A database that several stores share.
///
/// ```
/// use bareboat_rig::checks::Shared;
/// use bareboat_storage::{Backend, MemoryBackend};
/// use std::sync::Arc;
///
/// /// In memory; a real one is a process, and `open` connects to it.
/// struct Memory(Arc<MemoryBackend>);
/// impl Shared for Memory {
///     fn port(&self) -> u16 { 5432 }
///     fn url(&self, port: u16, name: &str) -> String { format!("memory://127.0.0.1:{port}/{name}") }
///     fn size(&self, _: &str) -> u64 { 0 }
///     fn open(&self, _: &str) -> Arc<dyn Backend> { self.0.clone() }
/// }
///
/// let database = Memory(Arc::new(MemoryBackend::starting_at(1)));
/// let url = database.url(database.port(), "boats");
/// assert_eq!(database.open(&url).mark().expect("it is in memory").last, 1);
/// ```
///
/// `bareboat_rig::checks!(database)` makes the tests of a function `database` that returns such a value.
pub trait Shared: Sync {
    /// Returns the port of the database on this machine.
    fn port(&self) -> u16;

    /// Returns the address of the store `name`, with another port, such as that of a proxy.
    fn url(&self, port: u16, name: &str) -> String;

    /// Returns the bytes that the store `name` takes in the database.
    fn size(&self, name: &str) -> u64;

    /// Returns whether only one store may have it open at a time.
    fn is_exclusive(&self) -> bool {
        false
    }

    /// Prepares the database for a day of updates, before anything else uses it.
    fn prepare_day(&self) {}

    /// Frees the space of deleted rows, as the database does by itself about once a minute. A short day has no minute.
    fn clean(&self, _name: &str) {}

    /// Returns the bytes per record that the engine keeps for ten minutes by the clock, whatever is retained.
    fn kept_bytes(&self) -> u64 {
        0
    }

    /// Opens a store by its address.
    fn open(&self, url: &str) -> Arc<dyn Backend>;
}

/// Generates the tests for an engine.
#[macro_export]
macro_rules! checks {
    ($database:path) => {
        $crate::checks!(@each $database:
            two_stores_have_the_same_history
            a_slow_store_reads_what_others_wrote
            one_hot_object_starves_no_client
            a_request_that_arrives_late_changes_nothing
            a_slow_tail_misses_nothing_while_history_is_compacted
            stores_compact_at_the_same_time
            a_day_of_updates_stays_small
            objects_at_the_limit_are_stored_and_larger_ones_refused
            a_killed_writer_leaves_whole_transactions
            a_stopped_writer_writes_nothing_into_the_past
        );

        #[test]
        fn child_that_writes_until_it_is_killed() {
            $crate::checks::write_until_killed(&$database());
        }
    };
    (@each $database:path: $($name:ident)*) => {
        $(#[test]
        fn $name() {
            $crate::checks::$name(&$database());
        })*
    };
}

const RESOURCE: &str = "core/configmaps";

fn object(n: u64) -> Bytes {
    format!(r#"{{"apiVersion":"v1","kind":"X","metadata":{{"name":"x"}},"n":{n}}}"#).into()
}

/// Returns a text that cannot be compressed to much less.
fn digits(seed: u64, len: usize) -> String {
    let mut dice = Dice::new(seed, 7);
    let digits = std::iter::from_fn(|| Some(format!("{:012x}", dice.roll(1 << 48))));
    digits.take(len / 12).collect()
}

fn number(json: &[u8]) -> u64 {
    let text = std::str::from_utf8(json).unwrap();
    let (_, rest) = text.rsplit_once(':').unwrap();
    rest.trim_end_matches('}').parse().unwrap()
}

fn open(database: &dyn Shared, port: u16, name: &str) -> Store {
    open_with(database, port, name, StoreOptions::default())
}

fn open_with(database: &dyn Shared, port: u16, name: &str, options: StoreOptions) -> Store {
    Store::open(database.open(&database.url(port, name)), options).unwrap()
}

/// Runs a test on a runtime with two workers.
fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(test);
}

async fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// How long a store may take to see what others wrote, on a busy machine.
const FRESH: Duration = Duration::from_secs(60);
