//! Compare-and-swap: decides which writes of a batch succeed. Compares them with the index and with the earlier
//! decisions of the batch.
//!
//! Decisions are not visible outside. A batch that cannot be committed is dropped with its decisions.

use std::sync::Arc;

use ahash::AHashMap;
use bytes::Bytes;
use smallvec::SmallVec;

use super::{Events, UnitResult};
use crate::backend::Record;
use crate::entry::Entry;
use crate::event::Event;
use crate::layout::Layout;
use crate::others::Dependency;
use crate::resource::Resource;
use crate::value::Value;
use crate::write::{CommitError, Committed, Expect, Whole};

/// A write that was checked before it was queued.
pub(crate) struct Prepared {
    pub(crate) resource: Arc<Resource>,
    pub(crate) key: Arc<str>,
    pub(crate) expect: Expect,
    pub(crate) change: PreparedChange,
    pub(crate) actor: Option<Arc<str>>,
    pub(crate) depends_on: Vec<Dependency>,
    pub(crate) part_of: Option<Whole>,
}

pub(crate) enum PreparedChange {
    Put {
        value: Bytes,
        layout: Layout,
        shape: u64,
    },
    Delete,
}

impl Prepared {
    pub(crate) fn len(&self) -> usize {
        match &self.change {
            PreparedChange::Put { value, .. } => value.len(),
            PreparedChange::Delete => 0,
        }
    }

    /// Returns the bytes that the record takes in the log.
    pub(crate) fn bytes(&self) -> usize {
        let actor = self.actor.as_ref().map_or(0, |actor| actor.len());
        self.len() + self.resource.name.len() + self.key.len() + actor
    }

    /// Returns whether the write frees space: it deletes an object, or marks the object as being deleted.
    pub(crate) fn frees(&self) -> bool {
        match &self.change {
            PreparedChange::Put { value, .. } => {
                memchr::memmem::find(value, br#""deletionTimestamp":""#).is_some()
            }
            PreparedChange::Delete => true,
        }
    }

    /// Checks whether `found` is the state that this write expects. `whole` is the object that it is part of.
    pub(crate) fn judge(
        &self,
        found: Option<&Arc<Entry>>,
        whole: Option<&Arc<Entry>>,
    ) -> Result<(), CommitError> {
        let is_ending = |whole: &Arc<Entry>| whole.facets().deletion_timestamp.is_some();
        if self.part_of.is_some() && whole.is_none_or(is_ending) {
            return Err(CommitError::Ending);
        }
        if self.depends_on.iter().any(Dependency::is_outdated) {
            return Err(CommitError::Outdated);
        }
        let delete = matches!(self.change, PreparedChange::Delete);
        match (self.expect, found) {
            (Expect::Absent, Some(found)) => Err(CommitError::AlreadyExists {
                found: found.clone(),
            }),
            (Expect::Revision(expected), Some(found)) if found.revision() == expected => Ok(()),
            (Expect::Revision(_), found) => Err(CommitError::Conflict {
                found: found.cloned(),
            }),
            (Expect::Present, None) => Err(CommitError::NotFound),
            (_, None) if delete => Err(CommitError::NotFound),
            _ => Ok(()),
        }
    }
}

/// The decision about a unit.
pub(crate) struct Verdict {
    pub(crate) result: UnitResult,
    /// Whether the decision depends on another unit of this batch.
    pub(crate) on_batch: bool,
}

/// The decisions of the batch so far.
pub(crate) struct Decisions {
    pub(crate) last: u64,
    pub(crate) records: Vec<Record>,
    pub(crate) events: Events,
    /// What earlier writes of the batch left; `None` for a batch of one write, which finds nothing of that.
    overlay: Option<Overlay>,
}

/// The entries that the writes of a batch leave, by resource and key.
type Overlay = AHashMap<(u32, Arc<str>), Option<Arc<Entry>>>;

/// The earlier content of some places of the overlay.
type Undo = SmallVec<[((u32, Arc<str>), Option<Option<Arc<Entry>>>); 1]>;

/// Restores the overlay after a unit failed.
fn restore(overlay: &mut Overlay, undo: Undo) {
    for (id, before) in undo.into_iter().rev() {
        match before {
            Some(before) => overlay.insert(id, before),
            None => overlay.remove(&id),
        };
    }
}

impl Decisions {
    /// Begins a batch of so many writes after revision `last`.
    pub(crate) fn new(last: u64, writes: usize) -> Self {
        Self {
            last,
            records: Vec::with_capacity(writes),
            events: Vec::with_capacity(writes),
            overlay: (writes > 1).then(Overlay::new),
        }
    }

    /// Decides a unit. If one of its writes fails, no write of the unit has an effect.
    pub(crate) fn decide(&mut self, writes: &[Prepared]) -> Verdict {
        let (last, kept) = (self.last, self.records.len());
        let mut done = SmallVec::new();
        let mut on_batch = false;
        // The earlier content of the overlay, to restore it if the unit fails.
        let mut undo = Undo::new();
        for (index, write) in writes.iter().enumerate() {
            let id = || (write.resource.id, write.key.clone());
            let overlaid = match &self.overlay {
                Some(overlay) if !overlay.is_empty() => overlay.get(&id()).cloned(),
                _ => None,
            };
            on_batch |= overlaid.is_some();
            let mut whole = None;
            if let Some(Whole { resource, key }) = &write.part_of {
                let overlay = self.overlay.as_ref();
                let overlaid = overlay.and_then(|it| it.get(&(resource.id, key.clone())));
                on_batch |= overlaid.is_some();
                whole = overlaid.map_or_else(|| resource.get(key), Clone::clone);
            }
            let found = match &overlaid {
                Some(found) => found.clone(),
                None => write.resource.get(&write.key),
            };
            if let Err(error) = write.judge(found.as_ref(), whole.as_ref()) {
                self.last = last;
                self.records.truncate(kept);
                self.events.truncate(kept);
                if let Some(overlay) = &mut self.overlay {
                    restore(overlay, undo);
                }
                return Verdict {
                    result: Err((index, error)),
                    on_batch,
                };
            }
            let (committed, now) = self.accept(write, found);
            if let Some(overlay) = &mut self.overlay {
                undo.push((id(), overlaid));
                overlay.insert(id(), now);
            }
            done.push(committed);
        }
        Verdict {
            result: Ok(done),
            on_batch,
        }
    }

    /// Assigns a revision to a successful write, and creates its entry, record and event.
    fn accept(
        &mut self,
        write: &Prepared,
        found: Option<Arc<Entry>>,
    ) -> (Committed, Option<Arc<Entry>>) {
        self.last += 1;
        let revision = self.last;
        // The new entry shares the key of the entry that it replaces.
        let key = found
            .as_ref()
            .map_or(&write.key, |entry| entry.shared_key());
        let key = key.clone();
        let now = match &write.change {
            PreparedChange::Put {
                value,
                layout,
                shape,
            } => Some(Arc::new(Entry::with_layout(
                key.clone(),
                revision,
                value,
                *layout,
                *shape,
            ))),
            PreparedChange::Delete => None,
        };
        self.records.push(Record {
            revision,
            prev: found.as_ref().map_or(0, |entry| entry.revision()),
            cluster: write.resource.core.cluster.clone(),
            resource: write.resource.name.clone(),
            key,
            actor: write.actor.clone(),
            value: now.clone().map(Value::of),
        });
        let gauge = &write.resource.core.frames;
        let event = Event::new(revision, now.clone(), found.clone(), gauge)
            .expect("a deletion was checked to find an entry");
        let committed = Committed {
            revision,
            entry: event.entry.clone(),
            previous: found,
        };
        self.events.push((write.resource.clone(), Arc::new(event)));
        (committed, now)
    }
}
