//! Retry delays of failed Foos: they grow with each failure in a row, and a rate limit over all Foos protects the
//! server.

use crate::foo::Foo;
use kube::runtime::reflector::ObjectRef;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The delay after the first failure; it doubles with each further one.
const FIRST: Duration = Duration::from_millis(5);
/// The maximum delay.
const LONGEST: Duration = Duration::from_secs(1000);
/// Retries per second over all Foos, after the burst.
const RATE: f64 = 50.0;
/// Number of retries without a rate limit.
const BURST: f64 = 300.0;

/// Failures of each Foo, and the number of retries available now.
pub(crate) struct Limits {
    failures: HashMap<ObjectRef<Foo>, u32>,
    free: f64,
    counted: Instant,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            failures: HashMap::new(),
            free: BURST,
            counted: Instant::now(),
        }
    }
}

impl Limits {
    /// Records a failure and returns the delay.
    pub(crate) fn failed(&mut self, foo: ObjectRef<Foo>) -> Duration {
        let failures = self.failures.entry(foo).or_default();
        let wait = FIRST.saturating_mul(1 << (*failures).min(20)).min(LONGEST);
        *failures = failures.saturating_add(1);
        wait.max(self.turn(Instant::now()))
    }

    /// Records a success, which resets the delay.
    pub(crate) fn succeeded(&mut self, foo: &ObjectRef<Foo>) {
        self.failures.remove(foo);
    }

    /// Takes an available retry, or the next one after a delay.
    fn turn(&mut self, now: Instant) -> Duration {
        let gained = now.duration_since(self.counted).as_secs_f64() * RATE;
        self.free = (self.free + gained).min(BURST) - 1.0;
        self.counted = now;
        Duration::from_secs_f64((-self.free / RATE).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn foo(name: &str) -> ObjectRef<Foo> {
        ObjectRef::new(name).within("default")
    }

    #[test]
    fn delays_double_up_to_the_maximum_and_reset_after_a_success() {
        let mut limits = Limits::default();
        let waits: Vec<_> = (0..3)
            .map(|_| limits.failed(foo("a")).as_millis())
            .collect();
        assert_eq!(waits, [5, 10, 20]);
        assert_eq!(
            limits.failed(foo("b")),
            FIRST,
            "each Foo has waits of its own"
        );
        for _ in 0..100 {
            limits.failed(foo("a"));
        }
        assert_eq!(limits.failed(foo("a")), LONGEST);
        limits.succeeded(&foo("a"));
        assert_eq!(limits.failed(foo("a")), FIRST);
    }

    #[test]
    fn the_rate_of_all_foos_is_limited_after_the_burst() {
        let mut limits = Limits::default();
        let now = limits.counted;
        for _ in 0..300 {
            assert_eq!(limits.turn(now), Duration::ZERO);
        }
        assert_eq!(limits.turn(now), Duration::from_millis(20));
        assert_eq!(limits.turn(now), Duration::from_millis(40));
        assert_eq!(limits.turn(now + Duration::from_secs(1)), Duration::ZERO);
    }
}
