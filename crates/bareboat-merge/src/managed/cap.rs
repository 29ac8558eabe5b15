//! Limits the list: the oldest of many updates are merged.

use super::{Entry, Managed, Operation};
use crate::fields::FieldSet;
use bareboat_api::Str;
use std::collections::HashMap;

/// The maximum number of separate update entries.
const MAX_UPDATES: usize = 10;

/// The manager name of merged updates.
const ANCIENT: &str = "ancient-changes";

/// Merges the oldest updates, version by version, until few enough remain.
// Upstream: apimachinery managedfields/internal/capmanagers.go.
pub(crate) fn cap_updates(managed: &mut Managed) {
    let is_update = |entry: &Entry| entry.operation == Operation::Update;
    let mut count = managed.0.iter().filter(|entry| is_update(entry)).count();
    if count <= MAX_UPDATES {
        return;
    }
    let mut slots: Vec<Option<Entry>> = std::mem::take(&mut managed.0)
        .into_iter()
        .map(Some)
        .collect();
    let mut oldest: Vec<usize> = (0..slots.len())
        .filter(|place| slots[*place].as_ref().is_some_and(is_update))
        .collect();
    bareboat_api::sort_by(&mut oldest, |a, b| match (&slots[*a], &slots[*b]) {
        (Some(a), Some(b)) => a.time.cmp(&b.time).then_with(|| a.identity_order(b)),
        _ => std::cmp::Ordering::Equal,
    });

    // For each version the oldest entry, and the bucket: the existing one, else the oldest.
    let mut firsts: HashMap<Str, usize> = HashMap::new();
    let mut buckets: HashMap<Str, usize> = HashMap::new();
    for place in &oldest {
        if let Some(entry) = &slots[*place]
            && entry.manager == ANCIENT
            && entry.subresource.is_empty()
        {
            buckets.insert(entry.api_version.clone(), *place);
        }
    }
    // The fields of each bucket, which are united at the end.
    let mut joined: HashMap<usize, Vec<FieldSet>> = HashMap::new();
    for place in oldest {
        if count <= MAX_UPDATES {
            break;
        }
        let Some(version) = slots[place].as_ref().map(|entry| entry.api_version.clone()) else {
            continue;
        };
        let Some(first) = firsts.get(&version).copied() else {
            firsts.insert(version, place);
            continue;
        };
        let bucket = *buckets.entry(version).or_insert(first);
        // The bucket is never merged into another; the oldest entry goes into it instead.
        let from = if bucket == place { first } else { place };
        let (Some(from), Some(entry)) = (slots[from].take(), &mut slots[bucket]) else {
            continue;
        };
        joined.entry(bucket).or_default().push(from.fields);
        entry.manager = ANCIENT.into();
        entry.subresource = Str::default();
        // The merged-in entry is the more recent one, except for the oldest.
        entry.time = entry.time.take().max(from.time);
        count -= 1;
    }
    for (bucket, mut sets) in joined {
        if let Some(entry) = &mut slots[bucket] {
            sets.push(std::mem::take(&mut entry.fields));
            entry.fields = FieldSet::union(sets);
        }
    }
    managed.0 = slots.into_iter().flatten().collect();
}
