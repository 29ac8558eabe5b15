//! A bell for what seldom happens in a task that is often woken: the end of a server, a timer.
//!
//! Asking a timer or a channel costs a lock and a few cache lines. Asked at every wake-up of a watch they would cost more
//! than the event that woke it; behind a bell they are asked when they have called, and otherwise left alone.

use parking_lot::Mutex;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

/// Stands between a task and some of the futures it polls.
pub(crate) struct Bell(Arc<Rope>);

struct Rope(Mutex<Pulled>);

struct Pulled {
    yes: bool,
    task: Waker,
}

impl Bell {
    /// A bell that has been rung: whoever is behind it was never asked.
    pub(crate) fn new() -> Bell {
        Bell(Arc::new(Rope(Mutex::new(Pulled {
            yes: true,
            task: Waker::noop().clone(),
        }))))
    }

    /// The waker to poll those behind the bell with, if one of them has called; the task is woken when one does.
    ///
    /// They must all be polled until they are pending, or the bell stays silent.
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
