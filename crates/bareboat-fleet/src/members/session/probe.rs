//! The health of a member: its answer to `/readyz`, and what several answers in a row mean.

use crate::api::{MemberApi, MemberError, fetch_bytes};
use crate::members::conditions::Condition;
use crate::settings::FleetSettings;
use std::time::Duration;
use tokio::time::Instant;

/// The largest answer that is read.
const LARGEST: usize = 256 << 10;
/// How many failures in a row make a member unhealthy.
const FAILURES: u32 = 2;
/// How long a member that failed twice within [`MEMORY`] must be healthy before it is trusted.
const SETTLE: Duration = Duration::from_secs(30);
/// How long an outage is remembered.
const MEMORY: Duration = Duration::from_secs(300);

/// One answer about health.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Healthy,
    /// The member answered that it is not healthy.
    Unhealthy(String),
    NotReachable(String),
}

impl Found {
    pub(super) fn is_healthy(&self) -> bool {
        *self == Found::Healthy
    }
}

/// Asks a member for its health.
pub(super) async fn ask(api: &dyn MemberApi, settings: &FleetSettings) -> Found {
    let mut found = path(api, "/readyz", settings).await;
    if found.as_ref().is_err_and(|error| error.code() == Some(404)) {
        found = path(api, "/healthz", settings).await;
    }
    match found {
        Ok(()) => Found::Healthy,
        // A user without the right to see the health of a member may still read its objects.
        Err(MemberError::Refused { code: 403, .. }) => Found::Healthy,
        Err(MemberError::Refused { message, .. }) => Found::Unhealthy(message),
        Err(error) => Found::NotReachable(error.to_string()),
    }
}

async fn path(
    api: &dyn MemberApi,
    path: &str,
    settings: &FleetSettings,
) -> Result<(), MemberError> {
    let answer = fetch_bytes(api, path, "*/*", LARGEST, settings.probe_timeout).await;
    answer.map(drop)
}

/// What the answers so far mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Probe {
    Healthy,
    /// It answers again, but failed so often that it is not trusted yet.
    Recovering,
    /// One failure means nothing.
    Doubtful,
    Failed(Condition),
}

/// The answers of a member so far.
#[derive(Debug, Default)]
pub(super) struct Health {
    failures: u32,
    /// When the member last became unhealthy, and how often that was soon after the time before.
    outages: Option<(Instant, u32)>,
    /// Since when it answers again.
    better: Option<Instant>,
}

impl Health {
    pub(super) fn judge(&mut self, found: Found) -> Probe {
        let condition = match found {
            Found::Healthy => return self.healthy(),
            Found::Unhealthy(why) => Condition::new(false, "Unhealthy", why),
            Found::NotReachable(why) => Condition::new(false, "NotReachable", why),
        };
        if self.better.take().is_some() {
            // It was not trusted again yet, so the outage goes on.
            self.failures = FAILURES;
        }
        self.failures = self.failures.saturating_add(1);
        if self.failures < FAILURES {
            return Probe::Doubtful;
        }
        if self.failures == FAILURES {
            let now = Instant::now();
            self.outages = match self.outages {
                Some((last, count)) if now.duration_since(last) < MEMORY => Some((now, count + 1)),
                _ => Some((now, 1)),
            };
        }
        Probe::Failed(condition)
    }

    fn healthy(&mut self) -> Probe {
        let was_down = self.failures >= FAILURES || self.better.is_some();
        self.failures = 0;
        let now = Instant::now();
        let often = self.outages.is_some_and(|(_, count)| count > 1);
        if !was_down || !often {
            self.better = None;
            return Probe::Healthy;
        }
        let since = *self.better.get_or_insert(now);
        match now.duration_since(since) >= SETTLE {
            true => {
                self.better = None;
                Probe::Healthy
            }
            false => Probe::Recovering,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn down() -> Found {
        Found::NotReachable("x".to_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn two_failures_in_a_row_count() {
        let mut health = Health::default();
        assert_eq!(health.judge(Found::Healthy), Probe::Healthy);
        assert_eq!(health.judge(down()), Probe::Doubtful);
        assert_eq!(health.judge(Found::Healthy), Probe::Healthy);
        assert_eq!(health.judge(down()), Probe::Doubtful);
        let failed = Probe::Failed(Condition::new(false, "NotReachable", "x"));
        assert_eq!(health.judge(down()), failed);
        // The first return is trusted at once.
        assert_eq!(health.judge(Found::Healthy), Probe::Healthy);
    }

    #[tokio::test(start_paused = true)]
    async fn a_member_that_comes_and_goes_must_settle() {
        let mut health = Health::default();
        for _ in 0..2 {
            health.judge(down());
            health.judge(down());
            health.judge(Found::Healthy);
        }
        assert_eq!(health.judge(Found::Healthy), Probe::Recovering);
        tokio::time::advance(SETTLE).await;
        assert_eq!(health.judge(Found::Healthy), Probe::Healthy);
        tokio::time::advance(MEMORY).await;
        health.judge(down());
        health.judge(down());
        assert_eq!(health.judge(Found::Healthy), Probe::Healthy);
    }
}
