//! Tests of reads of the log on separate threads.

use super::*;
use std::sync::mpsc;

/// Returns a read that runs until it is stopped, and reports its start and end.
fn endless(
    began: &mpsc::SyncSender<()>,
    ended: &mpsc::SyncSender<()>,
) -> impl FnOnce(&Stop) + Send + Sync + use<> {
    let (began, ended) = (began.clone(), ended.clone());
    move |stop: &Stop| {
        began.send(()).expect("the test waits");
        while !stop.requested() {
            std::thread::sleep(Duration::from_millis(1));
        }
        ended.send(()).expect("the test waits");
    }
}

#[tokio::test]
async fn a_dropped_caller_stops_its_read_and_frees_its_place() {
    let reads = Arc::new(ColdReads::new());
    let ((began_to, began), (ended_to, ended)) =
        (mpsc::sync_channel(1024), mpsc::sync_channel(1024));
    let wait = Duration::from_secs(30);
    let mut callers = Vec::new();
    for _ in 0..3 * PLACES {
        let (reads, read) = (reads.clone(), endless(&began_to, &ended_to));
        callers.push(tokio::spawn(async move { reads.run(read).await }));
    }
    while reads.places.available_permits() > 0 {
        tokio::task::yield_now().await;
    }
    let began = tokio::task::spawn_blocking(move || {
        for _ in 0..READERS {
            began.recv_timeout(wait).expect("a read began");
        }
        began
    });
    let began = began.await.expect("the reads began");
    assert!(
        reads.desk.state.lock().jobs.len() <= PLACES,
        "the queue is bounded"
    );
    for caller in &callers {
        caller.abort();
    }
    for caller in callers {
        assert!(caller.await.is_err());
    }
    let counted = tokio::task::spawn_blocking(move || {
        // Only running reads must be stopped; the others never start.
        for _ in 0..READERS {
            ended.recv_timeout(wait).expect("a read was stopped");
        }
        began.try_recv().is_err()
    });
    assert!(counted.await.expect("the count"));
    let answer = reads.run(|_| 7).await;
    assert_eq!(answer.expect("a place is free again"), 7);
}

#[tokio::test]
async fn a_read_that_panics_fails_only_its_caller() {
    let reads = ColdReads::new();
    let failed = reads.run(|_| -> u8 { panic!("as asked") }).await;
    assert!(failed.is_err());
    assert_eq!(reads.run(|_| 1).await.expect("the thread lives"), 1);
}
