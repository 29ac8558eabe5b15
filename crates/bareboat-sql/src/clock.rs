//! Compares the clock of a database with the clock of this machine.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::SystemTime;

use crate::error::SqlError;

/// By how much the clock of the database was ahead of this machine's when it was last read.
pub(crate) struct Clock(AtomicI64);

const UNKNOWN: i64 = i64::MIN;

impl Default for Clock {
    fn default() -> Self {
        Self(AtomicI64::new(UNKNOWN))
    }
}

impl Clock {
    /// Returns by how many milliseconds the clock of the database is ahead; `None` if that clock was never read.
    pub(crate) fn ahead(&self) -> Option<i64> {
        let ahead = self.0.load(Ordering::Relaxed);
        (ahead != UNKNOWN).then_some(ahead)
    }

    /// Stores the difference to `theirs`, the time of the database in seconds since 1970. Returns by how many seconds
    /// the database is ahead.
    pub(crate) fn note(&self, theirs: f64) -> f64 {
        let ours = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0.0, |since| since.as_secs_f64());
        let ahead = theirs - ours;
        self.0.store((ahead * 1000.0) as i64, Ordering::Relaxed);
        ahead
    }

    /// Stores the difference to `theirs`, and fails if it is too large.
    pub(crate) fn check(&self, theirs: f64) -> Result<(), SqlError> {
        let apart = self.note(theirs).abs();
        if apart > 30.0 {
            return Err(SqlError::Unsafe(format!(
                "the clocks of this machine and of the database differ by {apart:.0} s"
            )));
        }
        if apart > 2.0 {
            tracing::warn!(
                seconds = apart,
                "the clocks of this machine and of the database differ"
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_known_once_the_clock_was_read() {
        let clock = Clock::default();
        assert_eq!(clock.ahead(), None);
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = since.map_or(0.0, |since| since.as_secs_f64());
        clock.note(now + 3600.0);
        let ahead = clock.ahead().unwrap_or(0);
        assert!((3_000_000..=3_600_000).contains(&ahead), "{ahead}");
        assert!(clock.check(now - 3600.0).is_err());
        assert!(clock.ahead().unwrap_or(0) < -3_500_000);
    }
}
