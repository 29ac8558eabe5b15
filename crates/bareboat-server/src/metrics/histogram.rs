//! A histogram that costs two additions per value.

use prometheus::proto::{self, Bucket};
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of values by upper bounds. Values are whole numbers of some unit.
pub(crate) struct Histogram {
    bounds: &'static [f64],
    /// Units per one of the bounds.
    scale: f64,
    /// One for each bound, and one for values above all of them.
    counts: Box<[AtomicU64]>,
    sum: AtomicU64,
}

impl Histogram {
    pub(crate) fn new(bounds: &'static [f64], scale: f64) -> Histogram {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0));
        Histogram {
            bounds,
            scale,
            counts: counts.collect(),
            sum: AtomicU64::new(0),
        }
    }

    pub(crate) fn observe(&self, value: u64) {
        let scaled = value as f64 / self.scale;
        let place = self.bounds.iter().position(|bound| scaled <= *bound);
        let place = place.unwrap_or(self.bounds.len());
        self.counts[place].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    /// Returns it in printable form.
    pub(crate) fn print(&self) -> proto::Histogram {
        self.print_from(0)
    }

    /// Returns it without its first bounds: their values are in the next bucket.
    pub(crate) fn print_from(&self, first: usize) -> proto::Histogram {
        self.print_with(first, 0, 0.0)
    }

    /// Returns it with `more` additional values in its first bucket, `each` of this size.
    pub(crate) fn print_with_more(&self, more: u64, each: f64) -> proto::Histogram {
        self.print_with(0, more, each)
    }

    fn print_with(&self, first: usize, more: u64, each: f64) -> proto::Histogram {
        let mut total = more;
        let mut buckets = Vec::with_capacity(self.bounds.len());
        for (place, (bound, count)) in self.bounds.iter().zip(&self.counts).enumerate() {
            total += count.load(Ordering::Relaxed);
            if place < first {
                continue;
            }
            let mut bucket = Bucket::default();
            bucket.set_upper_bound(*bound);
            bucket.set_cumulative_count(total);
            buckets.push(bucket);
        }
        total += self
            .counts
            .last()
            .map_or(0, |count| count.load(Ordering::Relaxed));
        let mut histogram = proto::Histogram::default();
        histogram.set_bucket(buckets);
        histogram.set_sample_count(total);
        let sum = self.sum.load(Ordering::Relaxed) as f64 / self.scale;
        histogram.set_sample_sum(sum + more as f64 * each);
        histogram
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bounds_can_be_left_out() {
        let histogram = Histogram::new(&[1.0, 2.0, 4.0], 10.0);
        assert_eq!(histogram.print().get_sample_count(), 0);
        for value in [5, 15, 20, 90] {
            histogram.observe(value);
        }
        let shown = |printed: proto::Histogram| {
            let buckets = printed.get_bucket().iter();
            let buckets = buckets.map(|it| (it.upper_bound(), it.cumulative_count()));
            let sum = printed.get_sample_sum();
            (buckets.collect::<Vec<_>>(), printed.get_sample_count(), sum)
        };
        let whole = (vec![(1.0, 1), (2.0, 3), (4.0, 3)], 4, 13.0);
        assert_eq!(shown(histogram.print()), whole);
        let rest = (vec![(2.0, 3), (4.0, 3)], 4, 13.0);
        assert_eq!(shown(histogram.print_from(1)), rest);
        let more = (vec![(1.0, 3), (2.0, 5), (4.0, 5)], 6, 14.0);
        assert_eq!(shown(histogram.print_with_more(2, 0.5)), more);
    }
}
