//! A log that is used through two engines in turn, as by two stores: what one of them does, the other must see.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use bareboat_storage::{
    Appended, Attention, Backend, BackendError, BackendStats, Batch, ChangePage, Decide, Limits,
    Mark, PageLimit, Record, Refill, Stop, Sweep, Tail, Written,
};

/// Two engines on one log.
pub struct Alternating {
    engines: [Arc<dyn Backend>; 2],
    calls: AtomicUsize,
}

impl std::fmt::Debug for Alternating {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Alternating").finish_non_exhaustive()
    }
}

impl Alternating {
    /// Uses two engines that were opened on the same log.
    pub fn new(engines: [Arc<dyn Backend>; 2]) -> Self {
        Self {
            engines,
            calls: AtomicUsize::new(0),
        }
    }

    fn next(&self) -> &dyn Backend {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        &*self.engines[call % 2]
    }
}

impl Backend for Alternating {
    fn is_shared(&self) -> bool {
        self.engines[0].is_shared()
    }

    fn limits(&self) -> Limits {
        self.engines[0].limits()
    }

    fn append(&self, base: &Mark, batch: &Batch) -> Result<Appended, BackendError> {
        self.next().append(base, batch)
    }

    fn append_held(
        &self,
        base: &Mark,
        decide: &mut Decide<'_>,
    ) -> Result<Option<Appended>, BackendError> {
        self.next().append_held(base, decide)
    }

    fn tail(&self, after: &Mark) -> Result<Tail, BackendError> {
        self.next().tail(after)
    }

    fn wait(&self, after: u64, until: Instant) -> bool {
        self.engines[0].wait(after, until)
    }

    fn attend(&self, attention: Attention) {
        self.engines[0].attend(attention);
    }

    fn load(&self, after: u64, visit: &mut dyn FnMut(Record)) -> Result<Mark, BackendError> {
        self.next().load(after, visit)
    }

    fn dump(
        &self,
        after: u64,
        visit: &mut dyn FnMut(Record),
        stop: &Stop,
    ) -> Result<Mark, BackendError> {
        self.next().dump(after, visit, stop)
    }

    fn refill(&self, step: Refill<'_>) -> Result<(), BackendError> {
        self.engines[0].refill(step)
    }

    fn is_complete(&self) -> Result<bool, BackendError> {
        self.next().is_complete()
    }

    fn next_epoch(&self, beyond: u64) -> Result<Mark, BackendError> {
        self.next().next_epoch(beyond)
    }

    fn read_since(
        &self,
        resource: Option<&str>,
        after: u64,
        upto: u64,
        limit: PageLimit,
        stop: &Stop,
    ) -> Result<ChangePage, BackendError> {
        self.next().read_since(resource, after, upto, limit, stop)
    }

    fn read_at(
        &self,
        resource: &str,
        revision: u64,
        visit: &mut dyn FnMut(Record),
        stop: &Stop,
    ) -> Result<(), BackendError> {
        self.next().read_at(resource, revision, visit, stop)
    }

    fn compact(&self, upto: u64, rows: usize) -> Result<Sweep, BackendError> {
        self.next().compact(upto, rows)
    }

    fn history(&self, visit: &mut dyn FnMut(Written)) -> Result<(), BackendError> {
        self.next().history(visit)
    }

    fn places(&self, visit: &mut dyn FnMut(Mark)) -> Result<(), BackendError> {
        self.next().places(visit)
    }

    /// The floor that either engine knows: one of them may learn it later.
    fn compacted(&self) -> u64 {
        let floors = self.engines.iter().map(|engine| engine.compacted());
        floors.max().unwrap_or(0)
    }

    fn mark(&self) -> Result<Mark, BackendError> {
        self.next().mark()
    }

    fn stats(&self) -> BackendStats {
        self.engines[0].stats()
    }

    fn close(&self) -> Result<(), BackendError> {
        let closed = self.engines.each_ref().map(|engine| engine.close());
        closed.into_iter().collect()
    }
}
