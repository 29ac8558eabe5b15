//! News of other stores that an engine tells once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bareboat_storage::{Attention, Backend, BackendError, Mark, MemoryBackend, Tail, Write};

use super::{object, open, wait_for};

/// A connection that never ends a wait without news, and does not tell the same news again.
struct Told {
    log: MemoryBackend,
    told: AtomicU64,
    /// How many of the following reads fail.
    failures: AtomicU64,
    released: AtomicBool,
}

impl Backend for Told {
    bareboat_storage::delegate_backend!(log: append append_held load read_since read_at compact compacted mark);

    fn is_shared(&self) -> bool {
        true
    }

    fn tail(&self, after: &Mark) -> Result<Tail, BackendError> {
        let one_less = |left: u64| left.checked_sub(1);
        let order = Ordering::SeqCst;
        match self.failures.fetch_update(order, order, one_less) {
            Ok(_) => Err(BackendError::Unreachable("nobody answers".into())),
            Err(_) => self.log.tail(after),
        }
    }

    fn wait(&self, after: u64, until: Instant) -> bool {
        while !self.released.load(Ordering::SeqCst) {
            let last = self.log.mark().map_or(0, |mark| mark.last);
            if last > after && self.told.swap(last, Ordering::SeqCst) != last {
                // A busy machine may take that long.
                std::thread::sleep(until.saturating_duration_since(Instant::now()));
                return true;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        true
    }

    fn attend(&self, _: Attention) {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn news_are_read_again_after_a_read_that_failed() {
    let log = MemoryBackend::new().shared();
    let there = open(Arc::new(log.clone()));
    let told = Arc::new(Told {
        log,
        told: AtomicU64::new(0),
        failures: AtomicU64::new(0),
        released: AtomicBool::new(false),
    });
    let here = open(told.clone());
    told.failures.store(2, Ordering::SeqCst);
    let resource = there.resource("core/configmaps");
    let write = Write::create(&resource, "a", object(1));
    let written = there.commit(write).await.unwrap();
    wait_for(|| here.visible() == written.revision).await;
    assert_eq!(told.failures.load(Ordering::SeqCst), 0);
    told.released.store(true, Ordering::SeqCst);
    here.close().await;
}
