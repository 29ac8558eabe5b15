//! Counts what a store did since it was opened, for metrics.
//!
//! The sequencer and the freshness barrier update the counters, once per batch or per read of the end of the log.
//! `Store::stats` reads them. All counters are atomics.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::backend::BackendError;
use crate::batch::Appended;

/// A histogram of durations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Durations {
    /// The number of durations in each bucket: those within a bound of [`Durations::BOUNDS`] and above the previous
    /// bound. The last number is for durations above all bounds.
    pub counts: [u64; Durations::BOUNDS.len() + 1],
    /// The sum of all durations.
    pub sum: Duration,
}

impl Durations {
    /// The upper bounds of the buckets, in microseconds.
    pub const BOUNDS: [u64; 17] = [
        100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
        1_000_000, 2_500_000, 5_000_000, 10_000_000, 30_000_000,
    ];
}

#[derive(Default)]
struct Clock {
    counts: [AtomicU64; Durations::BOUNDS.len() + 1],
    nanos: AtomicU64,
}

impl Clock {
    fn note(&self, took: Duration) {
        let bucket =
            Durations::BOUNDS.partition_point(|bound| Duration::from_micros(*bound) < took);
        self.counts[bucket].fetch_add(1, Relaxed);
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.nanos.fetch_add(nanos, Relaxed);
    }

    fn read(&self) -> Durations {
        Durations {
            counts: std::array::from_fn(|bucket| self.counts[bucket].load(Relaxed)),
            sum: Duration::from_nanos(self.nanos.load(Relaxed)),
        }
    }
}

/// How an append ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendResult {
    /// The batch is in the log.
    Stored,
    /// Another store appended first: the same writes are decided again.
    Moved,
    /// There was no space.
    Full,
    /// The disk or the database refused writes.
    ReadOnly,
    /// Another program locked the log.
    Busy,
    /// The log could not be reached.
    Unreachable,
    /// The connection was lost; the sequencer must find out whether the batch is in the log.
    Unknown,
    /// The log is unusable.
    Failed,
}

impl AppendResult {
    /// All results.
    pub const ALL: [Self; 8] = [
        Self::Stored,
        Self::Moved,
        Self::Full,
        Self::ReadOnly,
        Self::Busy,
        Self::Unreachable,
        Self::Unknown,
        Self::Failed,
    ];

    /// Returns the name of the result in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stored => "stored",
            Self::Moved => "moved",
            Self::Full => "full",
            Self::ReadOnly => "read_only",
            Self::Busy => "busy",
            Self::Unreachable => "unreachable",
            Self::Unknown => "unknown",
            Self::Failed => "failed",
        }
    }

    fn of(appended: Result<&Appended, &BackendError>) -> Self {
        match appended {
            Ok(Appended::Done(_)) => Self::Stored,
            Ok(Appended::Moved(_)) => Self::Moved,
            Err(BackendError::Full(_)) => Self::Full,
            Err(BackendError::ReadOnly(_)) => Self::ReadOnly,
            Err(BackendError::Busy(_)) => Self::Busy,
            Err(BackendError::Unreachable(_)) => Self::Unreachable,
            Err(BackendError::Unknown(_)) => Self::Unknown,
            Err(_) => Self::Failed,
        }
    }
}

/// What the sequencer found out about a batch with an unknown outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// The batch is in the log.
    Stored,
    /// The batch is not in the log and never will be.
    Absent,
    /// The log has another history now, and was loaded again. It was not checked whether the batch is part of that
    /// history.
    Reloaded,
    /// The log is unusable.
    Failed,
}

impl Resolution {
    /// All resolutions.
    pub const ALL: [Self; 4] = [Self::Stored, Self::Absent, Self::Reloaded, Self::Failed];

    /// Returns the name of the resolution in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stored => "stored",
            Self::Absent => "absent",
            Self::Reloaded => "reloaded",
            Self::Failed => "failed",
        }
    }
}

/// What a store did since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreActivity {
    /// How long appends took, including failed appends.
    pub appends: Durations,
    /// Appends by result, in the order of [`AppendResult::ALL`].
    pub append_results: [u64; AppendResult::ALL.len()],
    /// Appends that kept all other stores out, after other stores were too often faster.
    pub held_appends: u64,
    /// Records in the batches that were stored.
    pub records: u64,
    /// Batches whose unknown outcome was found out, in the order of [`Resolution::ALL`].
    pub resolutions: [u64; Resolution::ALL.len()],
    /// Whether there is a batch with an unknown outcome now.
    pub is_unresolved: bool,
    /// How often batches of other stores were applied.
    pub catch_ups: u64,
    /// Records of other stores that were applied.
    pub followed_records: u64,
    /// How often everything was loaded again, because the log had another history.
    pub reloads: u64,
    /// How long the freshness barrier took to read the end of the log.
    pub barriers: Durations,
    /// The reads that waited for the freshness barrier; many reads may wait for the same read of the end of the log.
    pub barrier_reads: u64,
    /// How often the end of the log could not be read.
    pub barrier_failures: u64,
    /// The number of revisions that the barrier found in the log and that are not visible yet.
    pub behind: u64,
    /// The epoch of the log.
    pub epoch: u64,
    /// The age of the oldest change that is still in the history; zero without history.
    pub floor_age: Duration,
}

/// The counters behind [`StoreActivity`].
pub(crate) struct Activity {
    opened: Instant,
    appends: Clock,
    append_results: [AtomicU64; AppendResult::ALL.len()],
    held_appends: AtomicU64,
    records: AtomicU64,
    resolutions: [AtomicU64; Resolution::ALL.len()],
    is_unresolved: AtomicBool,
    catch_ups: AtomicU64,
    followed_records: AtomicU64,
    barriers: Clock,
    barrier_reads: AtomicU64,
    barrier_failures: AtomicU64,
    /// The highest revision that the barrier found.
    found: AtomicU64,
    epoch: AtomicU64,
    /// Milliseconds from `opened` to the time of the oldest change in the history.
    oldest: AtomicI64,
}

/// The value of `oldest` when there is no history.
const NONE: i64 = i64::MAX;

impl Activity {
    pub(crate) fn new() -> Self {
        Self {
            opened: Instant::now(),
            appends: Clock::default(),
            append_results: Default::default(),
            held_appends: AtomicU64::new(0),
            records: AtomicU64::new(0),
            resolutions: Default::default(),
            is_unresolved: AtomicBool::new(false),
            catch_ups: AtomicU64::new(0),
            followed_records: AtomicU64::new(0),
            barriers: Clock::default(),
            barrier_reads: AtomicU64::new(0),
            barrier_failures: AtomicU64::new(0),
            found: AtomicU64::new(0),
            epoch: AtomicU64::new(0),
            oldest: AtomicI64::new(NONE),
        }
    }

    /// Counts an append that began at `begun`.
    pub(crate) fn appended(&self, begun: Instant, appended: Result<&Appended, &BackendError>) {
        self.appends.note(begun.elapsed());
        self.append_results[AppendResult::of(appended) as usize].fetch_add(1, Relaxed);
    }

    pub(crate) fn held(&self) {
        self.held_appends.fetch_add(1, Relaxed);
    }

    /// Counts the records of a batch that was stored.
    pub(crate) fn stored(&self, records: u64) {
        self.records.fetch_add(records, Relaxed);
    }

    /// Records that the outcome of a batch is not known.
    pub(crate) fn unresolved(&self) {
        self.is_unresolved.store(true, Relaxed);
    }

    pub(crate) fn resolved(&self, resolution: Resolution) {
        self.is_unresolved.store(false, Relaxed);
        self.resolutions[resolution as usize].fetch_add(1, Relaxed);
    }

    /// Counts records of other stores.
    pub(crate) fn followed(&self, records: u64) {
        self.catch_ups.fetch_add(1, Relaxed);
        self.followed_records.fetch_add(records, Relaxed);
    }

    /// Counts a read of the end of the log that `callers` waited for. `found` is the last revision of the log.
    pub(crate) fn barrier(&self, begun: Instant, callers: usize, found: Option<u64>) {
        self.barriers.note(begun.elapsed());
        self.barrier_reads.fetch_add(callers as u64, Relaxed);
        match found {
            Some(last) => self.found.fetch_max(last, Relaxed),
            None => self.barrier_failures.fetch_add(1, Relaxed),
        };
    }

    /// Records the epoch, and when the oldest change in the history was written.
    pub(crate) fn state(&self, epoch: u64, oldest: Option<Instant>) {
        self.epoch.store(epoch, Relaxed);
        let millis = |length: Duration| i64::try_from(length.as_millis()).unwrap_or(NONE);
        let oldest = oldest.map_or(NONE, |at| match at.checked_duration_since(self.opened) {
            Some(after) => millis(after),
            None => -millis(self.opened - at),
        });
        self.oldest.store(oldest, Relaxed);
    }

    fn floor_age(&self) -> Duration {
        let now = i64::try_from(self.opened.elapsed().as_millis()).unwrap_or(NONE);
        let age = now.saturating_sub(self.oldest.load(Relaxed));
        Duration::from_millis(u64::try_from(age).unwrap_or(0))
    }

    /// Reads the counters. The caller passes `visible` and `reloads`, which are not counted here.
    pub(crate) fn read(&self, visible: u64, reloads: u64) -> StoreActivity {
        StoreActivity {
            appends: self.appends.read(),
            append_results: std::array::from_fn(|result| self.append_results[result].load(Relaxed)),
            held_appends: self.held_appends.load(Relaxed),
            records: self.records.load(Relaxed),
            resolutions: std::array::from_fn(|result| self.resolutions[result].load(Relaxed)),
            is_unresolved: self.is_unresolved.load(Relaxed),
            catch_ups: self.catch_ups.load(Relaxed),
            followed_records: self.followed_records.load(Relaxed),
            reloads,
            barriers: self.barriers.read(),
            barrier_reads: self.barrier_reads.load(Relaxed),
            barrier_failures: self.barrier_failures.load(Relaxed),
            behind: self.found.load(Relaxed).saturating_sub(visible),
            epoch: self.epoch.load(Relaxed),
            floor_age: self.floor_age(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_fall_into_the_bucket_of_their_upper_bound() {
        let clock = Clock::default();
        for micros in [0, 100, 101, 30_000_000, 30_000_001] {
            clock.note(Duration::from_micros(micros));
        }
        let read = clock.read();
        assert_eq!(read.counts[..2], [2, 1]);
        assert_eq!(read.counts[16..], [1, 1]);
        assert_eq!(read.sum, Duration::from_micros(60_000_202));
    }

    #[test]
    fn results_are_counted_at_their_place_in_the_list() {
        for (place, result) in AppendResult::ALL.into_iter().enumerate() {
            assert_eq!(result as usize, place, "{}", result.name());
        }
        for (place, result) in Resolution::ALL.into_iter().enumerate() {
            assert_eq!(result as usize, place, "{}", result.name());
        }
    }

    #[test]
    fn the_age_of_the_history_may_be_older_than_the_store() {
        let activity = Activity::new();
        assert_eq!(activity.floor_age(), Duration::ZERO);
        let Some(hour_ago) = activity.opened.checked_sub(Duration::from_secs(3600)) else {
            return;
        };
        activity.state(3, Some(hour_ago));
        assert!(activity.floor_age() >= Duration::from_secs(3600));
        assert_eq!(activity.read(0, 0).epoch, 3);
        activity.state(3, None);
        assert_eq!(activity.floor_age(), Duration::ZERO);
    }

    #[test]
    fn what_the_barrier_found_and_is_not_visible_is_behind() {
        let activity = Activity::new();
        activity.barrier(Instant::now(), 5, Some(12));
        activity.barrier(Instant::now(), 1, None);
        let read = activity.read(9, 0);
        assert_eq!(
            (read.behind, read.barrier_reads, read.barrier_failures),
            (3, 6, 1)
        );
        assert_eq!(activity.read(12, 0).behind, 0);
    }
}
