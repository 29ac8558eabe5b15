//! A histogram that costs two additions per value.

use prometheus::proto::{self, Bucket};
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of values by upper bounds. Values are whole numbers of some unit.
pub(super) struct Histogram {
    bounds: &'static [f64],
    /// Units per one of the bounds.
    scale: f64,
    /// One for each bound, and one for values above all of them.
    counts: Vec<AtomicU64>,
    sum: AtomicU64,
}

impl Histogram {
    pub(super) fn new(bounds: &'static [f64], scale: f64) -> Histogram {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0));
        Histogram {
            bounds,
            scale,
            counts: counts.collect(),
            sum: AtomicU64::new(0),
        }
    }

    pub(super) fn observe(&self, value: u64) {
        let scaled = value as f64 / self.scale;
        let place = self.bounds.iter().position(|bound| scaled <= *bound);
        let place = place.unwrap_or(self.bounds.len());
        self.counts[place].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    /// Returns it in printable form, with `more` additional values in its first bucket; `None` if it is empty.
    pub(super) fn print(&self, more: u64, each: f64) -> Option<proto::Histogram> {
        let mut total = more;
        let mut buckets = Vec::with_capacity(self.bounds.len());
        for (bound, count) in self.bounds.iter().zip(&self.counts) {
            total += count.load(Ordering::Relaxed);
            let mut bucket = Bucket::default();
            bucket.set_upper_bound(*bound);
            bucket.set_cumulative_count(total);
            buckets.push(bucket);
        }
        total += self
            .counts
            .last()
            .map_or(0, |count| count.load(Ordering::Relaxed));
        if total == 0 {
            return None;
        }
        let mut histogram = proto::Histogram::default();
        histogram.set_bucket(buckets);
        histogram.set_sample_count(total);
        let sum = self.sum.load(Ordering::Relaxed) as f64 / self.scale;
        histogram.set_sample_sum(sum + more as f64 * each);
        Some(histogram)
    }
}
