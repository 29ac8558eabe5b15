//! Large work leaves the worker, takes turns, and ends when its request is dropped.
#![allow(clippy::unwrap_used)]

use super::*;
use bareboat_api::interrupt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, ThreadId};
use tokio::sync::oneshot;

fn here() -> ThreadId {
    thread::current().id()
}

#[tokio::test]
async fn small_work_stays_where_it_is() {
    let work = async {
        maybe_large(LARGE).await;
        tokio::task::yield_now().await;
        turn().await;
        here()
    };
    assert_eq!(Threads::new().carry_out(None, work).await, here());
}

#[tokio::test]
async fn large_work_leaves_the_worker_and_comes_back_when_it_is_small() {
    let (answer, answered) = oneshot::channel();
    let (wait, waits) = oneshot::channel();
    let work = async move {
        let before = here();
        large().await;
        let during = here();
        assert!(seat().is_none());
        tokio::task::yield_now().await;
        assert_ne!(here(), before, "it stays there");
        small();
        let answered = poll_fn({
            let (mut wait, mut answered) = (Some(wait), answered);
            move |cx| {
                let polled = std::pin::Pin::new(&mut answered).poll(cx);
                if let Some(wait) = wait.take() {
                    wait.send(()).unwrap();
                }
                polled
            }
        });
        assert_eq!(answered.await, Ok(7));
        (before, during, here())
    };
    let carried = tokio::spawn(async move { Threads::new().carry_out(None, work).await });
    waits.await.unwrap();
    answer.send(7).unwrap();
    let (before, during, after) = carried.await.unwrap();
    assert_eq!(before, here());
    assert_ne!(during, here());
    assert_eq!(after, here());
}

#[tokio::test]
async fn a_long_loop_becomes_large_and_other_tasks_run_meanwhile() {
    let pulses = Arc::new(AtomicUsize::new(0));
    let seen = pulses.clone();
    let work = async move {
        let (mut pace, mut rounds) = (Pace::new(), 0);
        // Runs until other tasks were seen to run.
        while seen.load(Ordering::Relaxed) < 50 {
            thread::sleep(Duration::from_micros(100));
            if pace.spend(ROUND) {
                turn().await;
                rounds += 1;
            }
        }
        rounds
    };
    let busy = tokio::spawn(async move { Threads::new().carry_out(None, work).await });
    while !busy.is_finished() {
        pulses.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(busy.await.unwrap() > 0);
}

#[tokio::test]
async fn parts_polled_together_move_together() {
    use futures_util::stream::{self, StreamExt as _};
    let work = async {
        let parts = (0..10).map(|_| async {
            large().await;
            here()
        });
        let places: Vec<ThreadId> = stream::iter(parts).buffered(4).collect().await;
        places
    };
    let places = Threads::new().carry_out(None, work).await;
    assert!(places.iter().all(|polled_on| *polled_on != here()));
}

#[tokio::test]
async fn as_much_work_runs_at_once_as_there_are_threads_and_no_more() {
    let threads = Threads::limited_to(2);
    let pair = Arc::new(std::sync::Barrier::new(2));
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let all = (0..8).map(|_| {
        let (threads, running, most) = (threads.clone(), running.clone(), most.clone());
        let pair = pair.clone();
        tokio::spawn(async move {
            let work = async move {
                large().await;
                let now = running.fetch_add(1, Ordering::SeqCst) + 1;
                most.fetch_max(now, Ordering::SeqCst);
                // Goes on as soon as two of them run.
                pair.wait();
                running.fetch_sub(1, Ordering::SeqCst);
            };
            threads.carry_out(None, work).await;
        })
    });
    for one in all.collect::<Vec<_>>() {
        let ended = tokio::time::timeout(Duration::from_secs(60), one).await;
        ended.expect("two run at once").unwrap();
    }
    assert_eq!(most.load(Ordering::SeqCst), 2);
    assert_eq!(threads.places.available_permits(), 2);
}

/// Sends a message when it is dropped.
struct Held(Option<oneshot::Sender<()>>);

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.0.take().unwrap().send(());
    }
}

#[tokio::test]
async fn abandoned_work_is_interrupted_and_releases_what_it_holds() {
    let threads = Threads::new();
    let (free, freed) = oneshot::channel();
    let (begin, begun) = oneshot::channel();
    let committed = Arc::new(AtomicBool::new(false));
    let flag = committed.clone();
    let work = async move {
        let _held = Held(Some(free));
        large().await;
        begin.send(()).unwrap();
        while !interrupt::requested() {
            thread::yield_now();
        }
        wanted().await;
        flag.store(true, Ordering::Relaxed);
    };
    let places = threads.places.available_permits();
    let carried = tokio::spawn({
        let threads = threads.clone();
        async move { threads.carry_out(None, work).await }
    });
    begun.await.unwrap();
    carried.abort();
    freed.await.unwrap();
    assert!(!committed.load(Ordering::Relaxed));
    while threads.places.available_permits() < places {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_panic_on_another_thread_reaches_the_request() {
    let work = async {
        large().await;
        panic!("on purpose");
    };
    let carried = tokio::spawn(async move { Threads::new().carry_out(None, work).await });
    assert!(carried.await.unwrap_err().is_panic());
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn large_work_has_a_lower_priority_than_small_work() {
    use rustix::process::getpriority_process;
    let work = async {
        let before = getpriority_process(None).unwrap();
        large().await;
        (before, getpriority_process(None).unwrap())
    };
    let (small, large) = Threads::new().carry_out(None, work).await;
    assert!(large > small || small == 19, "{large} instead of {small}");
    assert_eq!(getpriority_process(None).unwrap(), small, "only its thread");
}
