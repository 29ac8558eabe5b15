//! A backend with injected faults, for tests.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::backend::{
    Attention, Backend, BackendError, BackendStats, ChangePage, Decide, Limits, PageLimit, Record,
    Stop, Sweep, Written,
};
use crate::batch::{Appended, Batch, Mark, Tail};
use crate::refill::Refill;

/// A fault to inject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Commits find no space; nothing is written.
    Full,
    /// Another program holds a lock; nothing is written.
    Busy,
    /// Commits fail with an unknown outcome.
    Failed,
    /// The log cannot be reached; nothing is written.
    Unreachable,
    /// Commits are written, and the connection is lost before the answer.
    LostAnswer,
    /// The connection is lost before commits arrive.
    LostRequest,
    /// Commits panic.
    Panic,
}

/// A backend with a fault that tests can switch on and off.
pub struct Faulty {
    inner: Arc<dyn Backend>,
    fault: Mutex<Option<Fault>>,
    gate: Mutex<()>,
    age: Mutex<Duration>,
}

opaque_debug!(Faulty);

impl Faulty {
    /// Wraps `inner`, without a fault at first.
    pub fn new(inner: Arc<dyn Backend>) -> Self {
        Self {
            inner,
            fault: Mutex::new(None),
            gate: Mutex::new(()),
            age: Mutex::default(),
        }
    }

    /// Sets the fault of later commits; `None` removes it.
    pub fn set(&self, fault: Option<Fault>) {
        *self.fault.lock() = fault;
    }

    /// Makes the history appear older by `age`.
    pub fn set_age(&self, age: Duration) {
        *self.age.lock() = age;
    }

    /// Blocks commits while the guard is held.
    pub fn hold(&self) -> impl Drop + '_ {
        self.gate.lock()
    }
}

impl Backend for Faulty {
    fn is_shared(&self) -> bool {
        self.inner.is_shared()
    }

    fn limits(&self) -> Limits {
        self.inner.limits()
    }

    fn append(&self, base: &Mark, batch: &Batch) -> Result<Appended, BackendError> {
        let gate = self.gate.lock();
        drop(gate);
        let fault = *self.fault.lock();
        let injected = || "injected fault".into();
        match fault {
            None => self.inner.append(base, batch),
            Some(Fault::Full) => Err(BackendError::Full(injected())),
            Some(Fault::Busy) => Err(BackendError::Busy(injected())),
            Some(Fault::Failed) => Err(BackendError::Failed(injected())),
            Some(Fault::Unreachable) => Err(BackendError::Unreachable(injected())),
            Some(Fault::LostAnswer) => {
                self.inner.append(base, batch)?;
                Err(BackendError::Unknown(injected()))
            }
            Some(Fault::LostRequest) => Err(BackendError::Unknown(injected())),
            Some(Fault::Panic) => panic!("injected fault"),
        }
    }

    fn append_held(
        &self,
        base: &Mark,
        decide: &mut Decide<'_>,
    ) -> Result<Option<Appended>, BackendError> {
        self.inner.append_held(base, decide)
    }

    fn tail(&self, after: &Mark) -> Result<Tail, BackendError> {
        self.inner.tail(after)
    }

    fn wait(&self, after: u64, until: Instant) {
        self.inner.wait(after, until);
    }

    fn attend(&self, attention: Attention) {
        self.inner.attend(attention);
    }

    fn load(&self, after: u64, visit: &mut dyn FnMut(Record)) -> Result<Mark, BackendError> {
        self.inner.load(after, visit)
    }

    fn refill(&self, step: Refill<'_>) -> Result<(), BackendError> {
        self.inner.refill(step)
    }

    fn is_complete(&self) -> Result<bool, BackendError> {
        self.inner.is_complete()
    }

    fn next_epoch(&self, beyond: u64) -> Result<Mark, BackendError> {
        self.inner.next_epoch(beyond)
    }

    fn read_since(
        &self,
        resource: Option<&str>,
        after: u64,
        upto: u64,
        limit: PageLimit,
        stop: &Stop,
    ) -> Result<ChangePage, BackendError> {
        self.inner.read_since(resource, after, upto, limit, stop)
    }

    fn read_at(
        &self,
        resource: &str,
        revision: u64,
        visit: &mut dyn FnMut(Record),
        stop: &Stop,
    ) -> Result<(), BackendError> {
        self.inner.read_at(resource, revision, visit, stop)
    }

    fn compact(&self, upto: u64, rows: usize) -> Result<Sweep, BackendError> {
        self.inner.compact(upto, rows)
    }

    fn history(&self, visit: &mut dyn FnMut(Written)) -> Result<(), BackendError> {
        let age = *self.age.lock();
        self.inner.history(&mut |written| {
            visit(Written {
                at: written.at.checked_sub(age).unwrap_or(written.at),
                ..written
            });
        })
    }

    fn compacted(&self) -> u64 {
        self.inner.compacted()
    }

    fn mark(&self) -> Result<Mark, BackendError> {
        self.inner.mark()
    }

    fn stats(&self) -> BackendStats {
        self.inner.stats()
    }

    fn close(&self) -> Result<(), BackendError> {
        self.inner.close()
    }
}
