//! The bell: it rings once for each call and wakes the task that asked last.

use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Default)]
struct Task(AtomicUsize);

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn task() -> (Arc<Task>, Waker) {
    let task = Arc::new(Task::default());
    (task.clone(), Waker::from(task))
}

#[test]
fn a_bell_rings_at_first_and_then_once_for_each_call() {
    let (task, waker) = task();
    let cx = Context::from_waker(&waker);
    let bell = Bell::new();
    let behind = bell.rung(&cx).expect("the bell starts rung");
    assert!(bell.rung(&cx).is_none());
    behind.wake_by_ref();
    behind.wake_by_ref();
    assert_eq!(task.0.load(Ordering::Relaxed), 2);
    assert!(bell.rung(&cx).is_some());
    assert!(bell.rung(&cx).is_none());
}

#[test]
fn the_task_that_polled_last_is_woken() {
    let ((first, before), (second, after)) = (task(), task());
    let bell = Bell::new();
    let behind = bell.rung(&Context::from_waker(&before)).expect("at first");
    assert!(bell.rung(&Context::from_waker(&after)).is_none());
    behind.wake();
    assert_eq!(first.0.load(Ordering::Relaxed), 0);
    assert_eq!(second.0.load(Ordering::Relaxed), 1);
}
