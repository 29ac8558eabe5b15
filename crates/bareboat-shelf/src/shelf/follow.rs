//! Following changes: from memory while a watch keeps up, from rows otherwise.
//!
//! Rows have only the last state, so several changes of an object come as one. Its deletion comes with the row alone.

use super::{Shelf, ShelfError, read};
use crate::predicate::Truth;
use crate::query::Query;
use crate::ring::{Event, EventType};
use crate::row::{Directory, Narrow, Row};
use bytes::Bytes;
use rusqlite::params;
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
        {
            let ring = self.ring.lock();
            let visible = self.visible();
            if rev > visible {
                return Ok(Err(Expired));
            }
            if let Some((events, rev)) = ring.after(&query.kinds, rev, most, visible) {
                return Ok(Ok(Replayed { events, rev }));
            }
        }
        if !self.history.read().covers(rev) {
            return Ok(Err(Expired));
        }
        let replayed = self.reading(|connection| {
            let visible = read::last_rev(connection)?;
            let mut events: Vec<Arc<Event>> = Vec::new();
            for kind in &query.kinds {
                let sql = format!(
                    "SELECT {} FROM object o WHERE kind = ? AND rev > ? ORDER BY rev LIMIT ?",
                    read::COLUMNS
                );
                let mut statement = connection.prepare_cached(&sql)?;
                let limit = i64::try_from(most).unwrap_or(i64::MAX);
                let mut rows = statement.query(params![kind.0, rev, limit])?;
                while let Some(row) = rows.next()? {
                    events.push(Arc::new(merged(connection, read::narrow(row)?, rev)?));
                }
            }
            events.sort_by_key(|event| event.narrow.rev);
            let reached = match events.get(most) {
                Some(beyond) => beyond.narrow.rev - 1,
                None if events.len() == most => {
                    events.last().map_or(visible, |last| last.narrow.rev)
                }
                None => visible,
            };
            events.retain(|event| event.narrow.rev <= reached);
            Ok(Replayed {
                events,
                rev: reached,
            })
        })?;
        // A purge may have come between the first look and the read.
        match self.history.read().covers(rev) {
            true => Ok(Ok(replayed)),
            false => Ok(Err(Expired)),
        }
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

/// Makes one event of all changes of an object since a version.
fn merged(
    connection: &rusqlite::Connection,
    narrow: Narrow,
    rev: i64,
) -> Result<Event, ShelfError> {
    let (body, splice) = match narrow.gone {
        true => (Bytes::new(), 0),
        false => read::body(connection, narrow.id)?.unwrap_or_default(),
    };
    let event = match (narrow.gone, narrow.born > rev) {
        (true, _) => EventType::Deleted,
        (false, true) => EventType::Added,
        (false, false) => EventType::Modified,
    };
    Ok(Event {
        event,
        narrow,
        body,
        splice,
        before: None,
        merged: true,
    })
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
