//! Watches for the batches of other servers, and checks the state of the cluster at intervals. Watch events are hints;
//! without them the log is read more often.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bareboat_storage::BackendError;
use parking_lot::{Condvar, Mutex};

use crate::channel::Channel;
use crate::engine::Inner;
use crate::error::read_failed;
use crate::fetch::Stored;
use crate::messages::{Watched, method, watch};

/// The batches that the watch has reported.
#[derive(Default)]
pub(crate) struct Heard {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The highest revision that another server wrote.
    last: u64,
    /// The value of `last` when a waiting thread was last woken. A batch that the thread did not find then may never
    /// come: a restored cluster lacks it.
    told: u64,
    /// Whether events may have been missed since the log was read.
    missed: bool,
    listening: bool,
    closed: bool,
}

/// The interval of reads of the log while there is no watch.
const DEAF: Duration = Duration::from_millis(50);
const BETWEEN_TRIES: Duration = Duration::from_millis(300);
/// The interval between checks of the cluster's size and alarms.
const INSPECT: Duration = Duration::from_secs(30);

impl State {
    fn has_news(&self, after: u64) -> bool {
        self.last > after && self.last != self.told || self.missed || self.closed
    }
}

impl Heard {
    /// Returns whether there may be news, which are told once.
    pub(crate) fn wait(&self, after: u64, until: Instant) -> bool {
        let mut state = self.state.lock();
        let until = match state.listening {
            true => until,
            false => until.min(Instant::now() + DEAF),
        };
        while !state.has_news(after) && !self.changed.wait_until(&mut state, until).timed_out() {}
        let news = state.has_news(after) || !state.listening;
        state.missed = false;
        state.told = state.last;
        news
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

/// Watches the cluster until the store is closed.
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

/// Reads watch events from `channel` until the connection ends.
async fn hear(inner: &Arc<Inner>, channel: &Channel) -> Result<(), BackendError> {
    // Watch only the rows of batches: values are read when they are needed, so this server does not receive its own
    // values.
    let request = watch(&inner.keys.at("b/"), &inner.keys.rows_end(), 0);
    let mut answers = (channel.stream(method::WATCH, request).await).map_err(read_failed)?;
    let mut inspect = tokio::time::interval(INSPECT);
    inspect.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    // The first tick is immediate.
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
                        // The reader of the log reports the error.
                        Err(_) => inner.heard.listening(true),
                    }
                }
            }
            _ = inspect.tick() => inner.inspect(channel).await?,
        }
    }
}
