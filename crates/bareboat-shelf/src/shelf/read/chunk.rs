//! Rows that are judged together: first without their bodies, then those that are left with them.

use super::{Meter, Prepared, ShelfError};
use crate::engine::Session;
use crate::predicate::Truth;
use crate::prefilter::Prefilter;
use crate::row::{Narrow, Row};
use bytes::Bytes;
use std::collections::HashMap;

/// A row that was judged.
pub(in crate::shelf) struct Judged {
    pub(in crate::shelf) narrow: Narrow,
    /// Whether the search finds it.
    pub(in crate::shelf) matches: bool,
    /// The body and where its resourceVersion belongs, of rows that match, if bodies are wanted.
    pub(in crate::shelf) body: Option<(Bytes, usize)>,
}

/// Rows that wait.
pub(in crate::shelf) struct Chunk<'p> {
    prepared: &'p Prepared,
    prefilter: Prefilter,
    /// Whether bodies of rows that match are wanted.
    bodies: bool,
    waiting: Vec<(Narrow, Truth)>,
}

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
        let truth = self.test(&narrow, None)?;
        let added = matches!(truth, Truth::True | Truth::Later);
        if added {
            self.waiting.push((narrow, truth));
        } else {
            meter.row(0, &self.prepared.directory)?;
        }
        Ok(added)
    }

    fn test(&self, narrow: &Narrow, body: Option<&[u8]>) -> Result<Truth, ShelfError> {
        match &self.prepared.condition.residual {
            None => Ok(Truth::True),
            Some(residual) => residual
                .test(&Row {
                    narrow,
                    body,
                    directory: &self.prepared.directory,
                })
                .map_err(ShelfError::Query),
        }
    }

    /// Judges all rows that wait, in order. Only bodies of rows that match are copied.
    pub(in crate::shelf) fn judge(
        &mut self,
        session: &dyn Session,
        meter: &mut Meter<'_>,
    ) -> Result<Vec<Judged>, ShelfError> {
        let mut places: HashMap<i64, usize> = HashMap::new();
        let mut needed = Vec::new();
        let mut judged = Vec::with_capacity(self.waiting.len());
        let waiting = std::mem::take(&mut self.waiting);
        let mut later = Vec::with_capacity(waiting.len());
        for (place, (narrow, truth)) in waiting.into_iter().enumerate() {
            if self.bodies || truth == Truth::Later {
                places.insert(narrow.id, place);
                needed.push(narrow.id);
            }
            later.push(truth == Truth::Later);
            judged.push(Judged {
                narrow,
                matches: truth == Truth::True,
                body: None,
            });
        }
        let directory = &self.prepared.directory;
        session.bodies(&needed, &mut |id, body, splice| {
            let Some(place) = places.get(&id).copied() else {
                return Ok(());
            };
            let one = &mut judged[place];
            if later[place] {
                if !self.prefilter.passes(body) {
                    return meter.row(0, directory);
                }
                one.matches = self.test(&one.narrow, Some(body))? == Truth::True;
                if !one.matches {
                    return meter.row(body.len(), directory);
                }
            }
            if self.bodies {
                one.body = Some((Bytes::copy_from_slice(body), splice));
            }
            Ok(())
        })?;
        Ok(judged)
    }
}
