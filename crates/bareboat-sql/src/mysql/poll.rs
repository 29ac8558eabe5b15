//! Finds the writes of other servers by polling the row of `meta`. The interval depends on whether reads or watchers
//! wait.

use std::time::{Duration, Instant};

use bareboat_storage::Attention;
use parking_lot::{Condvar, Mutex};

use super::Inner;

/// The interval while reads wait, or shortly after another server wrote.
const SHORT: Duration = Duration::from_millis(5);
/// The interval while there are watchers.
const WATCHED: Duration = Duration::from_millis(21);
const LONG: Duration = Duration::from_millis(125);
/// How long after a write of another server the interval stays short.
const MOMENT: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct Poll {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    attention: Attention,
    /// The time when a write of another server was last read.
    moved: Option<Instant>,
    closed: bool,
}

impl State {
    fn pause(&self, now: Instant) -> Duration {
        let moved = self.moved.is_some_and(|at| now.duration_since(at) < MOMENT);
        match self.attention {
            Attention::Reads => SHORT,
            _ if moved => SHORT,
            Attention::Watchers => WATCHED,
            Attention::Nobody => LONG,
        }
    }
}

impl Poll {
    pub(super) fn attend(&self, attention: Attention) {
        let mut state = self.state.lock();
        if state.attention != attention {
            let sooner = attention > state.attention;
            state.attention = attention;
            if sooner {
                self.changed.notify_all();
            }
        }
    }

    pub(super) fn moved(&self) {
        self.state.lock().moved = Some(Instant::now());
    }

    pub(super) fn close(&self) {
        self.state.lock().closed = true;
        self.changed.notify_all();
    }

    /// Waits until the next poll, at most until `until`. Returns whether to poll.
    fn pause(&self, until: Instant) -> bool {
        let mut state = self.state.lock();
        let now = Instant::now();
        if !state.closed && now < until {
            let next = until.min(now + state.pause(now));
            // The wait ends early when a read or a watcher begins to wait.
            self.changed.wait_until(&mut state, next);
        }
        !state.closed && Instant::now() < until
    }
}

impl Inner {
    /// Returns true when the log ends at another mark than the known one, or false at `until`.
    pub(super) fn wait(&self, until: Instant) -> bool {
        while self.poll.pause(until) {
            let Ok(found) = self.mark(&self.look) else {
                // The tail reports the same error, and pauses.
                return true;
            };
            let known = *self.known.lock();
            if (found.last, found.epoch) != (known.last, known.epoch) {
                return true;
            }
        }
        self.poll.state.lock().closed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_rare_while_nobody_waits() {
        let now = Instant::now();
        let pause = |attention, moved| {
            let state = State {
                attention,
                moved,
                closed: false,
            };
            state.pause(now)
        };
        assert_eq!(pause(Attention::Nobody, None), LONG);
        assert_eq!(pause(Attention::Watchers, None), WATCHED);
        assert_eq!(pause(Attention::Reads, None), SHORT);
        assert_eq!(pause(Attention::Nobody, Some(now)), SHORT);
        let long_ago = now.checked_sub(2 * MOMENT);
        assert_eq!(pause(Attention::Nobody, long_ago), LONG);
    }
}
