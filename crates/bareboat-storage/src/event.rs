//! One change of one object, shared by every watcher of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;

use crate::entry::Entry;
use crate::variants::VariantKey;

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// It was not there before.
    Added,
    /// It was there and is another now.
    Modified,
    /// It is gone.
    Deleted,
}

/// A committed change.
pub struct Event {
    /// The revision of the change, unique and strictly increasing over all resources.
    pub rev: u64,
    /// What happened.
    pub kind: EventKind,
    /// The new state; for a deletion the last one.
    pub entry: Arc<Entry>,
    /// The state before, absent for an addition; for a deletion the same as `entry`.
    pub prev: Option<Arc<Entry>>,
    frames: Mutex<Option<Box<Frames>>>,
    gauge: Arc<FrameGauge>,
}

/// Bytes of all frames that are kept, and how many may be.
pub(crate) struct FrameGauge {
    held: AtomicUsize,
    limit: usize,
}

impl FrameGauge {
    pub(crate) fn new(limit: usize) -> Self {
        let held = AtomicUsize::new(0);
        Self { held, limit }
    }

    /// Whether no more should be kept.
    pub(crate) fn is_full(&self) -> bool {
        self.held() >= self.limit
    }

    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }
}

/// Encoded frames by an opaque name, counted in a gauge that outlives them.
struct Frames {
    gauge: Arc<FrameGauge>,
    kept: Vec<(VariantKey, Bytes)>,
}

impl Event {
    /// Bytes it takes in the log.
    pub(crate) fn stored_bytes(&self) -> u64 {
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

    /// The key of the object that changed.
    pub fn key(&self) -> &str {
        self.entry.key()
    }

    /// The storage-version wire bytes this event carries: for a deletion the last state with the deletion's revision.
    pub fn json(&self) -> Bytes {
        self.entry.json_at_revision(self.rev)
    }

    /// The encoded frame of that name, built by the first who asks and shared by all others.
    pub fn frame(&self, key: VariantKey, build: impl FnOnce() -> Bytes) -> Bytes {
        let found: Result<Bytes, std::convert::Infallible> = self.try_frame(key, || Ok(build()));
        match found {
            Ok(bytes) => bytes,
        }
    }

    /// As [`Event::frame`], for a build that may fail; failures are not kept. Nor is anything while too many bytes of
    /// frames are: until the next events let the older ones go, each watcher builds its own.
    pub fn try_frame<E>(
        &self,
        key: VariantKey,
        build: impl FnOnce() -> Result<Bytes, E>,
    ) -> Result<Bytes, E> {
        // Built under the lock: of many watchers woken at once, one encodes and the others wait for it.
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

    /// What the ring counts for this event: the state it replaced lives on here alone, and the new one will once it is
    /// replaced, but then the next event counts it.
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
