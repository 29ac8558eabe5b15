//! The clock of stored objects: the times that are written into them, and what their ages in tables are counted from.
//!
//! Everything else, such as deadlines of requests, expiry and controllers, has the clock of the system.

use bareboat_api::Str;
use bareboat_api::kind::Now;
use bareboat_api::time::Timestamp;
use std::cell::RefCell;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// The clock of stored objects: `creationTimestamp`, `deletionTimestamp`, the times of managed fields, and ages in tables.
/// The default is the clock of the system. Tests hold it, see `bareboat_testing::HeldClock`.
///
/// ```
/// use bareboat_server::{Clock, Server};
/// use std::time::{Duration, UNIX_EPOCH};
///
/// let clock = Clock::new(|| UNIX_EPOCH + Duration::from_secs(1_648_166_400));
/// let builder = Server::builder().clock(clock);
/// # drop(builder);
/// ```
#[derive(Clone, Default)]
pub struct Clock(Option<Arc<dyn Fn() -> SystemTime + Send + Sync>>);

bareboat_api::opaque_debug!(Clock);

impl Clock {
    /// A clock that a function reads.
    pub fn new(read: impl Fn() -> SystemTime + Send + Sync + 'static) -> Clock {
        Clock(Some(Arc::new(read)))
    }

    /// Returns the time in the format of objects.
    pub(crate) fn text(&self) -> Str {
        match &self.0 {
            None => system_text(),
            Some(read) => Str::new(Timestamp::from(read()).print_seconds()),
        }
    }

    /// Returns the time for ages.
    pub(crate) fn now(&self) -> Now {
        let time = self.0.as_ref().map_or_else(SystemTime::now, |read| read());
        Now(Timestamp::from(time).seconds)
    }
}

/// Returns the time of the system in the format of objects. It is printed once a second on each thread.
fn system_text() -> Str {
    thread_local! {
        static PRINTED: RefCell<(i64, Str)> = const { RefCell::new((i64::MIN, Str::const_new(""))) };
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = since.map_or(0, |time| i64::try_from(time.as_secs()).unwrap_or(i64::MAX));
    PRINTED.with_borrow_mut(|(second, text)| {
        if *second != seconds {
            *text = Str::new(Timestamp { seconds, nanos: 0 }.print_seconds());
            *second = seconds;
        }
        text.clone()
    })
}
