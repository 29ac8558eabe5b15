//! The log in memory: the reference model of every engine, and the store of servers that may forget.
//!
//! It shares the bytes of its values with the cache above it. It knows nothing of files, and survives a store that is
//! reopened on it, not a process.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::{Condvar, Mutex};

use crate::backend::{
    Backend, BackendError, BackendStats, Change, ChangePage, Outcome, PageLimit, Record, Stop,
    Sweep, Writers,
};

/// A log in memory. Clones share it.
#[derive(Clone)]
pub struct MemoryBackend {
    log: Arc<Log>,
    writers: Writers,
}

struct Log {
    state: Mutex<State>,
    grown: Condvar,
}

/// Revisions by resource and key.
type Heads = BTreeMap<(Arc<str>, Arc<str>), u64>;

#[derive(Default)]
struct State {
    records: BTreeMap<u64, Record>,
    /// The newest revision of each key, kept only where several writers may conflict.
    heads: Option<Heads>,
    last: u64,
    floor: u64,
    swept: u64,
    bytes: u64,
}

impl MemoryBackend {
    /// An empty log whose counter starts at the clock, so that clients which outlive a restart are told that their
    /// versions are gone instead of waiting for them in silence.
    pub fn new() -> Self {
        // 2024-01-01; a hundred revisions a millisecond may be spent without overtaking the clock.
        const EPOCH_MILLIS: u128 = 1_704_067_200_000;
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_millis());
        let start = now.saturating_sub(EPOCH_MILLIS) * 100;
        Self::starting_at(u64::try_from(start).unwrap_or(u64::MAX / 2).max(1))
    }

    /// An empty log whose last revision is `revision` (at least 1: version 0 is never given out).
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
            writers: Writers::One,
        }
    }

    /// The same log for several stores at once, as a shared database would be: the model of remote engines.
    pub fn shared(self) -> Self {
        let mut state = self.log.state.lock();
        let mut heads = BTreeMap::new();
        for record in state.records.values() {
            note_head(&mut heads, record);
        }
        state.heads = Some(heads);
        drop(state);
        Self {
            writers: Writers::Many,
            ..self
        }
    }
}

/// Records looked at before the log is given to others for a moment: a long read must not hold up commits.
const SLICE: usize = 1024;

impl MemoryBackend {
    /// Shows every record with `after < revision <= upto` to `look` until it returns true, which is returned. Fails if
    /// `exact` is below the floor at the end.
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

fn note_head(heads: &mut Heads, record: &Record) {
    let id = (record.resource.clone(), record.key.clone());
    match record.value {
        Some(_) => heads.insert(id, record.revision),
        None => heads.remove(&id),
    };
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
        if let Some(heads) = &mut self.heads {
            note_head(heads, &record);
        }
        self.records.insert(record.revision, record);
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

fn weight(record: &Record) -> u64 {
    let value = record.value.as_ref().map_or(0, |value| value.len());
    (record.key.len() + value) as u64
}

impl Backend for MemoryBackend {
    fn writers(&self) -> Writers {
        self.writers
    }

    fn commit(&self, batch: &[Record]) -> Result<Vec<Outcome>, BackendError> {
        let mut state = self.log.state.lock();
        let mut outcomes = Vec::with_capacity(batch.len());
        for record in batch {
            let mut record = record.clone();
            if let (Writers::Many, Some(heads)) = (self.writers, &state.heads) {
                let id = (record.resource.clone(), record.key.clone());
                let head = heads.get(&id).copied().unwrap_or(0);
                if head != record.prev {
                    outcomes.push(Outcome::Lost(state.last));
                    continue;
                }
                record.revision = state.last + 1;
            }
            outcomes.push(Outcome::Written(record.revision));
            state.append(record);
        }
        self.log.grown.notify_all();
        Ok(outcomes)
    }

    fn load(&self, after: u64, visit: &mut dyn FnMut(Record)) -> Result<(), BackendError> {
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
        Ok(())
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
        let wanted = |record: &Record| resource.is_none_or(|name| *record.resource == *name);
        self.scan(after, after, upto, stop, |state, record| {
            if !wanted(record) {
                return false;
            }
            let change = Change {
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
            if *record.resource == *resource {
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

    fn compacted(&self) -> u64 {
        self.log.state.lock().floor
    }

    fn last_revision(&self) -> Result<u64, BackendError> {
        Ok(self.log.state.lock().last)
    }

    fn follow(
        &self,
        after: u64,
        deliver: &mut dyn FnMut(Vec<Record>) -> bool,
    ) -> Result<(), BackendError> {
        let mut after = after;
        loop {
            let mut state = self.log.state.lock();
            if state.last <= after {
                // A pause now and then lets a store that was closed meanwhile leave.
                let pause = std::time::Duration::from_millis(100);
                self.log.grown.wait_for(&mut state, pause);
            }
            let fresh: Vec<Record> = state
                .records
                .range(after + 1..)
                .map(|(_, record)| record.clone())
                .collect();
            drop(state);
            after = fresh.last().map_or(after, |record| record.revision);
            if !deliver(fresh) {
                return Ok(());
            }
        }
    }

    fn stats(&self) -> BackendStats {
        BackendStats {
            bytes: self.log.state.lock().bytes,
            free_bytes: 0,
        }
    }
}
