//! Tests of engines with small batches: the store makes no larger batches, and splits no transaction.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bareboat_storage::*;
use parking_lot::Mutex;

const LIMITS: Limits = Limits {
    records: 5,
    bytes: 2000,
    value_bytes: 2500,
};

/// A log that records the number of records and bytes of every batch.
struct Small {
    log: MemoryBackend,
    batches: Mutex<Vec<(usize, usize)>>,
    /// Whether appends wait.
    held: AtomicBool,
    /// Whether an append waits at the moment.
    waits: AtomicBool,
}

impl Backend for Small {
    bareboat_storage::delegate_backend!(log: load read_since read_at compact compacted mark);

    fn limits(&self) -> Limits {
        LIMITS
    }

    fn append(&self, base: &Mark, batch: &Batch) -> Result<Appended, BackendError> {
        while self.held.load(Ordering::SeqCst) {
            self.waits.store(true, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(1));
        }
        let len = |record: &Record| {
            let value = record.value.as_ref().map_or(0, Value::len);
            value + record.resource.len() + record.key.len()
        };
        let bytes = batch.records.iter().map(len).sum();
        self.batches.lock().push((batch.records.len(), bytes));
        self.log.append(base, batch)
    }
}

fn object(len: usize) -> bytes::Bytes {
    let head = r#"{"apiVersion":"v1","kind":"X","metadata":{"name":"x"},"n":""#;
    format!("{head}{}\"}}", "n".repeat(len - head.len() - 2)).into()
}

fn small() -> (Arc<Small>, Store) {
    let log = Arc::new(Small {
        log: MemoryBackend::new(),
        batches: Mutex::default(),
        held: AtomicBool::new(false),
        waits: AtomicBool::new(false),
    });
    let store = Store::open(log.clone(), StoreOptions::default()).unwrap();
    (log, store)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_stay_within_the_limits() {
    let (log, store) = small();
    let resource = store.resource("core/configmaps");
    log.held.store(true, Ordering::SeqCst);
    let first = {
        let write = Write::create(&resource, "first", object(100));
        let store = store.clone();
        tokio::spawn(async move { drop(store.commit(write).await.unwrap()) })
    };
    while !log.waits.load(Ordering::SeqCst) {
        tokio::task::yield_now().await;
    }
    let mut tasks = vec![first];
    for n in 0..60 {
        let (store, resource) = (store.clone(), resource.clone());
        tasks.push(tokio::spawn(async move {
            // Single writes, pairs, and single values larger than a batch.
            let len = if n % 9 == 0 { 2400 } else { 200 };
            let write = |part| Write::create(&resource, format!("{n}-{part}"), object(len));
            match n % 3 == 1 {
                true => drop(store.commit_many(vec![write(0), write(1)]).await.unwrap()),
                false => drop(store.commit(write(0)).await.unwrap()),
            }
        }));
    }
    // One batch waits, and all others are queued after it.
    while store.stats().queued < 60 {
        tokio::task::yield_now().await;
    }
    log.held.store(false, Ordering::SeqCst);
    for task in tasks {
        task.await.unwrap();
    }
    let batches = log.batches.lock().clone();
    assert!(batches.iter().any(|(records, _)| *records > 2));
    for (records, bytes) in batches {
        assert!(records <= LIMITS.records, "{records} records");
        assert!(records == 1 || bytes <= LIMITS.bytes, "{bytes} bytes");
    }
    store.close().await;
}

#[tokio::test]
async fn what_fits_into_no_batch_is_refused() {
    let (log, store) = small();
    assert_eq!(store.max_value_bytes(), LIMITS.value_bytes);
    let resource = store.resource("core/configmaps");
    let write = |n, len| Write::create(&resource, format!("{n}"), object(len));
    let long = store.commit(write(1, 2501)).await.unwrap_err();
    assert!(matches!(
        long,
        CommitError::TooLarge {
            len: 2501,
            max: 2500
        }
    ));
    let many = store.commit_many((0..6).map(|n| write(n, 100)).collect());
    let many = many.await.unwrap_err().error;
    assert!(matches!(many, CommitError::TooMany { writes: 6, max: 5 }));
    let large = store.commit_many(vec![write(1, 1000), write(2, 1000)]);
    let large = large.await.unwrap_err().error;
    assert!(matches!(large, CommitError::TooLarge { max: 2000, .. }));
    assert!(log.batches.lock().is_empty() && resource.is_empty());
    store.commit(write(1, 2500)).await.unwrap();
    let whole = store.commit_many((2..7).map(|n| write(n, 100)).collect());
    assert_eq!(whole.await.unwrap().len(), 5);
    store.close().await;
}
