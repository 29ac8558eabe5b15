//! An immutable view of a resource at one revision: cheap to take and to keep.

use std::ops::Bound;
use std::sync::Arc;

use imbl::OrdMap;

use crate::backend::BackendError;
use crate::entry::Entry;
use crate::past::PastState;
use crate::slot::{LabelSignature, Slot};

pub(crate) type Map = OrdMap<Arc<str>, Slot>;

/// All entries of a resource at one revision.
#[derive(Clone)]
pub struct Snapshot {
    pub(crate) revision: u64,
    pub(crate) map: Map,
    /// The number of entries of each namespace, if counted.
    pub(crate) counts: Option<Counts>,
    /// The last change of the present state from which this snapshot was taken or computed.
    pub(crate) as_of: u64,
    /// The bytes of entries that are not in that present state.
    pub(crate) own_bytes: usize,
    /// Keeps the past state alive, so that other snapshots can share it.
    pub(crate) _shared: Option<Arc<PastState>>,
}

/// The number of entries by namespace; cluster-scoped entries are not counted.
pub(crate) type Counts = OrdMap<Arc<str>, usize>;

/// The error of reading a resource as of a revision.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The history is compacted: 410.
    #[error("revisions before {floor} have been compacted")]
    Expired {
        /// The oldest readable revision.
        floor: u64,
    },
    /// The revision is in the future; the caller must wait for it first.
    #[error("the last revision is {visible}")]
    Future {
        /// The newest revision that can be read now.
        visible: u64,
    },
    /// Too many old entries are already in memory; the caller must retry later.
    #[error("too many reads of past revisions are running")]
    Busy,
    /// The log could not be read.
    #[error("the log could not be read")]
    Log(#[source] BackendError),
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

impl Snapshot {
    /// Returns the revision of this state.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Returns whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// Returns the entry of a key.
    pub fn get(&self, key: &str) -> Option<&Arc<Entry>> {
        self.map.get(key).map(Slot::entry)
    }

    /// Returns the entries whose key begins with `prefix` and comes after `after`, in bytewise order of their keys.
    ///
    /// The end of the range is looked up once. Checking every key would load each key into the processor's cache, which
    /// costs more than all other work for an entry that is only skipped.
    pub fn range(&self, prefix: &str, after: Option<&str>) -> impl Iterator<Item = &Arc<Entry>> {
        self.slots(prefix, after).map(Slot::entry)
    }

    /// Returns the entries of [`Snapshot::range`] that may have all labels of a signature. The result contains every
    /// entry that has them, and may contain others. An entry that cannot have the labels yields `None`, so that a long
    /// scan can pause.
    pub fn walk_with(
        &self,
        prefix: &str,
        after: Option<&str>,
        labels: LabelSignature,
    ) -> impl Iterator<Item = Option<&Arc<Entry>>> {
        let slots = self.slots(prefix, after);
        slots.map(move |slot| slot.may_carry(labels).then(|| slot.entry()))
    }

    fn slots(&self, prefix: &str, after: Option<&str>) -> impl Iterator<Item = &Slot> {
        let start = match after {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        let end = end_of(prefix);
        let end = end.as_deref();
        // The map treats a range that ends before it begins as unbounded.
        let ended = after.is_some_and(|after| end.is_some_and(|end| after >= end));
        let range = (start, end.map_or(Bound::Unbounded, Bound::Excluded));
        let entries = (!ended).then(|| self.map.range::<_, str>(range));
        entries.into_iter().flatten().map(|(_, slot)| slot)
    }

    /// Returns the number of entries of [`Snapshot::range`].
    pub fn count(&self, prefix: &str, after: Option<&str>) -> usize {
        if prefix.is_empty() && after.is_none() {
            return self.len();
        }
        if let (Some(counts), Some(namespace), None) =
            (&self.counts, prefix.strip_suffix('/'), after)
        {
            return counts.get(namespace).copied().unwrap_or(0);
        }
        self.range(prefix, after).count()
    }
}

/// Returns the smallest text greater than every text with `prefix`; `None` if there is no such text.
fn end_of(prefix: &str) -> Option<String> {
    let mut end = prefix.to_owned();
    while let Some(last) = end.pop() {
        // The code point after the last one before the surrogates is the first one after them.
        let next = (u32::from(last) + 1..=0x10_FFFF).find_map(char::from_u32);
        if let Some(next) = next {
            end.push(next);
            return Some(end);
        }
    }
    None
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Snapshot(@{}, {} entries)", self.revision, self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(keys: &[&str]) -> Snapshot {
        let stored = br#"{"apiVersion":"v1","kind":"T","metadata":{"name":"a"}}"#;
        let entries = keys.iter().map(|key| {
            let key: Arc<str> = Arc::from(*key);
            let entry = Entry::new(key.clone(), 1, stored, 0).expect("a stored object");
            (key, Slot::from(Arc::new(entry)))
        });
        Snapshot {
            revision: 1,
            map: entries.collect(),
            counts: None,
            as_of: 1,
            own_bytes: 0,
            _shared: None,
        }
    }

    #[test]
    fn a_range_has_the_keys_with_the_prefix_after_the_start() {
        let keys = [
            "a",
            "a/1",
            "a/2",
            "a/é",
            "a0",
            "b/1",
            "b/2",
            "\u{10FFFF}",
            "\u{10FFFF}/x",
        ];
        let snapshot = snapshot(&keys);
        for prefix in ["", "a", "a/", "a/2", "b/", "c/", "\u{10FFFF}", "\u{D7FF}"] {
            let afters = [
                None,
                Some(""),
                Some("a/1"),
                Some("a/9"),
                Some("b/2"),
                Some("z"),
            ];
            for after in afters {
                let expected: Vec<&str> = (keys.iter().copied())
                    .filter(|key| key.starts_with(prefix))
                    .filter(|key| after.is_none_or(|after| *key > after))
                    .collect();
                let found: Vec<&str> = (snapshot.range(prefix, after))
                    .map(|entry| entry.key())
                    .collect();
                assert_eq!(found, expected, "prefix {prefix:?} after {after:?}");
            }
        }
    }
}
