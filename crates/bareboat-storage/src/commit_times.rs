//! Measures the first commits of an engine: commits that are too quick do not reach a disk.

use std::time::Duration;

use parking_lot::Mutex;

/// How many commits are measured.
const MEASURED: usize = 20;
/// No disk flushes in less time than this.
const PLAUSIBLE: Duration = Duration::from_micros(60);

/// The times of the first commits. A database can say that it flushes although its disk, its virtual machine or a flag that it
/// does not tell clients about prevents it.
///
/// ```
/// use bareboat_storage::CommitTimes;
/// use std::time::Duration;
///
/// let times = CommitTimes::default();
/// let medians = (0..20).map(|_| times.note(Duration::from_micros(40)));
/// assert_eq!(medians.last(), Some(Some(Duration::from_micros(40))));
/// ```
#[derive(Debug, Default)]
pub struct CommitTimes(Mutex<Vec<Duration>>);

impl CommitTimes {
    /// Adds the time of a commit. Warns once, and returns the median, if the median of the first twenty commits is
    /// too short for a disk.
    pub fn note(&self, took: Duration) -> Option<Duration> {
        let mut times = self.0.lock();
        if times.len() == MEASURED {
            return None;
        }
        times.push(took);
        if times.len() < MEASURED {
            return None;
        }
        let mut sorted = times.clone();
        sorted.sort_unstable();
        let median = sorted[MEASURED / 2];
        if median >= PLAUSIBLE {
            return None;
        }
        tracing::warn!(
            median_micros = median.as_micros(),
            "commits are quicker than any disk: nothing reaches a disk, and a crash of the database loses acknowledged writes"
        );
        Some(median)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the median that is complained about, and after how many commits.
    fn complaint(times: impl IntoIterator<Item = u64>) -> Option<(usize, u128)> {
        let measured = CommitTimes::default();
        let mut found = None;
        for (at, micros) in times.into_iter().enumerate() {
            if let Some(median) = measured.note(Duration::from_micros(micros)) {
                assert_eq!(found, None, "it complains once");
                found = Some((at + 1, median.as_micros()));
            }
        }
        found
    }

    #[test]
    fn commits_that_reach_no_disk_are_noticed_once() {
        assert_eq!(complaint([59; 100]), Some((20, 59)));
        // Some that were slow, as the first one, change nothing.
        let first = std::iter::repeat_n(5_000, 9);
        assert_eq!(complaint(first.chain([30; 50])), Some((20, 30)));
    }

    #[test]
    fn a_quick_disk_is_believed() {
        assert_eq!(complaint([60; 100]), None);
        assert_eq!(complaint([30; 19]), None, "too few to judge");
        // Some are quick by chance, such as those that share a flush with others.
        let shared = std::iter::repeat_n(20, 9);
        assert_eq!(complaint(shared.chain([400; 50])), None);
        // Only the first ones count: later batches cost nothing to measure.
        assert_eq!(complaint([400; 20].into_iter().chain([10; 50])), None);
    }
}
