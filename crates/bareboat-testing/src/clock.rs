//! A clock that a test holds.

use bareboat::server::Clock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A clock that stands still until the test moves it: the times in stored objects, and their ages in tables.
///
/// Expiry, grace periods and controllers have the clock of the system. A test that moves this one far away from it may want
/// [`Builder::without_controllers`](crate::Builder::without_controllers).
///
/// ```
/// use bareboat_testing::{HeldClock, TestServer};
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::Api;
/// use kube::api::PostParams;
/// use std::time::Duration;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), kube::Error> {
/// let clock = HeldClock::at(1_648_166_400); // 2022-03-25T00:00:00Z
/// let server = TestServer::builder().without_controllers().clock(&clock).start().await;
/// let maps: Api<ConfigMap> = Api::namespaced(server.client(), "default");
/// let mut map = ConfigMap::default();
/// for (name, born) in [("a", "2022-03-25T00:00:00Z"), ("b", "2022-03-25T01:00:00Z")] {
///     map.metadata.name = Some(name.to_owned());
///     let created = maps.create(&PostParams::default(), &map).await?;
///     let time = created.metadata.creation_timestamp.expect("the server sets it");
///     assert_eq!(time.0.to_string(), born);
///     clock.advance(Duration::from_secs(3600));
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct HeldClock(Arc<AtomicU64>);

impl HeldClock {
    /// A clock that shows a time, in seconds since 1970.
    pub fn at(seconds: u64) -> HeldClock {
        HeldClock(Arc::new(AtomicU64::new(seconds)))
    }

    /// Moves the clock forward, by whole seconds.
    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(by.as_secs(), Ordering::Relaxed);
    }

    /// Sets the clock, in seconds since 1970.
    pub fn set(&self, seconds: u64) {
        self.0.store(seconds, Ordering::Relaxed);
    }

    /// Returns the time it shows.
    pub fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(self.0.load(Ordering::Relaxed))
    }

    /// Returns this clock for a server.
    pub(crate) fn of_server(&self) -> Clock {
        let held = self.clone();
        Clock::new(move || held.now())
    }
}
