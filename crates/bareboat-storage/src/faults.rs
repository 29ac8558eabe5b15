//! A backend with injected faults, for tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::backend::{Backend, BackendError, Written};
use crate::batch::{Appended, Batch, Mark, Tail};

/// A fault to inject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Commits find no space; nothing is written.
    Full,
    /// The disk is read-only; nothing is written.
    ReadOnly,
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
    waiting: AtomicUsize,
    age: Mutex<Duration>,
    lag: Mutex<Duration>,
}

opaque_debug!(Faulty);

impl Faulty {
    /// Wraps `inner`, without a fault at first.
    pub fn new(inner: Arc<dyn Backend>) -> Self {
        Self {
            inner,
            fault: Mutex::new(None),
            gate: Mutex::new(()),
            waiting: AtomicUsize::new(0),
            age: Mutex::default(),
            lag: Mutex::default(),
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

    /// Delays reads of what other stores wrote.
    pub fn set_lag(&self, lag: Duration) {
        *self.lag.lock() = lag;
    }

    /// Returns the number of commits that [`Faulty::hold`] blocks.
    pub fn held(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }

    /// Blocks commits while the guard is held.
    pub fn hold(&self) -> impl Drop + '_ {
        self.gate.lock()
    }
}

impl Backend for Faulty {
    crate::delegate_backend!(inner: is_shared limits append_held wait attend load refill is_complete next_epoch read_since read_at compact revision_before compacted mark release_memory stats close);

    fn append(&self, base: &Mark, batch: &Batch) -> Result<Appended, BackendError> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let gate = self.gate.lock();
        drop(gate);
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        let fault = *self.fault.lock();
        let injected = || "injected fault".into();
        match fault {
            None => self.inner.append(base, batch),
            Some(Fault::Full) => Err(BackendError::Full(injected())),
            Some(Fault::ReadOnly) => Err(BackendError::ReadOnly(injected())),
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

    fn tail(&self, after: &Mark) -> Result<Tail, BackendError> {
        let lag = *self.lag.lock();
        if !lag.is_zero() {
            std::thread::sleep(lag);
        }
        self.inner.tail(after)
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
}
