//! What batches of changes are about, and what a server may write.

use super::pass::Gain;
use bareboat_shelf::{Batch, Change, Context, Progress, ShelfError};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A member and a kind.
type Table = (i64, i64);

/// Returns the namespaces and names of the objects that changes are about.
pub(crate) fn places(batches: &[Batch]) -> BTreeMap<Table, BTreeSet<(&str, &str)>> {
    let mut wanted: BTreeMap<Table, BTreeSet<(&str, &str)>> = BTreeMap::new();
    for batch in batches {
        let places = wanted.entry((batch.member.0, batch.kind.0)).or_default();
        places.extend(batch.changes.iter().map(|change| match change {
            Change::Put(draft) => (draft.namespace(), draft.name()),
            Change::Delete {
                namespace, name, ..
            } => (namespace.as_str(), name.as_str()),
        }));
    }
    wanted.retain(|_, places| !places.is_empty());
    wanted
}

/// Returns how far batches lead.
pub(crate) fn reached(batches: &[Batch]) -> HashMap<Table, &Progress> {
    let mut last = HashMap::new();
    for batch in batches {
        if let Some(progress) = &batch.progress {
            last.insert((batch.member.0, batch.kind.0), progress);
        }
    }
    last
}

/// Returns the name of this server and the term of its lease of a member. The name is empty if it needs no lease.
pub(crate) fn fence<'c>(
    context: &'c Context<'_>,
    member: i64,
) -> Result<(&'c str, i64), ShelfError> {
    match context.fence {
        None => Ok(("", 0)),
        Some(fence) => {
            let term = fence.terms.get(&member).ok_or(ShelfError::NotHeld)?;
            Ok((fence.hub.as_str(), *term))
        }
    }
}

/// Checks the objects and bytes that a member has after a write.
pub(crate) fn check_limits(
    context: &Context<'_>,
    gain: Gain,
    objects: i64,
    bytes: i64,
) -> Result<(), ShelfError> {
    if gain.objects > 0 && objects.unsigned_abs() > context.most_rows {
        return Err(ShelfError::Quota(context.most_rows));
    }
    if gain.bytes > 0 && bytes.unsigned_abs() > context.most_bytes {
        return Err(ShelfError::QuotaBytes(context.most_bytes));
    }
    Ok(())
}
