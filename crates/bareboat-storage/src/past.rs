//! Past states: computed by undoing recent events, or read from the log. Equal requests share one state.
//!
//! Undoing events holds no lock while it works; long work runs on the threads for long reads.

use std::sync::Arc;

use ahash::AHashMap;
use tokio::sync::OnceCell;

use crate::backend::{BackendError, Stop};
use crate::entry::Entry;
use crate::resource::Resource;
use crate::slot::Slot;
use crate::snapshot::{Map, Snapshot, SnapshotError};

/// The number of events copied under the lock at once.
const SLICE: u64 = 256;
/// The maximum number of events that the caller itself undoes. More events are undone on a thread for long reads.
const FEW: u64 = 512;

/// A past state that several snapshots share. The resource keeps a reference to it while one of the snapshots exists.
#[derive(Default)]
pub(crate) struct PastState {
    found: OnceCell<Found>,
}

/// A state, and the bytes of its entries that are not in the present state.
struct Found {
    map: Map,
    own_bytes: usize,
    as_of: u64,
}

/// The present state, from which a past state is computed.
struct Present {
    map: Map,
    /// The last change in `map`.
    as_of: u64,
    /// The ring positions of the events to undo.
    from: u64,
    end: u64,
}

/// The result of undoing events.
enum Unwound {
    Found(Found),
    /// The ring does not reach back far enough, or no longer does.
    TooFar,
}

impl Resource {
    /// Returns the state as of `revision`. The state is pinned, unchanged since, computed by undoing recent events, or
    /// read from the log.
    pub async fn snapshot_at(self: &Arc<Self>, revision: u64) -> Result<Snapshot, SnapshotError> {
        if let Some(snapshot) = self.pinned(revision) {
            return Ok(snapshot);
        }
        // A list may already contain a batch that is applied but not yet announced.
        let visible = self.core.visible().max(self.changed_at());
        if revision > visible {
            return Err(SnapshotError::Future { visible });
        }
        let floor = self.core.floor();
        if revision < floor {
            return Err(SnapshotError::Expired { floor });
        }
        let present = self.present(revision);
        if let Some(present) = present.filter(|present| present.end - present.from <= FEW)
            && let Ok(Unwound::Found(found)) = self.unwind(present, &Stop::default())
        {
            return Ok(found.snapshot(revision, None));
        }
        let state = self.past_state(revision);
        let found = state.found.get_or_try_init(|| self.find(revision)).await?;
        Ok(found.snapshot(revision, Some(state.clone())))
    }

    /// Returns the shared slot of a past state, and drops slots that no snapshot needs.
    fn past_state(&self, revision: u64) -> Arc<PastState> {
        let mut past = self.past.lock();
        past.retain(|_, state| state.strong_count() > 0);
        if let Some(state) = past.get(&revision).and_then(std::sync::Weak::upgrade) {
            return state;
        }
        let state = Arc::new(PastState::default());
        past.insert(revision, Arc::downgrade(&state));
        state
    }

    async fn find(self: &Arc<Self>, revision: u64) -> Result<Found, SnapshotError> {
        let (this, cold) = (self.clone(), &self.core.cold);
        let unwound = cold.run(move |stop| match this.present(revision) {
            Some(present) => this.unwind(present, stop),
            None => Ok(Unwound::TooFar),
        });
        let unwound = unwound.await.map_err(|_| SnapshotError::Closed)?;
        if let Unwound::Found(found) = unwound.map_err(SnapshotError::Log)? {
            return Ok(found);
        }
        // One read at a time, so that at most one state exceeds the limit.
        let _turn = self.core.old.turn.lock().await;
        if self.core.old.held() > self.core.options.past_bytes {
            return Err(SnapshotError::Busy);
        }
        let this = self.clone();
        let read = cold.run(move |stop| this.read_at(revision, stop));
        read.await.map_err(|_| SnapshotError::Closed)?
    }

    /// Returns the present state, if the ring has all events since `revision`.
    fn present(&self, revision: u64) -> Option<Present> {
        let hub = self.hub.lock();
        let (map, as_of) = self.live_map();
        let end = hub.ring.end();
        let from = match as_of > revision {
            true if revision < hub.ring.since() => return None,
            true => hub.ring.position_after(revision),
            false => end,
        };
        Some(Present {
            map,
            as_of,
            from,
            end,
        })
    }

    /// Undoes the events of the ring, newest first. They are copied in slices, so that writers wait
    /// only briefly.
    fn unwind(&self, present: Present, stop: &Stop) -> Result<Unwound, BackendError> {
        let Present {
            mut map,
            as_of,
            from,
            mut end,
        } = present;
        let mut before: AHashMap<Arc<str>, Option<Arc<Entry>>> = AHashMap::new();
        let mut slice = Vec::new();
        while end > from {
            stop.check()?;
            let start = end.saturating_sub(SLICE).max(from);
            {
                let hub = self.hub.lock();
                if start < hub.ring.first() {
                    return Ok(Unwound::TooFar);
                }
                slice.extend(hub.ring.between(start, end).cloned());
            }
            // The state that an older event replaced takes precedence over that of a newer event.
            for event in slice.drain(..).rev() {
                before.insert(event.entry.shared_key().clone(), event.prev.clone());
            }
            end = start;
        }
        let mut own_bytes = 0;
        for (key, entry) in before {
            match entry {
                Some(entry) => {
                    own_bytes += entry.json().len();
                    map.insert(key, entry.into());
                }
                None => {
                    map.remove(&key);
                }
            }
        }
        Ok(Unwound::Found(Found {
            map,
            own_bytes,
            as_of,
        }))
    }

    /// Reads a state from the log. Entries that are live, or in use by another reader of old states, are shared.
    fn read_at(&self, revision: u64, stop: &Stop) -> Result<Found, SnapshotError> {
        let (live, as_of) = self.live_map();
        let (mut map, mut own_bytes) = (Map::new(), 0);
        let mut malformed = None;
        let mut visit = |record: crate::backend::Record| {
            if let Some(slot) = live.get(&*record.key)
                && slot.entry().revision() == record.revision
            {
                map.insert(slot.entry().shared_key().clone(), slot.clone());
            } else if let Some(value) = &record.value {
                match self.core.old.entry(value, &record.key, record.revision) {
                    Ok(entry) => {
                        own_bytes += entry.json().len();
                        map.insert(record.key, Slot::from(entry));
                    }
                    Err(error) => malformed = Some(error),
                }
            }
        };
        let read = (self.core.backend).read_at(&self.name, revision, &mut visit, stop);
        match (read, malformed) {
            (Ok(()), None) => Ok(Found {
                map,
                own_bytes,
                as_of,
            }),
            (Err(BackendError::Compacted { floor }), _) => Err(SnapshotError::Expired { floor }),
            (Err(error), _) => Err(SnapshotError::Log(error)),
            (_, Some(error)) => Err(SnapshotError::Log(BackendError::Failed(Box::new(error)))),
        }
    }
}

impl Found {
    fn snapshot(&self, revision: u64, shared: Option<Arc<PastState>>) -> Snapshot {
        Snapshot {
            revision,
            map: self.map.clone(),
            counts: None,
            as_of: self.as_of,
            own_bytes: self.own_bytes,
            _shared: shared,
        }
    }
}
