//! A backend that fails on demand, to see what a store does about it.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::backend::{
    Backend, BackendError, BackendStats, ChangePage, Outcome, PageLimit, Record, Stop, Sweep,
    Writers, Written,
};

/// What shall go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Commits find no space; nothing is written.
    Full,
    /// Another program holds a lock; nothing is written.
    Busy,
    /// Commits fail, and nobody knows what was written.
    Failed,
    /// Commits panic.
    Panic,
}

/// A backend with a fault that can be switched on and off.
pub struct Faulty {
    inner: Arc<dyn Backend>,
    fault: Mutex<Option<Fault>>,
    gate: Mutex<()>,
    age: Mutex<Duration>,
}

impl Faulty {
    /// Wraps a backend; it works until it is told otherwise.
    pub fn new(inner: Arc<dyn Backend>) -> Self {
        Self {
            inner,
            fault: Mutex::new(None),
            gate: Mutex::new(()),
            age: Mutex::default(),
        }
    }

    /// From now on commits fail like this, or work again.
    pub fn set(&self, fault: Option<Fault>) {
        *self.fault.lock() = fault;
    }

    /// From now on history seems to be older by so much.
    pub fn set_age(&self, age: Duration) {
        *self.age.lock() = age;
    }

    /// Commits wait while the guard is held.
    pub fn hold(&self) -> impl Drop + '_ {
        self.gate.lock()
    }
}

impl Backend for Faulty {
    fn writers(&self) -> Writers {
        self.inner.writers()
    }

    fn commit(&self, batch: &[Record]) -> Result<Vec<Outcome>, BackendError> {
        let gate = self.gate.lock();
        drop(gate);
        let fault = *self.fault.lock();
        match fault {
            None => self.inner.commit(batch),
            Some(Fault::Full) => Err(BackendError::Full("a fault was asked for".into())),
            Some(Fault::Busy) => Err(BackendError::Busy("a fault was asked for".into())),
            Some(Fault::Failed) => Err(BackendError::Failed("a fault was asked for".into())),
            Some(Fault::Panic) => panic!("a fault was asked for"),
        }
    }

    fn load(&self, after: u64, visit: &mut dyn FnMut(Record)) -> Result<(), BackendError> {
        self.inner.load(after, visit)
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

    fn last_revision(&self) -> Result<u64, BackendError> {
        self.inner.last_revision()
    }

    fn follow(
        &self,
        after: u64,
        deliver: &mut dyn FnMut(Vec<Record>) -> bool,
    ) -> Result<(), BackendError> {
        self.inner.follow(after, deliver)
    }

    fn stats(&self) -> BackendStats {
        self.inner.stats()
    }

    fn close(&self) -> Result<(), BackendError> {
        self.inner.close()
    }
}
