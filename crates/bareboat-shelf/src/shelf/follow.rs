//! Following changes: from memory while a watch keeps up, from rows otherwise.
//!
//! Rows have only the last state, so several changes of an object come as one. Its deletion comes with the row alone.
//!
//! A long replay reads rows in parts. While it is under way, an object may have changed at a version that was passed, and again
//! at a later one: only the later change will be read. Changes in memory say what the object was before, which is not what the
//! client has. So a replay that began with rows reads rows until nothing is left, and a client that resumes in the middle of
//! one reads rows, too.

use super::{Shelf, ShelfError};
use crate::engine::Session;
use crate::predicate::Truth;
use crate::query::Query;
use crate::ring::{Event, EventType};
use crate::row::{Directory, Narrow, Row};
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The changes from a version on are not known any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too old resource version")]
pub struct Expired;

/// How far a client has followed the changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The version of the last change.
    pub rev: i64,
    replay: Replay,
}

/// Whether a client has all changes up to its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Replay {
    /// The client named a version, which may be of the middle of a replay.
    Unknown,
    /// It has all of them, or lacks some that rows will show.
    Known { complete: bool },
}

impl From<i64> for Position {
    /// The position of a client that resumes from a version.
    fn from(rev: i64) -> Position {
        Position {
            rev,
            replay: Replay::Unknown,
        }
    }
}

/// Changes, and the position they lead to.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// The changes, in order of their versions.
    pub events: Vec<Arc<Event>>,
    /// The position to ask for next.
    pub next: Position,
}

impl Replayed {
    fn new(events: Vec<Arc<Event>>, rev: i64, complete: bool) -> Replayed {
        let replay = Replay::Known { complete };
        Replayed {
            events,
            next: Position { rev, replay },
        }
    }
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

    /// Returns changes of the query's kinds after a position, at most so many. The query's conditions are not applied; see
    /// [`Shelf::seen_through`].
    pub fn changes(
        &self,
        query: &Query,
        position: impl Into<Position>,
        most: usize,
    ) -> Result<Result<Replayed, Expired>, ShelfError> {
        let position = position.into();
        let rev = position.rev;
        if rev > self.visible() && !self.is_known(rev) {
            return Ok(Err(Expired));
        }
        if self.has_all(position) {
            let ring = self.ring.lock();
            let visible = self.visible();
            if let Some((events, rev)) = ring.after(&query.kinds, rev, most, visible) {
                return Ok(Ok(Replayed::new(events, rev, true)));
            }
        }
        if !self.engine.is_own(rev) {
            return Ok(Err(Expired));
        }
        self.reading(|session| self.replay(session, query, rev, most))
    }

    /// Returns whether a client has all changes up to its position.
    fn has_all(&self, position: Position) -> bool {
        match position.replay {
            Replay::Known { complete } => complete,
            // It may come from another server, whose replays are not known here.
            Replay::Unknown if self.is_shared() => false,
            Replay::Unknown => position.rev >= self.replayed.load(Ordering::Acquire),
        }
    }

    /// Reads changes from rows.
    fn replay(
        &self,
        session: &dyn Session,
        query: &Query,
        rev: i64,
        most: usize,
    ) -> Result<Result<Replayed, Expired>, ShelfError> {
        let sql = format!(
            "SELECT {} FROM object o WHERE kind = ? AND rev > ? ORDER BY rev LIMIT ?",
            self.engine.dialect().columns()
        );
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
        // Of each kind the first changes were read, so up to here they are those of all kinds.
        rows.truncate(most);
        let full = rows.last().filter(|_| rows.len() == most);
        let reached = full.map_or(standing.last, |last| last.rev);
        if !rows.is_empty() {
            self.replayed.fetch_max(standing.last, Ordering::AcqRel);
        }
        let events = merged(session, rows, rev)?;
        let complete = reached >= standing.last;
        Ok(Ok(Replayed::new(events, reached, complete)))
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
