//! A waker filter: lets a task that wakes often skip polling futures that are seldom ready.
//!
//! Polling a timer or a channel costs a lock and a few cache lines. A watch that polled them at every wake-up would pay
//! more for that than for the event that woke it. Behind a bell they are polled only after they have woken the task.

use parking_lot::Mutex;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

/// Records whether any of the futures behind it has called its waker.
pub(crate) struct Bell(Arc<Rope>);

struct Rope(Mutex<Pulled>);

struct Pulled {
    yes: bool,
    task: Waker,
}

impl Bell {
    /// A bell that has been rung, so that the first look at it asks.
    pub(crate) fn new() -> Bell {
        Bell(Arc::new(Rope(Mutex::new(Pulled {
            yes: true,
            task: Waker::noop().clone(),
        }))))
    }

    /// Returns the waker for polling the futures behind the bell, if one of them has woken it since the last call.
    ///
    /// The caller must poll all of them until they are pending; otherwise the bell does not ring again.
    pub(crate) fn rung(&self, cx: &Context<'_>) -> Option<Waker> {
        let mut pulled = self.0.0.lock();
        if !pulled.task.will_wake(cx.waker()) {
            pulled.task.clone_from(cx.waker());
        }
        std::mem::take(&mut pulled.yes).then(|| Waker::from(self.0.clone()))
    }
}

impl Wake for Rope {
    fn wake(self: Arc<Self>) {
        let task = {
            let mut pulled = self.0.lock();
            pulled.yes = true;
            pulled.task.clone()
        };
        task.wake();
    }
}

#[cfg(test)]
mod tests;
