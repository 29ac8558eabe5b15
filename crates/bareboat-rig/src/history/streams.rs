//! Rules of watches: every stream is the part of the log that it asked for, in order, without gap or repetition, across
//! all connections.

use super::index::Index;
use super::{History, Row, Rule, Stream, Type, Violation, violation};

pub(super) fn check(history: &History, index: &Index<'_>, found: &mut Vec<Violation>) {
    for stream in &history.streams {
        one(history, index, stream, found);
    }
}

fn one(history: &History, index: &Index<'_>, stream: &Stream, found: &mut Vec<Violation>) {
    // What was lost cannot be compared with the log.
    let lost = |revision: u64| history.is_lost(revision);
    let mut due = history
        .rows
        .iter()
        .filter(|row| row.revision > stream.after && row.key.starts_with(&stream.prefix))
        .peekable();
    let mut last = stream.after;
    for event in &stream.events {
        let revision = event.object.revision;
        let ordered = match event.kind {
            Type::Bookmark => revision >= last,
            _ => revision > last,
        };
        if !ordered {
            found.push(violation(Rule::Ordered, format!("{event:?} after {last}")));
            continue;
        }
        last = revision;
        if lost(revision) {
            continue;
        }
        // A bookmark is about everything up to its revision, an event about everything before it.
        let bound = revision + u64::from(event.kind == Type::Bookmark);
        while let Some(missing) = due.next_if(|row| row.revision < bound) {
            let rule = match event.kind {
                Type::Bookmark => Rule::Bookmark,
                _ => Rule::Complete,
            };
            found.push(violation(rule, format!("{missing:?} before {event:?}")));
        }
        if event.kind != Type::Bookmark {
            match due.next_if(|row| row.revision == revision) {
                Some(row) if is_of(history, index, row, event) => {}
                row => found.push(violation(Rule::Event, format!("{event:?} of {row:?}"))),
            }
        }
    }
    if let Some(until) = stream.until
        && let Some(missing) = due.next_if(|row| row.revision <= until)
    {
        let detail = format!("{missing:?} after the last event {last}");
        found.push(violation(Rule::Complete, detail));
    }
}

/// Returns whether an event describes a record.
fn is_of(history: &History, index: &Index<'_>, row: &Row, event: &super::Event) -> bool {
    let object = &event.object;
    let (kind, content) = match &row.content {
        Some(content) => {
            let kind = if row.prev == 0 {
                Type::Added
            } else {
                Type::Modified
            };
            (kind, Some(content.as_str()))
        }
        // An object from before the run has a content that is not known.
        None if row.prev <= history.after => (Type::Deleted, None),
        None => {
            let before = index.at(&row.key, row.revision - 1);
            (Type::Deleted, before.and_then(|(_, content)| content))
        }
    };
    event.kind == kind
        && object.key == row.key
        && content.is_none_or(|content| content == object.content)
}
