//! A session that listens for notifications about the commits of other servers. Notifications are hints: without them,
//! the log is polled more often.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_postgres::{AsyncMessage, Client, Connection};
use uuid::Uuid;

use super::Inner;
use super::tls::Tls;
use crate::address::TlsMode;
use crate::error::SqlError;

/// The notifications received so far.
#[derive(Default)]
pub(super) struct Heard {
    state: Mutex<State>,
    changed: Condvar,
    /// The highest revision that a read of the log's end found.
    seen: AtomicU64,
}

#[derive(Default)]
struct State {
    /// The highest revision that another server announced.
    last: u64,
    /// The value of `last` when a waiting thread was last woken. A batch that the thread did not find then may never
    /// come: a restored database lacks it.
    told: u64,
    listening: bool,
    closed: bool,
}

/// The polling interval while no notifications arrive.
const DEAF: Duration = Duration::from_millis(20);
const BETWEEN_TRIES: Duration = Duration::from_millis(500);
/// The timeout for the first notification, which this server sends to itself.
const PROOF: Duration = Duration::from_secs(2);

impl State {
    fn has_news(&self, after: u64) -> bool {
        self.last > after && self.last != self.told || self.closed
    }
}

impl Heard {
    /// Returns whether there may be news, which are told once.
    pub(super) fn wait(&self, after: u64, until: Instant) -> bool {
        let mut state = self.state.lock();
        let until = match state.listening {
            true => until,
            false => until.min(Instant::now() + DEAF),
        };
        while !state.has_news(after) && !self.changed.wait_until(&mut state, until).timed_out() {}
        let news = state.has_news(after) || !state.listening;
        state.told = state.last;
        news
    }

    /// Returns whether the log is known to have more than the revisions up to `after`.
    pub(super) fn is_beyond(&self, after: u64) -> bool {
        self.seen.load(Ordering::Relaxed) > after || self.state.lock().last > after
    }

    /// Stores the end of the log that a read found. It wakes no task, unlike a notification: the reader has the value already.
    pub(super) fn see(&self, last: u64) {
        self.seen.fetch_max(last, Ordering::Relaxed);
    }

    fn hear(&self, last: u64) {
        let mut state = self.state.lock();
        state.last = state.last.max(last);
        self.changed.notify_all();
    }

    fn listening(&self, now: bool) {
        self.state.lock().listening = now;
        self.changed.notify_all();
    }

    pub(super) fn close(&self) {
        self.state.lock().closed = true;
        self.changed.notify_all();
    }
}

/// Listens for notifications until the store is closed.
pub(super) async fn run(inner: Arc<Inner>) {
    let mut deaf = false;
    while !inner.is_closed() {
        let ended = session(&inner, &mut deaf).await;
        inner.heard.listening(false);
        if let Err(error) = ended {
            tracing::debug!(%error, "the session for notifications ended");
        }
        tokio::time::sleep(BETWEEN_TRIES).await;
    }
}

async fn session(inner: &Arc<Inner>, deaf: &mut bool) -> Result<(), SqlError> {
    let config = inner.address.config()?;
    let counts = &inner.connections;
    let ended = match inner.address.tls {
        TlsMode::Off => {
            let connected = config.connect(tokio_postgres::NoTls).await;
            counts.tried(&connected);
            let (client, connection) = connected?;
            listen(inner, client, connection, deaf).await
        }
        _ => {
            let connected = config.connect(Tls::of(&inner.address)?).await;
            counts.tried(&connected);
            let (client, connection) = connected?;
            listen(inner, client, connection, deaf).await
        }
    };
    if !inner.is_closed() {
        counts.lost();
    }
    ended
}

async fn listen<S, T>(
    inner: &Arc<Inner>,
    client: Client,
    mut connection: Connection<S, T>,
    deaf: &mut bool,
) -> Result<(), SqlError>
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    let channel = inner.channel();
    // A notification that this server sends to itself proves that the session receives them.
    let proof = Uuid::new_v4();
    let begin = format!("LISTEN {channel}; SELECT pg_notify('{channel}', '0 {proof}')");
    let mut begun = std::pin::pin!(client.batch_execute(&begin));
    let mut started = false;
    let mut proven = false;
    let deadline = tokio::time::sleep(PROOF);
    let mut deadline = std::pin::pin!(deadline);
    loop {
        tokio::select! {
            biased;
            message = poll_fn(|cx| connection.poll_message(cx)) => match message {
                Some(Ok(AsyncMessage::Notification(heard))) => {
                    let Some((last, writer)) = heard.payload().split_once(' ') else { continue };
                    let Ok(writer) = writer.parse::<Uuid>() else { continue };
                    if writer == proof {
                        proven = true;
                        *deaf = false;
                        inner.heard.listening(true);
                    } else if writer.as_u128() != *inner.writer_id.lock() {
                        inner.heard.hear(last.parse().unwrap_or(0));
                    }
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error.into()),
                None => return Ok(()),
            },
            begun = &mut begun, if !started => {
                begun?;
                started = true;
            }
            () = &mut deadline, if !proven && !*deaf => {
                *deaf = true;
                tracing::warn!(
                    "notifications of the database do not arrive, such as behind a pooler in transaction mode: the log is read every 20 ms"
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_that_never_comes_is_reported_once() {
        let heard = Heard::default();
        heard.listening(true);
        heard.hear(5);
        let long = Instant::now() + Duration::from_secs(60);
        assert!(heard.wait(1, long));
        assert!(Instant::now() < long);
        // The log does not have it.
        let until = Instant::now() + Duration::from_millis(100);
        assert!(!heard.wait(1, until));
        assert!(Instant::now() >= until);
        assert!(heard.is_beyond(1));
        // News are told however late the wait ends.
        heard.hear(6);
        assert!(heard.wait(1, Instant::now()));
    }
}
