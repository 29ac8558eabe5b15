//! Rules of reads: an answer is the state of the log at one revision, which is new enough, and not from the future.

use std::collections::BTreeMap;

use super::index::Index;
use super::writes::exists;
use super::{History, Operation, Outcome, Request, Rule, Seen, Violation, violation};

pub(super) fn check(history: &History, index: &Index<'_>, found: &mut Vec<Violation>) {
    // By client: consistent lists have a revision, which never goes back.
    let mut latest: BTreeMap<usize, u64> = BTreeMap::new();
    let mut operations: Vec<&Operation> = history.operations.iter().collect();
    operations.sort_by_key(|operation| operation.begun);
    for operation in operations {
        if !is_right(history, index, operation) {
            found.push(violation(Rule::Read, format!("{operation:?}")));
        }
        if let Request::List {
            consistent: true, ..
        } = operation.request
            && let Outcome::Listed { revision, .. } = operation.outcome
        {
            let before = latest.entry(operation.client).or_default();
            if revision < *before {
                let detail = format!("{before} was read before {operation:?}");
                found.push(violation(Rule::Monotonic, detail));
            }
            *before = revision.max(*before);
        }
    }
}

fn is_right(history: &History, index: &Index<'_>, operation: &Operation) -> bool {
    let high = index.highest(operation.ended);
    let low = |consistent: bool| match consistent {
        true => index.lowest(operation.begun),
        false => 0,
    };
    match (&operation.request, &operation.outcome) {
        (Request::Get { key, consistent }, Outcome::Found(seen)) => {
            let low = low(*consistent);
            match seen {
                None => {
                    exists(index, key, low, high, false)
                        || index.is_about_lost(history, operation, key)
                }
                Some(seen) if seen.revision <= history.after => true,
                Some(seen) if history.is_lost(seen.revision) => history.is_before_epoch(operation),
                Some(seen) => shown(index, key, seen, low, high),
            }
        }
        (Request::List { prefix, consistent }, Outcome::Listed { revision, objects }) => {
            if history.is_lost(*revision) {
                return history.is_before_epoch(operation);
            }
            let low = low(*consistent);
            let expected = index.state(prefix, *revision);
            // Objects from before the run are not known.
            let own = objects.iter().filter(|seen| seen.revision > history.after);
            let own = own.map(|seen| (&*seen.key, seen.revision, &*seen.content));
            // A list may be at the revision of a record that no client asked for.
            *revision >= low && *revision <= high.max(low) && own.eq(expected)
        }
        _ => true,
    }
}

/// Returns whether a version was the newest at some revision of a range.
fn shown(index: &Index<'_>, key: &str, seen: &Seen, low: u64, high: u64) -> bool {
    let versions = index.versions(key);
    let at = versions.partition_point(|(at, _)| *at < seen.revision);
    let same = versions.get(at) == Some(&(seen.revision, Some(seen.content.as_str())));
    let replaced = versions.get(at + 1).map_or(u64::MAX, |(at, _)| *at);
    same && seen.revision <= high && replaced > low
}
