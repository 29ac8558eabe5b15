//! Following changes: from memory while a watch keeps up, from rows otherwise.
//!
//! Rows have only the last state, so several changes of an object come as one. Its deletion comes with the row alone.

use super::{Shelf, ShelfError};
use crate::engine::Session;
use crate::predicate::Truth;
use crate::query::Query;
use crate::ring::{Event, EventType};
use crate::row::{Directory, Narrow, Row};
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::Arc;

/// The changes from a version on are not known any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too old resource version")]
pub struct Expired;

/// Changes, and the version they lead to.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// The changes, in order of their versions.
    pub events: Vec<Arc<Event>>,
    /// The version to ask for next.
    pub rev: i64,
}

/// Keeps changes in memory while it exists.
#[derive(Debug)]
pub struct Following {
    shelf: Arc<Shelf>,
}

impl Drop for Following {
    fn drop(&mut self) {
        self.shelf.ring.lock().leave();
    }
}

impl Shelf {
    /// Begins to keep changes in memory, for a watch.
    pub fn follow(self: &Arc<Shelf>) -> Following {
        self.ring.lock().enter();
        Following {
            shelf: self.clone(),
        }
    }

    /// Returns changes of the query's kinds after a version, at most so many. The query's conditions are not applied; see
    /// [`Shelf::seen_through`].
    pub fn changes(
        &self,
        query: &Query,
        rev: i64,
        most: usize,
    ) -> Result<Result<Replayed, Expired>, ShelfError> {
        if rev > self.visible() && !self.is_known(rev) {
            return Ok(Err(Expired));
        }
        {
            let ring = self.ring.lock();
            let visible = self.visible();
            if let Some((events, rev)) = ring.after(&query.kinds, rev, most, visible) {
                return Ok(Ok(Replayed { events, rev }));
            }
        }
        if !self.engine.is_own(rev) {
            return Ok(Err(Expired));
        }
        let sql = format!(
            "SELECT {} FROM object o WHERE kind = ? AND rev > ? ORDER BY rev LIMIT ?",
            self.engine.dialect().columns()
        );
        self.reading(|session| {
            let standing = session.standing()?;
            if rev < standing.floor {
                return Ok(Err(Expired));
            }
            let mut rows: Vec<Narrow> = Vec::new();
            for kind in &query.kinds {
                let values = [kind.0.into(), rev.into(), most.into()];
                session.rows(&sql, &values, &mut |row| {
                    rows.push(Narrow::read(row)?);
                    Ok(true)
                })?;
            }
            rows.sort_by_key(|row| row.rev);
            let reached = match rows.get(most) {
                Some(beyond) => beyond.rev - 1,
                None if rows.len() == most => rows.last().map_or(standing.last, |last| last.rev),
                None => standing.last,
            };
            rows.retain(|row| row.rev <= reached);
            Ok(Ok(Replayed {
                events: merged(session, rows, rev)?,
                rev: reached,
            }))
        })
    }

    /// Returns what a watch with this query sees of a change: the type of its event, or nothing.
    pub fn seen_through(
        &self,
        query: &Query,
        event: &Event,
    ) -> Result<Option<EventType>, ShelfError> {
        let directory = self.directory();
        seen(query, event, &directory).map_err(ShelfError::Query)
    }
}

/// Makes one event of all changes of each object since a version.
fn merged(
    session: &dyn Session,
    rows: Vec<Narrow>,
    rev: i64,
) -> Result<Vec<Arc<Event>>, ShelfError> {
    let live = rows.iter().filter(|row| !row.gone);
    let ids: Vec<i64> = live.map(|row| row.id).collect();
    let mut bodies: HashMap<i64, (Bytes, usize)> = HashMap::new();
    session.bodies(&ids, &mut |id, body, splice| {
        bodies.insert(id, (Bytes::copy_from_slice(body), splice));
        Ok(())
    })?;
    let event = |narrow: Narrow| {
        let (body, splice) = bodies.remove(&narrow.id).unwrap_or_default();
        let event = match (narrow.gone, narrow.born > rev) {
            (true, _) => EventType::Deleted,
            (false, true) => EventType::Added,
            (false, false) => EventType::Modified,
        };
        Arc::new(Event {
            event,
            narrow,
            body,
            splice,
            before: None,
            merged: true,
        })
    };
    Ok(rows.into_iter().map(event).collect())
}

fn seen(query: &Query, event: &Event, directory: &Directory) -> Result<Option<EventType>, String> {
    let holds = |narrow: &Narrow, body: &Bytes| -> Result<(bool, bool), String> {
        let row = Row {
            narrow,
            body: Some(body),
            directory,
        };
        let scope = query.scope.test(&row)? == Truth::True;
        Ok((scope, scope && query.filter.test(&row)? == Truth::True))
    };
    let (in_scope, now) = match event.event {
        // A deletion that was not seen live has no body, and its scope needs none.
        EventType::Deleted => (holds(&event.narrow, &event.body)?.0, false),
        _ => holds(&event.narrow, &event.body)?,
    };
    if !in_scope {
        return Ok(None);
    }
    if event.merged {
        return Ok(match (event.event, now) {
            (EventType::Added, false) => None,
            (EventType::Added, true) => Some(EventType::Added),
            (EventType::Modified, true) => Some(EventType::Modified),
            // It may have matched before; clients ignore the deletion of what they do not have.
            (EventType::Modified, false) | (EventType::Deleted, _) => Some(EventType::Deleted),
        });
    }
    let before = match &event.before {
        Some(before) => holds(&before.narrow, &before.body)?.1,
        None => false,
    };
    Ok(match (before, now) {
        (false, true) => Some(EventType::Added),
        (true, true) => Some(EventType::Modified),
        (true, false) => Some(EventType::Deleted),
        (false, false) => None,
    })
}
