//! Other encodings of entries (versions, protobuf, CBOR) under one byte budget for the whole store.
//!
//! This is only a cache: any variant may be evicted at any time, and is encoded again when needed.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::Mutex;

use crate::entry::Entry;

/// The key of an encoding: an opaque form (version and media type) under an opaque schema hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VariantKey {
    /// The version and media type, numbered by the server.
    pub form: u32,
    /// The schema hash of the encoding; 0 if the encoding depends on no schema.
    pub shape: u64,
}

/// The byte budget of all variants, with second-chance eviction.
pub struct Variants {
    budget: usize,
    held: Arc<Held>,
    clock: Mutex<VecDeque<(Weak<Entry>, VariantKey)>>,
}

opaque_debug!(Variants);

/// The maximum number of recently used variants that are spared while room is made for a new variant.
const SPARED: usize = 256;

/// The bytes and number of variants.
#[derive(Default)]
struct Held {
    bytes: AtomicUsize,
    variants: AtomicUsize,
}

impl Held {
    fn add(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.variants.fetch_add(1, Ordering::Relaxed);
    }

    fn remove(&self, bytes: usize, variants: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.variants.fetch_sub(variants, Ordering::Relaxed);
    }
}

/// The variants of one entry: only a pointer until the first variant is kept.
#[derive(Default)]
pub(crate) struct VariantSlots(Mutex<Option<Box<Slots>>>);

struct Slots {
    held: Arc<Held>,
    kept: Vec<Variant>,
}

struct Variant {
    key: VariantKey,
    bytes: Bytes,
    used: bool,
}

impl Variants {
    /// Returns a cache of at most `budget` bytes.
    pub fn new(budget: usize) -> Self {
        Self {
            budget,
            held: Arc::default(),
            clock: Mutex::default(),
        }
    }

    /// Returns the bytes of all variants.
    pub fn held(&self) -> usize {
        self.held.bytes.load(Ordering::Relaxed)
    }

    /// Keeps an encoding of `entry`, and evicts unused variants to make room.
    pub fn keep(&self, entry: &Arc<Entry>, key: VariantKey, bytes: Bytes) {
        if bytes.len() > self.budget / 4 || !entry.variants.insert(&self.held, key, bytes) {
            return;
        }
        let mut clock = self.clock.lock();
        clock.push_back((Arc::downgrade(entry), key));
        let mut spared = 0;
        while self.held() > self.budget {
            let Some((entry, key)) = clock.pop_front() else {
                break;
            };
            let Some(alive) = entry.upgrade() else {
                continue;
            };
            // If all variants were used, scanning all of them would delay all callers.
            if !alive.variants.evict(key, spared < SPARED) {
                spared += 1;
                clock.push_back((entry, key));
            }
        }
        // A variant is freed with its entry, but its place in `clock` remains and keeps some memory. These places must
        // not accumulate.
        if clock.len() > 1024 + 2 * self.held.variants.load(Ordering::Relaxed) {
            clock.retain(|(entry, _)| entry.strong_count() > 0);
            if clock.capacity() > 4 * clock.len() + 64 {
                clock.shrink_to_fit();
            }
        }
    }
}

impl VariantSlots {
    pub(crate) fn get(&self, key: VariantKey) -> Option<Bytes> {
        let mut slots = self.0.lock();
        let variant = slots.as_mut()?.kept.iter_mut().find(|v| v.key == key)?;
        variant.used = true;
        Some(variant.bytes.clone())
    }

    /// Inserts a variant; returns whether it was new.
    fn insert(&self, held: &Arc<Held>, key: VariantKey, bytes: Bytes) -> bool {
        let mut slots = self.0.lock();
        let slots = slots.get_or_insert_with(|| {
            Box::new(Slots {
                held: held.clone(),
                kept: Vec::with_capacity(1),
            })
        });
        if slots.kept.iter().any(|v| v.key == key) {
            return false;
        }
        held.add(bytes.len());
        slots.kept.push(Variant {
            key,
            bytes,
            used: false,
        });
        true
    }

    /// Evicts a variant, unless `spare_used` is set and the variant was used since the last scan. Returns whether the
    /// variant was evicted.
    fn evict(&self, key: VariantKey, spare_used: bool) -> bool {
        let mut slots = self.0.lock();
        let Some(slots) = slots.as_mut() else {
            return true;
        };
        let Some(at) = slots.kept.iter().position(|v| v.key == key) else {
            return true;
        };
        if std::mem::take(&mut slots.kept[at].used) && spare_used {
            return false;
        }
        let gone = slots.kept.swap_remove(at);
        slots.held.remove(gone.bytes.len(), 1);
        true
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        let bytes = self.kept.iter().map(|v| v.bytes.len()).sum();
        self.held.remove(bytes, self.kept.len());
    }
}

#[cfg(test)]
mod tests;
