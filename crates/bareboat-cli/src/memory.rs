//! Returns freed memory to the system when a peak is over.
//!
//! The allocator keeps free memory per thread, and each thread must return its own. So a release has a number, and
//! every worker of the runtime that has not seen it returns its memory before it goes to sleep.

use bareboat_allocator::release_freed_memory;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The time between two looks at the memory of the process.
const PERIOD: Duration = Duration::from_secs(5);
/// How long workers have to wake up and return their memory.
const WORKERS: Duration = Duration::from_millis(50);
/// Growth that does not matter, in KiB.
const SMALL: u64 = 8 << 10;
/// Releases after a peak: threads for large work end ten seconds after it, and leave memory behind.
const REPEATS: u32 = 3;

/// The number of the last release.
static RELEASE: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The last release that this thread has taken part in.
    static SEEN: Cell<u64> = const { Cell::new(0) };
}

/// Called by every worker of the runtime before it sleeps.
pub(crate) fn before_sleep() {
    let release = RELEASE.load(Ordering::Relaxed);
    if SEEN.replace(release) != release {
        release_freed_memory();
    }
}

/// Returns what this thread has freed. For threads that are no workers of the runtime.
pub(crate) fn release_of_this_thread() {
    release_freed_memory();
}

/// Runs until it is dropped. Memory that grew since the last release is released again: what is in use stays, and
/// the size that is left becomes the new base.
pub(crate) async fn release_after_peaks() {
    let (mut base, mut left) = (0, 0);
    loop {
        tokio::time::sleep(PERIOD).await;
        // A system that does not report the size: release every time.
        let now = resident_kib().unwrap_or(u64::MAX);
        if now > base + SMALL {
            left = REPEATS;
        }
        base = base.min(now);
        if left == 0 {
            continue;
        }
        left -= 1;
        wake_workers().await;
        // Unmapping much memory takes a while.
        let released = tokio::task::spawn_blocking(release_freed_memory);
        if released.await.is_err() {
            return;
        }
        base = resident_kib().unwrap_or(0);
        tracing::trace!(before = now, after = base, "released freed memory");
    }
}

/// Makes sleeping workers wake up once.
async fn wake_workers() {
    RELEASE.fetch_add(1, Ordering::Relaxed);
    let workers = tokio::runtime::Handle::current().metrics().num_workers();
    for _ in 0..workers {
        tokio::spawn(tokio::task::yield_now());
    }
    tokio::time::sleep(WORKERS).await;
}

/// Returns the resident memory of this process.
fn resident_kib() -> Option<u64> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    let resident: u64 = pages.split(' ').nth(1)?.parse().ok()?;
    Some(resident * (rustix::param::page_size() as u64 >> 10))
}
