//! Waits after failures, and how often a type may be listed.

use std::time::Duration;
use tokio::time::Instant;

/// A wait that doubles with each failure in a row.
pub(super) struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Backoff {
    pub(super) fn new(first: Duration, longest: Duration) -> Backoff {
        Backoff {
            first,
            longest,
            next: first,
        }
    }

    pub(super) fn reset(&mut self) {
        self.next = self.first;
    }

    pub(super) async fn wait(&mut self) {
        tokio::time::sleep(self.next).await;
        self.next = self.next.saturating_mul(2).min(self.longest);
    }
}

/// How many lists are possible at once, if none was needed for a while.
const MOST: u32 = 4;

/// Lists cost the member much. A few in a row are possible; after them, one in each interval.
pub(super) struct Allowance {
    left: u32,
    interval: Duration,
    since: Instant,
}

impl Allowance {
    pub(super) fn new(interval: Duration) -> Allowance {
        Allowance {
            left: MOST,
            interval,
            since: Instant::now(),
        }
    }

    /// Takes a list back that the member refused.
    pub(super) fn give_back(&mut self) {
        self.left = self.left.saturating_add(1).min(MOST);
    }

    /// Waits until one more list is possible.
    pub(super) async fn take(&mut self) {
        loop {
            let passed = self.since.elapsed();
            let interval = self.interval.max(Duration::from_millis(1));
            let gained = passed.as_nanos() / interval.as_nanos();
            if gained > 0 {
                self.left = self
                    .left
                    .saturating_add(u32::try_from(gained).unwrap_or(MOST))
                    .min(MOST);
                self.since = Instant::now();
            }
            if self.left > 0 {
                self.left -= 1;
                return;
            }
            tokio::time::sleep(interval.saturating_sub(passed)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn lists_are_rationed() {
        let interval = Duration::from_secs(300);
        let mut allowance = Allowance::new(interval);
        let began = Instant::now();
        for _ in 0..MOST {
            allowance.take().await;
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
        allowance.take().await;
        assert!(began.elapsed() >= interval);
        // What was refused does not count.
        let began = Instant::now();
        for _ in 0..10 * MOST {
            allowance.give_back();
            allowance.take().await;
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn waits_double_up_to_the_longest() {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(3));
        let mut waits = Vec::new();
        for _ in 0..4 {
            let began = Instant::now();
            backoff.wait().await;
            waits.push(began.elapsed().as_secs());
        }
        assert_eq!(waits, [1, 2, 3, 3]);
    }
}
