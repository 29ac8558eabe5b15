//! The watch: hears of the batches of other servers, and looks at the state of the cluster now and then. What is heard
//! are hints; without them the log is only read more often.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bareboat_storage::BackendError;
use parking_lot::{Condvar, Mutex};

use crate::channel::Channel;
use crate::engine::Inner;
use crate::error::read_failed;
use crate::fetch::Stored;
use crate::messages::{Watched, method, watch};

/// What was heard.
#[derive(Default)]
pub(crate) struct Heard {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The highest revision that another server wrote.
    last: u64,
    /// The one that a waiting thread was last woken for. What it did not find then may never come: a restored cluster lacks it.
    told: u64,
    /// Whether something may have been missed since the log was read.
    missed: bool,
    listening: bool,
    closed: bool,
}

/// How often the log is read while nothing can be heard.
const DEAF: Duration = Duration::from_millis(50);
const BETWEEN_TRIES: Duration = Duration::from_millis(300);
/// How often the size of the cluster and its alarms are read.
const INSPECT: Duration = Duration::from_secs(30);

impl Heard {
    pub(crate) fn wait(&self, after: u64, until: Instant) {
        let mut state = self.state.lock();
        let until = match state.listening {
            true => until,
            false => until.min(Instant::now() + DEAF),
        };
        while (state.last <= after || state.last == state.told)
            && !state.missed
            && !state.closed
            && !self.changed.wait_until(&mut state, until).timed_out()
        {}
        state.missed = false;
        state.told = state.last;
    }

    pub(crate) fn last(&self) -> u64 {
        self.state.lock().last
    }

    fn hear(&self, last: u64) {
        let mut state = self.state.lock();
        state.last = state.last.max(last);
        self.changed.notify_all();
    }

    fn listening(&self, now: bool) {
        let mut state = self.state.lock();
        state.listening = now;
        state.missed = true;
        self.changed.notify_all();
    }

    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.changed.notify_all();
    }
}

/// Listens until the store is closed.
pub(crate) async fn run(inner: Arc<Inner>) {
    while !inner.is_closed() {
        let ended = listen(&inner).await;
        inner.heard.listening(false);
        if let Err(error) = ended {
            tracing::debug!(%error, "the watch ended");
        }
        tokio::time::sleep(BETWEEN_TRIES).await;
    }
}

async fn listen(inner: &Arc<Inner>) -> Result<(), BackendError> {
    let dialled = inner.dial().await;
    inner.connections.tried(&dialled);
    let channel = dialled.map_err(crate::error::unreachable)?;
    let ended = hear(inner, &channel).await;
    if !inner.is_closed() {
        inner.connections.lost();
    }
    ended
}

/// Reads what a connection says until it ends.
async fn hear(inner: &Arc<Inner>, channel: &Channel) -> Result<(), BackendError> {
    // Only rows: a server does not get back what it wrote, and values are read when they are needed.
    let request = watch(&inner.keys.at("b/"), &inner.keys.rows_end(), 0);
    let mut answers = (channel.stream(method::WATCH, request).await).map_err(read_failed)?;
    let mut inspect = tokio::time::interval(INSPECT);
    inspect.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    // The first is at once.
    inspect.tick().await;
    loop {
        tokio::select! {
            biased;
            answer = answers.next() => {
                let answer = answer.map_err(read_failed)?;
                let unreadable = || BackendError::Unreachable("an event cannot be read".into());
                let watched = Watched::decode(&answer).ok_or_else(unreadable)?;
                if watched.canceled {
                    let reason = String::from_utf8_lossy(&watched.reason).into_owned();
                    return Err(BackendError::Unreachable(reason.into()));
                }
                if watched.created {
                    inner.heard.listening(true);
                }
                let own = *inner.writer_id.lock();
                for pair in &watched.written {
                    match Stored::parse(pair) {
                        Ok(stored) if stored.row.is_by(own) => {}
                        Ok(stored) => inner.heard.hear(stored.row.last),
                        // The reader of the log complains.
                        Err(_) => inner.heard.listening(true),
                    }
                }
            }
            _ = inspect.tick() => inner.inspect(channel).await?,
        }
    }
}
