//! Tracks when other stores changed a resource, by namespace. A write that depends on other objects than its own is
//! decided again if another store changed one of them in the meantime.
//!
//! Changes of this store do not count: objects that its own writes depend on are reserved in memory.

use std::sync::Arc;

use ahash::AHashMap;

use crate::resource::Resource;

/// Objects, other than its own, that a write depends on.
#[derive(Clone)]
pub struct Dependency {
    /// The resource of the objects.
    pub resource: Arc<Resource>,
    /// The namespace of the objects; `None` for all objects of the resource.
    pub namespace: Option<Arc<str>>,
    /// The revision up to which the writer has seen changes.
    pub revision: u64,
}

opaque_debug!(Dependency);

impl Dependency {
    /// Returns whether another store changed one of the objects after `revision`.
    pub(crate) fn is_outdated(&self) -> bool {
        let others = self.resource.others.lock();
        others.changed(self.namespace.as_deref()) > self.revision
    }
}

/// The last revisions at which other stores changed a resource.
#[derive(Default)]
pub(crate) struct OtherStores {
    last: u64,
    /// The last change of all namespaces that are not in `by_namespace`.
    rest: u64,
    by_namespace: AHashMap<Arc<str>, u64>,
}

/// The maximum number of namespaces in `by_namespace`. Further namespaces count as one.
const NAMESPACES: usize = 4096;

impl OtherStores {
    /// Records a change of an object in `namespace`.
    pub(crate) fn note(&mut self, namespace: Option<&str>, revision: u64) {
        self.last = self.last.max(revision);
        let Some(namespace) = namespace else {
            return;
        };
        if let Some(known) = self.by_namespace.get_mut(namespace) {
            *known = revision;
            return;
        }
        if self.by_namespace.len() >= NAMESPACES {
            self.by_namespace.clear();
            self.rest = self.last;
        }
        self.by_namespace.insert(namespace.into(), revision);
    }

    /// Records that all objects may have changed.
    pub(crate) fn note_all(&mut self, revision: u64) {
        self.by_namespace.clear();
        self.last = revision;
        self.rest = revision;
    }

    fn changed(&self, namespace: Option<&str>) -> u64 {
        match namespace {
            None => self.last,
            Some(namespace) => {
                let known = self.by_namespace.get(namespace).copied().unwrap_or(0);
                known.max(self.rest)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_are_told_apart_until_there_are_too_many() {
        let mut others = OtherStores::default();
        others.note(Some("a"), 3);
        others.note(None, 4);
        assert_eq!(others.changed(Some("a")), 3);
        assert_eq!(others.changed(Some("b")), 0);
        assert_eq!(others.changed(None), 4);
        for n in 0..NAMESPACES {
            others.note(Some(&format!("n{n}")), 5);
        }
        assert_eq!(others.changed(Some("a")), 5);
        assert_eq!(others.changed(Some("b")), 5);
        others.note_all(9);
        assert_eq!(others.changed(Some("b")), 9);
        others.note(Some("b"), 10);
        assert_eq!(others.changed(Some("a")), 9);
    }
}
