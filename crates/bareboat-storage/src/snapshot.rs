//! A resource as it was at one revision: cheap to take, cheap to keep, never changing.

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
    /// How many entries each namespace has, where somebody kept count.
    pub(crate) counts: Option<Counts>,
    /// The last change of the present state this was taken or unwound from.
    pub(crate) as_of: u64,
    /// Bytes of entries this held beyond that present state.
    pub(crate) own_bytes: usize,
    /// Keeps a state of the past known to its resource, so that others share it.
    pub(crate) _shared: Option<Arc<PastState>>,
}

/// Entries by namespace; those without one are not counted.
pub(crate) type Counts = OrdMap<Arc<str>, usize>;

/// Why a resource can't be read as of a revision.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// That history has been compacted: 410.
    #[error("revisions before {floor} have been compacted")]
    Expired {
        /// The oldest revision that can be read.
        floor: u64,
    },
    /// That revision has not happened yet; wait for it first.
    #[error("the last revision is {visible}")]
    Future {
        /// The last revision there is.
        visible: u64,
    },
    /// Too much of the past is in memory already; ask again later.
    #[error("too many old states are being read")]
    Busy,
    /// The log could not be read.
    #[error("the log could not be read")]
    Log(#[source] BackendError),
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

impl Snapshot {
    /// The revision this is the exact state of.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// The entry of a key.
    pub fn get(&self, key: &str) -> Option<&Arc<Entry>> {
        self.map.get(key).map(Slot::entry)
    }

    /// Entries in order of their keys, bytewise: those whose key begins with `prefix` and comes after `after`.
    ///
    /// Where the range ends is looked up once. Asking every key on the way would fetch it into the processor's cache,
    /// which costs more than everything else about an entry that is only walked past.
    pub fn range(&self, prefix: &str, after: Option<&str>) -> impl Iterator<Item = &Arc<Entry>> {
        self.slots(prefix, after).map(Slot::entry)
    }

    /// Those entries of [`Snapshot::range`] that may carry all labels of a signature; some do not, and none that does is
    /// left out.
    pub fn range_with(
        &self,
        prefix: &str,
        after: Option<&str>,
        labels: LabelSignature,
    ) -> impl Iterator<Item = &Arc<Entry>> {
        let slots = self.slots(prefix, after);
        slots
            .filter(move |slot| slot.may_carry(labels))
            .map(Slot::entry)
    }

    /// Like [`Snapshot::range_with`], but gives something for every entry that is passed, so that a walk past many can
    /// pause: nothing for one that cannot carry the labels.
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
        // The map takes a range that ends before it begins for one without end.
        let ended = after.is_some_and(|after| end.is_some_and(|end| after >= end));
        let range = (start, end.map_or(Bound::Unbounded, Bound::Excluded));
        let entries = (!ended).then(|| self.map.range::<_, str>(range));
        entries.into_iter().flatten().map(|(_, slot)| slot)
    }

    /// How many entries [`Snapshot::range`] would give.
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

/// The least text greater than everything that begins with `prefix`; nothing if there is none.
fn end_of(prefix: &str) -> Option<String> {
    let mut end = prefix.to_owned();
    while let Some(last) = end.pop() {
        // After the last code point before the surrogates comes the first behind them.
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
    fn a_range_holds_what_begins_with_the_prefix_and_comes_after() {
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
