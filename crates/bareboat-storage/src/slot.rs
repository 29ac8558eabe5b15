//! An entry in the map of its resource, with data for fast scans over thousands of entries.

use std::hash::{BuildHasher as _, Hasher as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::entry::Entry;

/// The bit that marks a computed signature.
const KNOWN: u64 = 1 << 63;

/// A set of labels as bits. An object can have all labels of a set only if its signature has all bits of that set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LabelSignature(u64);

impl LabelSignature {
    /// Returns the signature of labels.
    pub fn of<'a>(labels: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let mut bits = 0;
        for (key, value) in labels {
            let mut hasher = ahash::RandomState::with_seeds(1, 2, 3, 4).build_hasher();
            hasher.write(key.as_bytes());
            hasher.write_u8(b'=');
            hasher.write(value.as_bytes());
            bits |= 1 << (hasher.finish() % 63);
        }
        Self(bits)
    }
}

/// An entry in the map.
pub(crate) struct Slot {
    entry: Arc<Entry>,
    /// The labels as a [`LabelSignature`]; 0 until the first use.
    labels: AtomicU64,
}

impl Slot {
    pub(crate) fn entry(&self) -> &Arc<Entry> {
        &self.entry
    }

    pub(crate) fn into_entry(self) -> Arc<Entry> {
        self.entry
    }

    /// Returns whether the entry may have all labels of `wanted`. If the result is false, the entry lacks a label.
    ///
    /// A selection among thousands of entries rejects most of them here, without following a pointer.
    pub(crate) fn may_carry(&self, wanted: LabelSignature) -> bool {
        if wanted == LabelSignature::default() {
            return true;
        }
        let mut own = self.labels.load(Ordering::Relaxed);
        if own == 0 {
            let labels = self.entry.facets().labels.iter();
            own = LabelSignature::of(labels.map(|(key, value)| (&**key, &**value))).0 | KNOWN;
            self.labels.store(own, Ordering::Relaxed);
        }
        own & wanted.0 == wanted.0
    }
}

impl From<Arc<Entry>> for Slot {
    fn from(entry: Arc<Entry>) -> Slot {
        let labels = AtomicU64::new(0);
        Slot { entry, labels }
    }
}

impl Clone for Slot {
    fn clone(&self) -> Slot {
        let labels = AtomicU64::new(self.labels.load(Ordering::Relaxed));
        let entry = self.entry.clone();
        Slot { entry, labels }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(labels: &str) -> Slot {
        let stored = format!(
            r#"{{"apiVersion":"v1","kind":"T","metadata":{{"labels":{{{labels}}},"name":"a"}}}}"#
        );
        let entry = Entry::new("a".into(), 1, stored.as_bytes(), 0).expect("a stored object");
        Slot::from(Arc::new(entry))
    }

    #[test]
    fn an_entry_with_the_labels_is_never_rejected() {
        let wanted =
            |labels: &[(&'static str, &'static str)]| LabelSignature::of(labels.iter().copied());
        let both = slot(r#""app":"web","tier":"front""#);
        for labels in [
            &[][..],
            &[("app", "web")],
            &[("tier", "front")],
            &[("app", "web"), ("tier", "front")],
        ] {
            assert!(both.may_carry(wanted(labels)), "{labels:?}");
            assert!(both.clone().may_carry(wanted(labels)), "a copy, {labels:?}");
        }
        let none = slot("");
        assert!(none.may_carry(wanted(&[])));
        assert!(!none.may_carry(wanted(&[("app", "web")])));
    }
}
