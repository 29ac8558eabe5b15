//! The log in memory: the reference model of all engines, and the log of servers without persistence.
//!
//! It shares the bytes of its values with the watch cache of the store. Its content survives reopening a store, but not
//! the process.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use parking_lot::{Condvar, Mutex};

use crate::backend::{
    Backend, BackendError, BackendStats, ChangePage, LogChange, PageLimit, Record, Stop, Sweep,
};
use crate::batch::{Appended, Batch, Mark, Tail};
use crate::refill::Refill;

mod shared;

use shared::Batches;

/// A log in memory. Clones share the log.
#[derive(Clone)]
pub struct MemoryBackend {
    log: Arc<Log>,
    shared: bool,
}

opaque_debug!(MemoryBackend);

struct Log {
    state: Mutex<State>,
    grown: Condvar,
}

#[derive(Default)]
struct State {
    records: BTreeMap<u64, Record>,
    /// The rows of batches; `None` if only one store writes.
    batches: Option<Batches>,
    epoch: u64,
    last: u64,
    floor: u64,
    swept: u64,
    bytes: u64,
    /// Whether the log is being filled with the content of another log.
    incomplete: bool,
}

impl MemoryBackend {
    /// Returns an empty log whose revision counter starts at a number derived from the clock. After a restart, clients
    /// with old resourceVersions get an error instead of waiting for these versions.
    pub fn new() -> Self {
        // 2024-01-01. Up to a hundred revisions per millisecond stay below the number of the clock.
        const EPOCH_MILLIS: u128 = 1_704_067_200_000;
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_millis());
        let start = now.saturating_sub(EPOCH_MILLIS) * 100;
        Self::starting_at(u64::try_from(start).unwrap_or(u64::MAX / 2).max(1))
    }

    /// Returns an empty log whose last revision is `revision` (at least 1: revision 0 is never assigned).
    pub fn starting_at(revision: u64) -> Self {
        let revision = revision.max(1);
        Self {
            log: Arc::new(Log {
                state: Mutex::new(State {
                    last: revision,
                    floor: revision,
                    swept: revision,
                    ..State::default()
                }),
                grown: Condvar::new(),
            }),
            shared: false,
        }
    }

    /// Returns the same log for several stores at once, like a shared database. This is the model of remote engines.
    pub fn shared(self) -> Self {
        let mut state = self.log.state.lock();
        state.batches.get_or_insert_default();
        drop(state);
        Self {
            shared: true,
            ..self
        }
    }

    /// Begins another epoch, as after a restore: the last `lost` records are lost, and the counter jumps above every
    /// revision that was ever assigned.
    pub fn begin_epoch(&self, lost: usize) {
        self.log.state.lock().begin_epoch(lost);
        self.log.grown.notify_all();
    }
}

/// The number of records that are read before the lock is released briefly, so that a long read does not block commits.
const SLICE: usize = 1024;

impl MemoryBackend {
    /// Calls `look` for every record with `after < revision <= upto` until `look` returns true. Returns whether it did.
    /// Fails if `exact` is below the floor at the end.
    fn scan(
        &self,
        exact: u64,
        after: u64,
        upto: u64,
        stop: &Stop,
        mut look: impl FnMut(&State, &Record) -> bool,
    ) -> Result<bool, BackendError> {
        let mut after = after;
        loop {
            stop.check()?;
            let state = self.log.state.lock();
            state.above_floor(exact)?;
            if after >= upto {
                return Ok(false);
            }
            let mut seen = 0;
            for (revision, record) in state.records.range(after + 1..=upto).take(SLICE) {
                seen += 1;
                after = *revision;
                if look(&state, record) {
                    return Ok(true);
                }
            }
            if seen < SLICE {
                after = upto;
            }
        }
    }
}

impl Default for MemoryBackend {
    fn default() -> Self {
        Self::new()
    }
}

impl State {
    fn append(&mut self, record: Record) {
        self.last = record.revision;
        self.bytes += weight(&record);
        self.records.insert(record.revision, record);
    }

    fn refill(&mut self, step: Refill<'_>) {
        match step {
            Refill::Begin => {
                *self = State {
                    batches: self.batches.as_ref().map(|_| Batches::new()),
                    epoch: self.epoch,
                    last: self.last,
                    floor: self.last,
                    swept: self.last,
                    incomplete: true,
                    ..State::default()
                };
            }
            Refill::State(records) => {
                for record in records {
                    self.bytes += weight(record);
                    self.records.insert(record.revision, record.clone());
                }
            }
            Refill::Start(end) => {
                (self.last, self.floor, self.swept) = (end.last, end.last, end.last);
                self.epoch = end.epoch;
            }
            Refill::Finish => self.incomplete = false,
        }
    }

    fn forget(&mut self, revision: u64) {
        if let Some(record) = self.records.remove(&revision) {
            self.bytes -= weight(&record);
        }
    }

    fn above_floor(&self, revision: u64) -> Result<(), BackendError> {
        if revision < self.floor {
            return Err(BackendError::Compacted { floor: self.floor });
        }
        Ok(())
    }
}

/// Returns whether `record` belongs to `resource` in the default cluster.
fn is_of(record: &Record, resource: &str) -> bool {
    *record.resource == *resource && record.cluster.is_empty()
}

fn weight(record: &Record) -> u64 {
    let value = record.value.as_ref().map_or(0, |value| value.len());
    (record.key.len() + value) as u64
}

impl Backend for MemoryBackend {
    fn is_shared(&self) -> bool {
        self.shared
    }

    fn append(&self, base: &Mark, batch: &Batch) -> Result<Appended, BackendError> {
        let mut state = self.log.state.lock();
        if let Some(answer) = state.refuse(base, batch) {
            return Ok(answer);
        }
        let end = state.note(base, batch);
        for record in &batch.records {
            state.append(record.clone());
        }
        drop(state);
        self.log.grown.notify_all();
        Ok(Appended::Done(end))
    }

    fn tail(&self, after: &Mark) -> Result<Tail, BackendError> {
        Ok(self.log.state.lock().tail(after))
    }

    fn wait(&self, after: u64, until: Instant) -> bool {
        let mut state = self.log.state.lock();
        while state.last <= after && !self.log.grown.wait_until(&mut state, until).timed_out() {}
        state.last > after
    }

    fn load(&self, after: u64, visit: &mut dyn FnMut(Record)) -> Result<Mark, BackendError> {
        let state = self.log.state.lock();
        let mut live = BTreeMap::new();
        for record in state.records.range(..=after).map(|(_, record)| record) {
            live.remove(&record.prev);
            if record.value.is_some() {
                live.insert(record.revision, record);
            }
        }
        let since = state.records.range(after + 1..).map(|(_, record)| record);
        live.into_values().chain(since).cloned().for_each(visit);
        Ok(state.mark())
    }

    fn refill(&self, step: Refill<'_>) -> Result<(), BackendError> {
        self.log.state.lock().refill(step);
        self.log.grown.notify_all();
        Ok(())
    }

    fn is_complete(&self) -> Result<bool, BackendError> {
        Ok(!self.log.state.lock().incomplete)
    }

    fn next_epoch(&self, beyond: u64) -> Result<Mark, BackendError> {
        let mut state = self.log.state.lock();
        state.last = state.last.max(beyond);
        state.begin_epoch(0);
        let end = state.mark();
        drop(state);
        self.log.grown.notify_all();
        Ok(end)
    }

    fn read_since(
        &self,
        resource: Option<&str>,
        after: u64,
        upto: u64,
        limit: PageLimit,
        stop: &Stop,
    ) -> Result<ChangePage, BackendError> {
        let mut page = ChangePage::default();
        let wanted = |record: &Record| resource.is_none_or(|name| is_of(record, name));
        self.scan(after, after, upto, stop, |state, record| {
            if !wanted(record) {
                return false;
            }
            let change = LogChange {
                record: record.clone(),
                previous: state.records.get(&record.prev).cloned(),
            };
            page.push(change, limit)
        })
        .map(|ended| {
            if !ended {
                page.complete_to = upto.max(after);
            }
            page
        })
    }

    fn read_at(
        &self,
        resource: &str,
        revision: u64,
        visit: &mut dyn FnMut(Record),
        stop: &Stop,
    ) -> Result<(), BackendError> {
        let mut live = BTreeMap::new();
        self.scan(revision, 0, revision, stop, |_, record| {
            if is_of(record, resource) {
                live.remove(&record.prev);
                if record.value.is_some() {
                    live.insert(record.revision, record.clone());
                }
            }
            false
        })?;
        live.into_values().for_each(visit);
        Ok(())
    }

    fn compact(&self, upto: u64, rows: usize) -> Result<Sweep, BackendError> {
        let mut state = self.log.state.lock();
        state.floor = state.floor.max(upto.min(state.last));
        let floor = state.floor;
        state.forget_batches(floor);
        let slice: Vec<(u64, u64, bool)> = state
            .records
            .range(state.swept + 1..)
            .take_while(|(revision, _)| **revision <= floor)
            .take(rows)
            .map(|(revision, record)| (*revision, record.prev, record.value.is_none()))
            .collect();
        for &(revision, prev, tombstone) in &slice {
            state.forget(prev);
            if tombstone {
                state.forget(revision);
            }
            state.swept = revision;
        }
        if slice.len() == rows {
            return Ok(Sweep::More);
        }
        state.swept = floor;
        Ok(Sweep::Done)
    }

    fn places(&self, visit: &mut dyn FnMut(Mark)) -> Result<(), BackendError> {
        self.log.state.lock().places(visit);
        Ok(())
    }

    fn compacted(&self) -> u64 {
        self.log.state.lock().floor
    }

    fn mark(&self) -> Result<Mark, BackendError> {
        Ok(self.log.state.lock().mark())
    }

    fn stats(&self) -> BackendStats {
        BackendStats {
            bytes: self.log.state.lock().bytes,
            engine: "memory",
            ..BackendStats::default()
        }
    }
}
