//! A resource as it was at one revision: cheap to take, cheap to keep, never changing.

use std::ops::Bound;
use std::sync::Arc;

use imbl::OrdMap;

use crate::backend::BackendError;
use crate::entry::Entry;

pub(crate) type Map = OrdMap<Arc<str>, Arc<Entry>>;

/// All entries of a resource at one revision.
#[derive(Clone)]
pub struct Snapshot {
    pub(crate) revision: u64,
    pub(crate) map: Map,
    /// How many entries each namespace has, where somebody kept count.
    pub(crate) counts: Option<Counts>,
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
        self.map.get(key)
    }

    /// Entries in order of their keys, bytewise: those whose key begins with `prefix` and comes after `after`.
    pub fn range<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&str>,
    ) -> impl Iterator<Item = &'a Arc<Entry>> {
        let start = match after {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        self.map
            .range::<_, str>((start, Bound::Unbounded))
            .map(|(_, entry)| entry)
            .take_while(move |entry| entry.key().starts_with(prefix))
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

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Snapshot(@{}, {} entries)", self.revision, self.len())
    }
}
