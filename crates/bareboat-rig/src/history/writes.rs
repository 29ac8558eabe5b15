//! Rules of writes: the log has every answered write once, at its place, and no refused one.

use std::collections::{BTreeMap, BTreeSet};

use super::index::Index;
use super::{History, Operation, Outcome, Request, Rule, Violation, violation};

pub(super) fn check(history: &History, index: &Index<'_>, found: &mut Vec<Violation>) {
    log(history, found);
    let mut rows = BTreeSet::new();
    for operation in &history.operations {
        answered(history, index, operation, found);
        if let (Outcome::Written(_), Some(row)) = (&operation.outcome, index.row(operation))
            && !rows.insert(row.revision)
        {
            found.push(violation(Rule::Once, format!("{operation:?}: {row:?}")));
        }
    }
    real_time(history, index, found);
}

/// Checks the log alone.
fn log(history: &History, found: &mut Vec<Violation>) {
    let mut heads: BTreeMap<&str, u64> = BTreeMap::new();
    let mut contents = BTreeSet::new();
    let mut last = history.after;
    for row in &history.rows {
        let jumps = history.epochs.iter().any(|epoch| epoch.at == row.revision);
        if row.revision != last + 1 && !(jumps && row.revision > last) {
            let detail = format!("{} follows {last}", row.revision);
            found.push(violation(Rule::Consecutive, detail));
        }
        last = row.revision;
        // Objects from before the run are not known.
        let head = heads.get(&*row.key).copied();
        if head.map_or(row.prev > history.after, |head| head != row.prev) {
            let detail = format!("{row:?} replaces {head:?}");
            found.push(violation(Rule::Chain, detail));
        }
        let now = row.content.as_ref().map_or(0, |_| row.revision);
        heads.insert(&row.key, now);
        if let Some(content) = &row.content
            && !contents.insert(content)
        {
            found.push(violation(Rule::Once, format!("{row:?}")));
        }
    }
}

/// Checks one answer.
fn answered(
    history: &History,
    index: &Index<'_>,
    operation: &Operation,
    found: &mut Vec<Violation>,
) {
    let row = index.row(operation);
    match &operation.outcome {
        Outcome::Written(revision) => {
            let lost = revision.is_some_and(|revision| history.is_lost(revision));
            match row {
                Some(row) => {
                    let key = operation.request.key().unwrap_or_default();
                    if revision.is_some_and(|own| own != row.revision) || row.key != key {
                        found.push(violation(Rule::Kept, format!("{operation:?}: {row:?}")));
                    }
                    let replaced = match &operation.request {
                        Request::Create { .. } => Some(0),
                        Request::Replace { found, .. } => Some(*found),
                        _ => None,
                    };
                    if replaced.is_some_and(|replaced| replaced != row.prev) {
                        let detail = format!("{operation:?}: {row:?}");
                        found.push(violation(Rule::CompareAndSwap, detail));
                    }
                }
                // A deletion has no revision of its own in its answer.
                None if lost || (revision.is_none() && !history.epochs.is_empty()) => {}
                None => found.push(violation(Rule::Kept, format!("{operation:?}"))),
            }
        }
        Outcome::Refused | Outcome::Conflict => {
            if operation.request.content().is_some() && row.is_some() {
                let detail = format!("{operation:?}: {row:?}");
                found.push(violation(Rule::RefusedIsAbsent, detail));
            } else if operation.outcome == Outcome::Conflict
                && !is_explained(history, index, operation)
            {
                found.push(violation(Rule::Conflict, format!("{operation:?}")));
            }
        }
        Outcome::Unknown | Outcome::Found(_) | Outcome::Listed { .. } => {}
    }
}

/// Returns whether the log explains that a write was refused for another state of its object.
fn is_explained(history: &History, index: &Index<'_>, operation: &Operation) -> bool {
    let (low, high) = (
        index.lowest(operation.begun),
        index.highest(operation.ended),
    );
    let key = operation.request.key();
    if key.is_some_and(|key| index.is_about_lost(history, operation, key)) {
        return true;
    }
    match &operation.request {
        // It exists at some time.
        Request::Create { key, .. } => exists(index, key, low, high, true),
        // Another version is the newest at some time, or the known one was lost.
        Request::Replace { key, found, .. } | Request::Delete { key, found } => {
            let versions = index.versions(key);
            let later = versions.iter().find(|(at, _)| at > found);
            history.is_lost(*found) || later.is_some_and(|(at, _)| *at <= high)
        }
        Request::Patch { key, .. } => exists(index, key, low, high, false),
        Request::Get { .. } | Request::List { .. } => false,
    }
}

/// Returns whether an object exists (or does not exist) at some revision of a range.
pub(super) fn exists(index: &Index<'_>, key: &str, low: u64, high: u64, wanted: bool) -> bool {
    let at = |revision| {
        index
            .at(key, revision)
            .is_some_and(|(_, content)| content.is_some())
    };
    let versions = index.versions(key).iter();
    at(low) == wanted
        || versions
            .filter(|(at, _)| *at > low && *at <= high)
            .any(|(_, content)| content.is_some() == wanted)
}

fn real_time(history: &History, index: &Index<'_>, found: &mut Vec<Violation>) {
    let mut written: Vec<(u64, u64, u64)> = Vec::new();
    for operation in &history.operations {
        if let (Outcome::Written(_), Some(row)) = (&operation.outcome, index.row(operation)) {
            written.push((operation.begun, operation.ended, row.revision));
        }
    }
    let mut ends: Vec<(u64, u64)> = written.iter().map(|one| (one.1, one.2)).collect();
    ends.sort_unstable();
    written.sort_unstable();
    let (mut next, mut highest) = (0, 0);
    for (begun, _, revision) in written {
        while next < ends.len() && ends[next].0 < begun {
            highest = highest.max(ends[next].1);
            next += 1;
        }
        if revision <= highest {
            let detail = format!("{revision} began after the answer of {highest}");
            found.push(violation(Rule::RealTime, detail));
        }
    }
}
