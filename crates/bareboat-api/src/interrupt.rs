//! Cancellation of long computations on the current thread.
//!
//! A request may end while its work is running: its deadline passes, or its client disconnects.
//! Long loops check [`requested`] now and then and stop early. Their result does not matter then,
//! because the caller of [`Interrupt::watch`] discards it. There is no clock here: the flag is set
//! from outside.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

thread_local! {
    static CURRENT: RefCell<Option<Interrupt>> = const { RefCell::new(None) };
}

/// A flag that stops work; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Requests the work to stop.
    pub fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns whether the work must stop.
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Runs work that checks this flag. The caller must not use the result once the flag is set.
    pub fn watch<T>(&self, work: impl FnOnce() -> T) -> T {
        within(Some(self.clone()), work)
    }
}

/// Returns whether the current work must stop. Cheap enough for a loop whose steps take tens of
/// nanoseconds.
pub fn requested() -> bool {
    CURRENT.with_borrow(|current| current.as_ref().is_some_and(Interrupt::is_requested))
}

/// Runs work that must not stop early because its result is shared, such as the value of a cache
/// entry.
pub fn shielded<T>(work: impl FnOnce() -> T) -> T {
    within(None, work)
}

fn within<T>(interrupt: Option<Interrupt>, work: impl FnOnce() -> T) -> T {
    /// Restores the previous flag, also when the work panics.
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
    fn work_sees_the_flag_it_runs_under() {
        let interrupt = Interrupt::default();
        interrupt.watch(|| {
            assert!(!requested());
            interrupt.clone().request();
            assert!(requested());
        });
        assert!(!requested(), "the flag is gone after the work");
    }

    #[test]
    fn shielded_work_is_not_interrupted() {
        let interrupt = Interrupt::default();
        interrupt.request();
        interrupt.watch(|| {
            assert!(!shielded(requested));
            assert!(requested());
            Interrupt::default().watch(|| assert!(!requested(), "the innermost flag counts"));
        });
    }

    #[test]
    fn a_panic_restores_the_previous_flag() {
        let interrupt = Interrupt::default();
        interrupt.request();
        let outcome = std::panic::catch_unwind(|| interrupt.watch(|| panic!("on purpose")));
        assert!(outcome.is_err());
        assert!(!requested());
    }
}
