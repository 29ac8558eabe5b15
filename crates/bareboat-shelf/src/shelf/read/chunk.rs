//! Rows that are judged together: first without their bodies, then those that are left with them.

use super::{Meter, Prepared, ShelfError};
use crate::engine::Session;
use crate::predicate::Truth;
use crate::prefilter::Prefilter;
use crate::row::{Narrow, Row};

/// How many bytes of labels and fields wait at most: members decide how long these are.
const MOST_BYTES: usize = 4 << 20;

/// Rows that wait.
pub(in crate::shelf) struct Chunk<'p> {
    prepared: &'p Prepared,
    prefilter: Prefilter,
    /// Whether bodies of rows that match are wanted.
    bodies: bool,
    waiting: Vec<(Narrow, Truth)>,
    /// The bytes of their labels and fields.
    bytes: usize,
}

/// Called for each row that matches, with its index among the rows that waited.
pub(in crate::shelf) type Matched<'m> =
    &'m mut dyn FnMut(usize, &Row<'_>) -> Result<(), ShelfError>;

impl<'p> Chunk<'p> {
    pub(in crate::shelf) fn new(prepared: &'p Prepared, bodies: bool) -> Chunk<'p> {
        let residual = prepared.condition.residual.as_ref();
        Chunk {
            prepared,
            prefilter: residual.map(Prefilter::of).unwrap_or_default(),
            bodies,
            waiting: Vec::new(),
            bytes: 0,
        }
    }

    /// Returns whether so many rows wait that they are to be judged.
    pub(in crate::shelf) fn is_full(&self, rows: usize) -> bool {
        self.waiting.len() >= rows || self.bytes >= MOST_BYTES
    }

    /// Returns how many rows wait.
    pub(in crate::shelf) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Adds a row, unless it is certain that it does not match. Returns whether it was added.
    pub(in crate::shelf) fn add(
        &mut self,
        narrow: Narrow,
        meter: &mut Meter<'_>,
    ) -> Result<bool, ShelfError> {
        let truth = self.test(&self.row(&narrow, None))?;
        let added = matches!(truth, Truth::True | Truth::Later);
        if added {
            self.bytes += narrow.labels.len() + narrow.fields.len();
            self.waiting.push((narrow, truth));
        } else {
            meter.row(0, &self.prepared.directory)?;
        }
        Ok(added)
    }

    fn row<'r>(&'r self, narrow: &'r Narrow, body: Option<&'r [u8]>) -> Row<'r> {
        Row {
            narrow,
            body,
            directory: &self.prepared.directory,
        }
    }

    fn test(&self, row: &Row<'_>) -> Result<Truth, ShelfError> {
        match &self.prepared.condition.residual {
            None => Ok(Truth::True),
            Some(residual) => residual.test(row).map_err(ShelfError::Query),
        }
    }

    /// Judges all rows that wait, and calls a function with each that matches, in no particular order. Returns the rows in order.
    pub(in crate::shelf) fn judge(
        &mut self,
        session: &dyn Session,
        meter: &mut Meter<'_>,
        matched: Matched<'_>,
    ) -> Result<Vec<Narrow>, ShelfError> {
        let waiting = std::mem::take(&mut self.waiting);
        self.bytes = 0;
        let mut needed = Vec::new();
        for (place, (narrow, truth)) in waiting.iter().enumerate() {
            match self.bodies || *truth == Truth::Later {
                true => needed.push((narrow.id, place)),
                false => matched(place, &self.row(narrow, None))?,
            }
        }
        needed.sort_unstable();
        let ids: Vec<i64> = needed.iter().map(|(id, _)| *id).collect();
        let directory = &self.prepared.directory;
        session.bodies(&ids, &mut |id, body, _| {
            let Ok(at) = ids.binary_search(&id) else {
                return Ok(());
            };
            let place = needed[at].1;
            let (narrow, truth) = &waiting[place];
            let row = self.row(narrow, Some(body));
            if *truth == Truth::Later {
                if !self.prefilter.passes(body) {
                    return meter.row(0, directory);
                }
                if self.test(&row)? != Truth::True {
                    return meter.row(body.len(), directory);
                }
            }
            matched(place, &row)
        })?;
        Ok(waiting.into_iter().map(|(narrow, _)| narrow).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Condition;
    use crate::query::Query;
    use std::sync::Arc;

    #[test]
    fn few_rows_with_long_labels_are_enough() {
        let prepared = Prepared {
            condition: Condition::default(),
            keys: Vec::new(),
            directory: Arc::default(),
            places: false,
        };
        let query = Query::default();
        let mut meter = Meter::new(&query);
        let mut chunk = Chunk::new(&prepared, false);
        let mut rows = 0;
        while !chunk.is_full(1_000) {
            let narrow = Narrow {
                labels: "x".repeat(1 << 20),
                ..Narrow::default()
            };
            assert!(chunk.add(narrow, &mut meter).expect("nothing is asked for"));
            rows += 1;
        }
        assert_eq!(rows, 4);
        assert_eq!(chunk.len(), 4);
    }
}
