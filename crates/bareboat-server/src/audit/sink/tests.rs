//! Limits of buffers, and which requests wait in each mode.

#![allow(clippy::unwrap_used)]

use super::super::file::tests::event;
use super::*;
use futures_util::FutureExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Semaphore;

/// Writes an event per permit, or fails.
struct Gate {
    open: Arc<Semaphore>,
    fails: Arc<AtomicBool>,
    written: Arc<Mutex<Vec<usize>>>,
}

impl Writer for Gate {
    fn write(&self, events: Vec<Arc<Event>>) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move {
            self.open.acquire().await.unwrap().forget();
            if self.fails.load(Ordering::Relaxed) {
                return Err("on purpose".to_owned());
            }
            self.written.lock().push(events.len());
            Ok(())
        })
    }
}

struct Setup {
    sink: Sink,
    open: Arc<Semaphore>,
    fails: Arc<AtomicBool>,
    written: Arc<Mutex<Vec<usize>>>,
    metrics: AuditMetrics,
}

fn setup(mode: Mode, batching: Batching) -> Setup {
    let (open, fails) = (
        Arc::new(Semaphore::new(0)),
        Arc::new(AtomicBool::new(false)),
    );
    let written = Arc::new(Mutex::new(Vec::new()));
    let gate = Gate {
        open: open.clone(),
        fails: fails.clone(),
        written: written.clone(),
    };
    let metrics = AuditMetrics::new();
    Setup {
        sink: Sink::new("log", mode, batching, gate, metrics.clone()),
        open,
        fails,
        written,
        metrics,
    }
}

impl Setup {
    fn dropped(&self) -> u64 {
        let families: Vec<_> = self
            .metrics
            .collectors()
            .iter()
            .flat_map(|it| it.collect())
            .collect();
        let errors = families
            .iter()
            .find(|it| it.name() == "apiserver_audit_error_total");
        let metrics = errors.map(|it| it.get_metric()).unwrap_or_default();
        metrics
            .iter()
            .map(|it| it.get_counter().get_value() as u64)
            .sum()
    }
}

#[tokio::test]
async fn what_does_not_fit_in_the_buffer_is_dropped_and_counted() {
    let batching = Batching {
        buffer: 10,
        size: 4,
        wait: Duration::ZERO,
    };
    let setup = setup(Mode::Batch, batching);
    for at in 0..25 {
        setup.sink.take(event(&at.to_string())).await.unwrap();
    }
    assert_eq!(setup.dropped(), 15);
    setup.open.add_permits(100);
    setup.sink.flush().await;
    let written = setup.written.lock().clone();
    assert_eq!(written.iter().sum::<usize>(), 10);
    assert!(written.iter().all(|size| *size <= 4), "{written:?}");
}

#[tokio::test]
async fn a_batch_waits_to_become_full_but_not_for_a_flush() {
    let batching = Batching {
        buffer: 10,
        size: 4,
        wait: Duration::from_secs(3600),
    };
    let setup = setup(Mode::Batch, batching);
    setup.open.add_permits(100);
    for at in 0..5 {
        setup.sink.take(event(&at.to_string())).await.unwrap();
    }
    setup.sink.flush().await;
    assert_eq!(*setup.written.lock(), [4, 1]);
}

#[tokio::test]
async fn a_blocking_sink_keeps_the_request_waiting() {
    let setup = setup(Mode::Blocking, Batching::default());
    let taking = setup.sink.take(event("a"));
    let mut taking = std::pin::pin!(taking);
    assert!((&mut taking).now_or_never().is_none());
    setup.open.add_permits(1);
    taking.await.unwrap();
    assert_eq!(*setup.written.lock(), [1]);
}

#[tokio::test]
async fn only_a_strict_sink_fails_the_request() {
    for (mode, outcome) in [
        (Mode::Batch, Ok(())),
        (Mode::Blocking, Ok(())),
        (Mode::BlockingStrict, Err(Unwritten)),
    ] {
        let setup = setup(mode, Batching::default());
        setup.fails.store(true, Ordering::Relaxed);
        setup.open.add_permits(1);
        assert_eq!(setup.sink.take(event("a")).await, outcome, "{mode:?}");
        setup.sink.flush().await;
        assert_eq!(setup.dropped(), 1, "{mode:?}");
    }
}
