//! One change of one object, shared by all its watchers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;

use crate::entry::Entry;
use crate::variants::VariantKey;

/// The type of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// The object was created.
    Added,
    /// The object was changed.
    Modified,
    /// The object was deleted.
    Deleted,
}

/// A committed change.
pub struct Event {
    /// The revision of the change, unique and strictly increasing over all resources.
    pub rev: u64,
    /// The type of the change.
    pub kind: EventKind,
    /// The new state; for a deletion the last state.
    pub entry: Arc<Entry>,
    /// The previous state, absent for an addition; for a deletion the same as `entry`.
    pub prev: Option<Arc<Entry>>,
    frames: Mutex<Option<Box<Frames>>>,
    gauge: Arc<FrameGauge>,
}

/// The bytes of all cached frames, and their limit.
pub(crate) struct FrameGauge {
    held: AtomicUsize,
    limit: usize,
}

impl FrameGauge {
    pub(crate) fn new(limit: usize) -> Self {
        let held = AtomicUsize::new(0);
        Self { held, limit }
    }

    /// Returns whether the limit is reached.
    pub(crate) fn is_full(&self) -> bool {
        self.held() >= self.limit
    }

    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }
}

/// Cached frames by an opaque key, counted in a gauge that outlives them.
struct Frames {
    gauge: Arc<FrameGauge>,
    kept: Vec<(VariantKey, Bytes)>,
}

impl Event {
    /// Returns the number of bytes that the event takes in the log.
    pub(crate) fn persisted_bytes(&self) -> u64 {
        let value = match self.kind {
            EventKind::Deleted => 0,
            _ => self.entry.json().len(),
        };
        (self.key().len() + value) as u64
    }

    pub(crate) fn new(
        rev: u64,
        entry: Option<Arc<Entry>>,
        prev: Option<Arc<Entry>>,
        gauge: &Arc<FrameGauge>,
    ) -> Option<Self> {
        let (kind, entry) = match (entry, &prev) {
            (Some(entry), None) => (EventKind::Added, entry),
            (Some(entry), Some(_)) => (EventKind::Modified, entry),
            (None, Some(last)) => (EventKind::Deleted, last.clone()),
            (None, None) => return None,
        };
        Some(Self {
            rev,
            kind,
            entry,
            prev,
            frames: Mutex::new(None),
            gauge: gauge.clone(),
        })
    }

    /// Returns the key of the changed object.
    pub fn key(&self) -> &str {
        self.entry.key()
    }

    /// Returns the wire bytes of this event in the storage version: for a deletion the last state
    /// with the deletion's revision.
    pub fn json(&self) -> Bytes {
        self.entry.json_at_revision(self.rev)
    }

    /// Returns the encoded frame for `key`. The first caller builds the frame and all others share it.
    pub fn frame(&self, key: VariantKey, build: impl FnOnce() -> Bytes) -> Bytes {
        let found: Result<Bytes, std::convert::Infallible> = self.try_frame(key, || Ok(build()));
        match found {
            Ok(bytes) => bytes,
        }
    }

    /// Like [`Event::frame`], for a build that may fail; failures are not cached. Above the limit
    /// of frame bytes nothing is cached: each watcher builds its own frame until later events evict
    /// older frames.
    pub fn try_frame<E>(
        &self,
        key: VariantKey,
        build: impl FnOnce() -> Result<Bytes, E>,
    ) -> Result<Bytes, E> {
        // The frame is built under the lock: of many watchers woken at once, one encodes the frame and the others wait
        // for it.
        let mut frames = self.frames.lock();
        if let Some(frames) = frames.as_ref()
            && let Some((_, bytes)) = frames.kept.iter().find(|(k, _)| *k == key)
        {
            return Ok(bytes.clone());
        }
        if self.gauge.is_full() {
            drop(frames);
            return build();
        }
        let bytes = build()?;
        self.gauge.held.fetch_add(bytes.len(), Ordering::Relaxed);
        frames
            .get_or_insert_with(|| {
                Box::new(Frames {
                    gauge: self.gauge.clone(),
                    kept: Vec::with_capacity(1),
                })
            })
            .kept
            .push((key, bytes.clone()));
        Ok(bytes)
    }

    pub(crate) fn drop_frames(&self) {
        *self.frames.lock() = None;
    }

    /// Returns the bytes that the ring counts for this event: the replaced state, which only the event keeps alive. The
    /// new state counts with the next event, which replaces it.
    pub(crate) fn weight(&self) -> usize {
        const FIXED: usize = 256;
        let before = self.prev.as_ref().map_or(0, |prev| prev.json().len());
        FIXED + self.entry.json().len().max(before)
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        let bytes = self.kept.iter().map(|(_, bytes)| bytes.len()).sum();
        self.gauge.held.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl std::fmt::Debug for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}({} @{})", self.kind, self.key(), self.rev)
    }
}
