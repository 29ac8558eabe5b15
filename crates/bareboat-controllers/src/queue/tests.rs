//! The work queue: each item at most once at a time, with delays and retries.

#![allow(clippy::unwrap_used)]

use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};

#[tokio::test]
async fn a_key_that_is_added_several_times_is_returned_once() {
    let queue = Queue::new();
    for key in [1, 1, 2, 1] {
        queue.add(key);
    }
    assert_eq!((queue.next().await, queue.next().await), (1, 2));
    let none = tokio::time::timeout(Duration::from_millis(20), queue.next()).await;
    assert!(none.is_err());
}

#[tokio::test]
async fn a_key_that_is_added_during_its_work_is_returned_again() {
    let queue = Queue::new();
    queue.add("a");
    let key = queue.next().await;
    queue.add("a");
    let none = tokio::time::timeout(Duration::from_millis(20), queue.next()).await;
    assert!(none.is_err(), "one task at a time");
    queue.done(key, Verdict::Done);
    assert_eq!(queue.next().await, "a");
}

#[tokio::test]
async fn scheduled_keys_are_returned_in_the_order_of_time() {
    let queue = Queue::new();
    let now = Instant::now();
    queue.add_at("late", now + Duration::from_millis(30));
    queue.add_at("early", now + Duration::from_millis(10));
    assert_eq!((queue.next().await, queue.next().await), ("early", "late"));
    assert!(now.elapsed() >= Duration::from_millis(30));
}

#[tokio::test]
async fn work_that_fails_or_panics_is_tried_again() {
    let queue = Queue::new();
    queue.add(());
    let tries = Arc::new(AtomicUsize::new(0));
    let seen = tries.clone();
    let worker = tokio::spawn(work(queue, 2, TaskTracker::new(), move |()| {
        let seen = seen.clone();
        async move {
            match seen.fetch_add(1, Ordering::SeqCst) {
                0 => Verdict::Retry,
                1 => panic!("work that panics"),
                _ => Verdict::Done,
            }
        }
    }));
    let begun = Instant::now();
    while tries.load(Ordering::SeqCst) < 3 && begun.elapsed() < Duration::from_secs(300) {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(tries.load(Ordering::SeqCst), 3);
    worker.abort();
}

#[tokio::test]
async fn work_is_measured_while_it_runs_and_when_it_ends() {
    use bareboat_server::prometheus::core::Collector;
    use bareboat_server::prometheus::proto::Metric;
    let metrics = QueueMetrics::new().unwrap();
    // From one moment: the work that has ended, and seconds of the work that has not, in sum and at most.
    let read = || {
        let families = metrics.collect();
        let find = |name: &str| -> Metric {
            let family = families.iter().find(|family| family.name() == name);
            family.unwrap().get_metric()[0].clone()
        };
        (
            find("workqueue_work_duration_seconds")
                .get_histogram()
                .get_sample_count(),
            find("workqueue_unfinished_work_seconds")
                .get_gauge()
                .get_value(),
            find("workqueue_longest_running_processor_seconds")
                .get_gauge()
                .get_value(),
        )
    };
    let queue = Queue::new();
    queue.measure(metrics.meter("measured"));
    queue.add(1);
    queue.add(2);
    let (first, second) = (queue.next().await, queue.next().await);
    tokio::time::sleep(Duration::from_millis(5)).await;
    let (ended, all, most) = read();
    assert_eq!(ended, 0);
    assert!(most >= 0.005 && all > most, "{all} {most}");
    queue.done(first, Verdict::Done);
    let (ended, all, most) = read();
    assert_eq!(ended, 1);
    assert!(most > 0.0 && all == most, "{all} {most}");
    queue.done(second, Verdict::Retry);
    assert_eq!(read(), (2, 0.0, 0.0));
}

#[test]
fn the_wait_grows_with_each_failure() {
    let waits: Vec<Duration> = (1..=40).map(wait_after).collect();
    assert_eq!(waits[0], Duration::from_millis(5));
    assert_eq!(waits[1], Duration::from_millis(10));
    assert!(waits.is_sorted());
    assert_eq!(waits[39], LONGEST_WAIT);
    // Failing for a quarter of an hour takes about twenty tries, not hundreds.
    let mut passed = Duration::ZERO;
    let within = waits.iter().take_while(|wait| {
        passed += **wait;
        passed < Duration::from_secs(15 * 60)
    });
    assert!(within.count() < 25);
}

#[tokio::test]
async fn a_key_that_fails_often_is_scheduled_once() {
    let queue = Queue::new();
    for _ in 0..50 {
        queue.add("a");
        let key = queue.next().await;
        queue.done(key, Verdict::Retry);
    }
    // Only the earliest retry is scheduled.
    let inner = queue.inner.lock();
    assert_eq!((inner.scheduled.len(), inner.later.len()), (1, 1));
}

#[tokio::test]
async fn the_earliest_time_of_a_key_counts() {
    let queue = Queue::new();
    let now = Instant::now();
    for wait in [3600, 0, 60] {
        queue.add_at("a", now + Duration::from_secs(wait));
    }
    assert_eq!(queue.next().await, "a");
    assert!(queue.inner.lock().scheduled.is_empty());
}
