//! What a search costs, and what is left for its next page.

use super::ShelfError;
use crate::query::{Bounds, Query};
use crate::row::Directory;
use std::time::{Duration, Instant};

/// Counts what a search costs.
pub(in crate::shelf) struct Meter<'q> {
    query: &'q Query,
    started: Instant,
    rows: usize,
    bytes: usize,
}

impl Meter<'_> {
    pub(in crate::shelf) fn new(query: &Query) -> Meter<'_> {
        Meter {
            query,
            started: Instant::now(),
            rows: 0,
            bytes: 0,
        }
    }

    /// Returns what the next page may cost, after one with so many rows. Time counts as far as it went into rows that were not found.
    pub(super) fn left(&self, found: usize) -> Bounds {
        let bounds = self.query.bounds;
        let rows = u32::try_from(self.rows).unwrap_or(u32::MAX);
        let all = rows.saturating_add(u32::try_from(found).unwrap_or(u32::MAX));
        let spent = match all {
            0 => Duration::ZERO,
            all => self
                .started
                .elapsed()
                .mul_f64(f64::from(rows) / f64::from(all)),
        };
        Bounds {
            time: bounds.time.saturating_sub(spent),
            bytes: bounds.bytes.saturating_sub(self.bytes),
        }
    }

    /// Counts a row that was looked at, and the bytes that were read for it in vain.
    pub(super) fn row(&mut self, bytes: usize, directory: &Directory) -> Result<(), ShelfError> {
        self.rows += 1;
        self.bytes += bytes;
        let bounds = self.query.bounds;
        let look = self.rows.is_multiple_of(256);
        if look && bareboat_api::interrupt::requested() {
            return Err(ShelfError::Interrupted);
        }
        let late = look && self.started.elapsed() > bounds.time;
        if !late && self.bytes <= bounds.bytes {
            return Ok(());
        }
        let declared = |path: &crate::Path| {
            let mut kinds = self.query.kinds.iter();
            kinds.all(|kind| directory.declares(*kind, path))
        };
        let fields = self.query.filter.undeclared(&declared);
        let hint = match fields.as_slice() {
            [] => {
                "; narrow it down to clusters or namespaces, or ask for pages with limit".to_owned()
            }
            fields => format!(
                "; add {} to the field index of the annotation fleet.bareboat.dev/sync, or narrow the search down",
                fields.join(", ")
            ),
        };
        Err(ShelfError::TooLong { hint })
    }
}
