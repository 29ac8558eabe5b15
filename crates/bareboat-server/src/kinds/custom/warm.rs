//! Values that are compiled when first needed, and dropped when unused for a while.
//!
//! Compiled schemas, rules and conversions are much larger than their source, and most definitions of a large
//! installation are idle most of the time. One timer runs while anything is compiled; it stops when everything has been
//! dropped.

use arc_swap::ArcSwapOption;
use bareboat_api::interrupt;
use bareboat_schema::SchemaCache;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// How long an unused value is kept.
const IDLE: Duration = Duration::from_secs(5 * 60);
/// The list of values is not pruned for fewer dead entries than this.
const SLACK: usize = 64;

/// Tracks the compiled values of all custom kinds, and drops those that are not used.
pub(super) struct Warm {
    /// Shares equal parts of compiled schemas.
    schemas: SchemaCache,
    clock: Box<dyn Fn() -> Duration + Send + Sync>,
    /// How long an unused value is kept.
    idle: Duration,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    things: Vec<Weak<dyn Cools>>,
    /// How many entries were alive when the list was last pruned.
    alive: usize,
    /// Whether a timer is running.
    watched: bool,
}

/// A value that can be dropped and made again.
trait Cools: Send + Sync {
    /// Returns when it was last found to be used; `now` if it was used since it was last asked.
    fn used(&self, now: Duration) -> Duration;
    /// Takes the value out, so that the next use makes it again.
    fn cool(&self) -> Option<Arc<dyn Send + Sync>>;
}

impl Warm {
    /// Uses the system's clock.
    pub(super) fn new() -> Arc<Warm> {
        let start = Instant::now();
        Warm::with_clock(IDLE, move || start.elapsed())
    }

    /// Uses a clock that returns the time since it was started.
    fn with_clock(
        idle: Duration,
        clock: impl Fn() -> Duration + Send + Sync + 'static,
    ) -> Arc<Warm> {
        Arc::new(Warm {
            schemas: SchemaCache::new(),
            clock: Box::new(clock),
            idle,
            held: Mutex::default(),
        })
    }

    /// Returns the cache that shares parts of compiled schemas.
    pub(super) fn schemas(&self) -> &SchemaCache {
        &self.schemas
    }

    fn note(self: &Arc<Self>, thing: Weak<dyn Cools>) {
        let mut held = self.held.lock();
        held.things.push(thing);
        if held.things.len() > 2 * held.alive + SLACK {
            held.forget_dead();
        }
        if held.watched {
            return;
        }
        // Without a runtime, as in unit tests, the test calls `sweep`.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            held.watched = true;
            runtime.spawn(look_after(Arc::downgrade(self), self.idle));
        }
    }

    /// Drops values that were not used for a while; returns whether any are left.
    fn sweep(&self) -> bool {
        let now = (self.clock)();
        let mut cold = Vec::new();
        let left = {
            let mut held = self.held.lock();
            held.things.retain(|thing| {
                let Some(thing) = thing.upgrade() else {
                    return false;
                };
                if now.saturating_sub(thing.used(now)) < self.idle {
                    return true;
                }
                cold.extend(thing.cool());
                false
            });
            held.alive = held.things.len();
            held.watched &= held.alive > 0;
            held.alive > 0
        };
        if !cold.is_empty() {
            // Outside the lock: dropping a large schema takes a while.
            drop(cold);
            self.schemas.forget_unused();
        }
        bareboat_schema::forget_idle_patterns();
        left
    }
}

impl Held {
    fn forget_dead(&mut self) {
        self.things.retain(|thing| thing.strong_count() > 0);
        self.alive = self.things.len();
    }
}

async fn look_after(warm: Weak<Warm>, pause: Duration) {
    loop {
        tokio::time::sleep(pause).await;
        let Some(warm) = warm.upgrade() else { return };
        if !warm.sweep() {
            return;
        }
    }
}

/// A value that is made when needed and dropped when unused.
pub(super) struct Lazy<T> {
    value: ArcSwapOption<T>,
    /// Whether it was used since the last sweep. Every write sets it several times, so no clock is read.
    touched: AtomicBool,
    /// When a sweep last found it used, in milliseconds on the clock.
    used: AtomicU64,
    warm: Arc<Warm>,
}

impl<T: Send + Sync + 'static> Lazy<T> {
    pub(super) fn new(warm: &Arc<Warm>) -> Arc<Lazy<T>> {
        Arc::new(Lazy {
            value: ArcSwapOption::empty(),
            touched: AtomicBool::new(false),
            used: AtomicU64::new(0),
            warm: warm.clone(),
        })
    }

    /// Returns the value, if it exists.
    pub(super) fn peek(&self) -> Option<Arc<T>> {
        self.value.load_full()
    }

    /// Returns the value; makes it if it does not exist.
    pub(super) fn get(self: &Arc<Self>, make: impl FnOnce() -> T) -> Arc<T> {
        self.touched.store(true, Ordering::Relaxed);
        if let Some(value) = self.value.load_full() {
            return value;
        }
        // Two concurrent callers both make it; they still share parts of schemas.
        let made = Arc::new(interrupt::shielded(make));
        self.value.store(Some(made.clone()));
        let thing: Weak<Self> = Arc::downgrade(self);
        self.warm.note(thing);
        made
    }
}

impl<T: Send + Sync + 'static> Cools for Lazy<T> {
    fn used(&self, now: Duration) -> Duration {
        if self.touched.swap(false, Ordering::Relaxed) {
            let now = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
            self.used.store(now, Ordering::Relaxed);
        }
        Duration::from_millis(self.used.load(Ordering::Relaxed))
    }

    fn cool(&self) -> Option<Arc<dyn Send + Sync>> {
        let value = self.value.swap(None)?;
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    fn with_hand() -> (Arc<Warm>, Arc<AtomicU64>) {
        let hand = Arc::new(AtomicU64::new(0));
        let seen = hand.clone();
        let clock = move || Duration::from_secs(seen.load(Ordering::Relaxed));
        (Warm::with_clock(IDLE, clock), hand)
    }

    #[test]
    fn idle_values_are_dropped_and_made_again_and_used_values_stay() {
        let (warm, hand) = with_hand();
        let made = Cell::new(0);
        let (busy, resting) = (Lazy::<String>::new(&warm), Lazy::<String>::new(&warm));
        let get = |lazy: &Arc<Lazy<String>>| {
            lazy.get(|| {
                made.set(made.get() + 1);
                "text".to_owned()
            })
        };
        let in_use = get(&resting);
        let gone = Arc::downgrade(&in_use);
        get(&busy);
        // The first sweep finds both used.
        for minute in 1..=5 {
            hand.store(minute * 60, Ordering::Relaxed);
            get(&busy);
            assert!(warm.sweep());
        }
        assert_eq!(made.get(), 2, "both are still there");
        hand.store(6 * 60, Ordering::Relaxed);
        assert!(warm.sweep(), "one is left");
        assert_eq!(*in_use, "text", "a holder keeps its value");
        drop(in_use);
        assert!(gone.upgrade().is_none());
        get(&busy);
        assert_eq!(made.get(), 2);
        get(&resting);
        assert_eq!(made.get(), 3);
        hand.store(60 * 60, Ordering::Relaxed);
        assert!(warm.sweep(), "both were used since the last time");
        hand.store(70 * 60, Ordering::Relaxed);
        assert!(!warm.sweep(), "nothing is left");
        assert!(warm.held.lock().things.is_empty());
    }

    #[test]
    fn shared_schema_parts_are_dropped_with_their_last_user() {
        use bareboat_api::value;
        let (warm, hand) = with_hand();
        let schema =
            value!({"type": "object", "properties": {"a": {"type": "string", "pattern": "^a$"}}});
        let first = Lazy::new(&warm);
        let compile = || warm.schemas().parse(&schema).expect("it is shallow");
        first.get(compile);
        let second = Lazy::new(&warm);
        second.get(compile);
        let parts = warm.schemas().len();
        assert!(parts > 0);
        hand.store(60, Ordering::Relaxed);
        warm.sweep();
        hand.store(4 * 60, Ordering::Relaxed);
        second.get(compile);
        hand.store(6 * 60, Ordering::Relaxed);
        warm.sweep();
        assert_eq!(warm.schemas().len(), parts, "the second has them still");
        hand.store(11 * 60, Ordering::Relaxed);
        warm.sweep();
        assert_eq!(warm.schemas().len(), 0);
    }

    #[test]
    fn the_number_of_entries_is_bounded_by_the_live_values() {
        let (warm, _) = with_hand();
        let kept: Vec<_> = (0..10).map(|_| Lazy::<u8>::new(&warm)).collect();
        kept.iter().for_each(|lazy| drop(lazy.get(|| 1)));
        for _ in 0..10_000 {
            Lazy::<u8>::new(&warm).get(|| 1);
        }
        let noted = warm.held.lock().things.len();
        assert!(noted <= 2 * 10 + SLACK + 1, "{noted}");
        assert!(warm.sweep());
        assert_eq!(warm.held.lock().things.len(), 10);
    }

    #[tokio::test]
    async fn the_timer_drops_idle_values_and_then_ends() {
        let hand = Arc::new(AtomicU64::new(0));
        let seen = hand.clone();
        let clock = move || Duration::from_secs(seen.load(Ordering::Relaxed));
        let warm = Warm::with_clock(Duration::from_millis(1), clock);
        let lazy = Lazy::<u8>::new(&warm);
        for _ in 0..2 {
            lazy.get(|| 1);
            assert!(warm.held.lock().watched);
            while warm.held.lock().watched {
                hand.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            assert!(lazy.value.load().is_none());
        }
    }
}
