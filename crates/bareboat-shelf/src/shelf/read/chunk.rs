//! Rows that are judged together: first without their bodies, then those that are left with them.

use super::{Meter, Prepared, ShelfError};
use crate::engine::Session;
use crate::predicate::Truth;
use crate::prefilter::Prefilter;
use crate::row::{Narrow, Row};

/// Rows that wait.
pub(in crate::shelf) struct Chunk<'p> {
    prepared: &'p Prepared,
    prefilter: Prefilter,
    /// Whether bodies of rows that match are wanted.
    bodies: bool,
    waiting: Vec<(Narrow, Truth)>,
}

/// A function that sees the place of a row that matches among those that waited, and the row.
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
        }
    }

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
