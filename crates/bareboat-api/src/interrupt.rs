//! Whether the work of this thread is still wanted.
//!
//! A request may end while its work is being done: its deadline passes, or its client hangs up. Long loops ask
//! [`requested`] now and then and stop early. What they return then does not matter, because the caller of
//! [`Interrupt::watch`] throws it away. There is no clock here: the flag is set from outside.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

thread_local! {
    static CURRENT: RefCell<Option<Interrupt>> = const { RefCell::new(None) };
}

/// A flag that tells work to stop; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Tells the work to stop.
    pub fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the work must stop.
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Runs work that may look at this flag. The caller must not use the result once the flag is set.
    pub fn watch<T>(&self, work: impl FnOnce() -> T) -> T {
        within(Some(self.clone()), work)
    }
}

/// Whether the current work must stop. Cheap enough for a loop whose steps take tens of nanoseconds.
pub fn requested() -> bool {
    CURRENT.with_borrow(|current| current.as_ref().is_some_and(Interrupt::is_requested))
}

/// Runs work that must not stop early, because others will use its result: whatever is kept in a cache.
pub fn shielded<T>(work: impl FnOnce() -> T) -> T {
    within(None, work)
}

fn within<T>(interrupt: Option<Interrupt>, work: impl FnOnce() -> T) -> T {
    /// Puts back what was there before, also when the work panics.
    struct Restore(Option<Interrupt>);

    impl Drop for Restore {
        fn drop(&mut self) {
            CURRENT.set(self.0.take());
        }
    }

    let _restore = Restore(CURRENT.replace(interrupt));
    work()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_sees_the_flag_of_whoever_runs_it() {
        let interrupt = Interrupt::default();
        interrupt.watch(|| {
            assert!(!requested());
            interrupt.clone().request();
            assert!(requested());
        });
        assert!(!requested(), "nothing is being run any more");
    }

    #[test]
    fn shielded_work_is_not_interrupted() {
        let interrupt = Interrupt::default();
        interrupt.request();
        interrupt.watch(|| {
            assert!(!shielded(requested));
            assert!(requested());
            Interrupt::default().watch(|| assert!(!requested(), "the nearest flag counts"));
        });
    }

    #[test]
    fn a_panic_leaves_no_flag_behind() {
        let interrupt = Interrupt::default();
        interrupt.request();
        let outcome = std::panic::catch_unwind(|| interrupt.watch(|| panic!("on purpose")));
        assert!(outcome.is_err());
        assert!(!requested());
    }
}
