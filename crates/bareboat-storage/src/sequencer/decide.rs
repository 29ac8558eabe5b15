//! Compare-and-swap: who of a batch wins, judged against the index and what the batch has decided so far.
//!
//! Nothing here is visible to anyone; a batch that can't be committed is dropped with its decisions.

use std::sync::Arc;

use ahash::AHashMap;
use bytes::Bytes;
use smallvec::SmallVec;

use super::UnitResult;
use crate::backend::Record;
use crate::entry::Entry;
use crate::event::Event;
use crate::layout::Layout;
use crate::resource::Resource;
use crate::value::Value;
use crate::write::{CommitError, Committed, Expect};

/// A write that was checked before it was queued.
pub(crate) struct Prepared {
    pub(crate) resource: Arc<Resource>,
    pub(crate) key: Arc<str>,
    pub(crate) expect: Expect,
    pub(crate) change: PreparedChange,
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

    /// Whether it leads to less being stored: a deletion, or the mark that one has begun.
    pub(crate) fn frees(&self) -> bool {
        match &self.change {
            PreparedChange::Put { value, .. } => {
                memchr::memmem::find(value, br#""deletionTimestamp":""#).is_some()
            }
            PreparedChange::Delete => true,
        }
    }

    /// Whether `found` is what this write expects.
    pub(crate) fn judge(&self, found: Option<&Arc<Entry>>) -> Result<(), CommitError> {
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

/// What was decided about a unit.
pub(crate) struct Verdict {
    pub(crate) result: UnitResult,
    /// Whether it rests on something else in this batch.
    pub(crate) on_batch: bool,
}

/// The batch as decided so far.
pub(crate) struct Decisions {
    pub(crate) last: u64,
    pub(crate) records: Vec<Record>,
    pub(crate) events: Vec<(Arc<Resource>, Arc<Event>)>,
    overlay: AHashMap<(u32, Arc<str>), Option<Arc<Entry>>>,
}

impl Decisions {
    pub(crate) fn new(last: u64) -> Self {
        Self {
            last,
            records: Vec::new(),
            events: Vec::new(),
            overlay: AHashMap::new(),
        }
    }

    /// Decides a unit; if one of its writes loses, none of them leaves a trace.
    pub(crate) fn decide(&mut self, writes: SmallVec<[Prepared; 1]>) -> Verdict {
        let (last, kept) = (self.last, self.records.len());
        let mut done = SmallVec::new();
        let mut on_batch = false;
        // What the overlay held before this unit, to put it back.
        let mut undo = SmallVec::<[_; 1]>::new();
        for (index, write) in writes.into_iter().enumerate() {
            let id = (write.resource.id, write.key.clone());
            let overlaid = match self.overlay.is_empty() {
                true => None,
                false => self.overlay.get(&id).cloned(),
            };
            on_batch |= overlaid.is_some();
            let found = match &overlaid {
                Some(found) => found.clone(),
                None => write.resource.get(&write.key),
            };
            if let Err(error) = write.judge(found.as_ref()) {
                self.last = last;
                self.records.truncate(kept);
                self.events.truncate(kept);
                for (id, before) in undo.into_iter().rev() {
                    match before {
                        Some(before) => self.overlay.insert(id, before),
                        None => self.overlay.remove(&id),
                    };
                }
                return Verdict {
                    result: Err((index, error)),
                    on_batch,
                };
            }
            let (committed, now) = self.accept(write, found);
            undo.push((id.clone(), overlaid));
            self.overlay.insert(id, now);
            done.push(committed);
        }
        Verdict {
            result: Ok(done),
            on_batch,
        }
    }

    /// Gives a winner its revision, its entry, its record and its event.
    fn accept(
        &mut self,
        write: Prepared,
        found: Option<Arc<Entry>>,
    ) -> (Committed, Option<Arc<Entry>>) {
        self.last += 1;
        let revision = self.last;
        // The key of an entry that is replaced lives on in its successor.
        let key = found.as_ref().map_or(write.key, |e| e.shared_key().clone());
        let now = match write.change {
            PreparedChange::Put {
                value,
                layout,
                shape,
            } => Some(Arc::new(Entry::with_layout(
                key.clone(),
                revision,
                &value,
                layout,
                shape,
            ))),
            PreparedChange::Delete => None,
        };
        self.records.push(Record {
            revision,
            prev: found.as_ref().map_or(0, |entry| entry.revision()),
            resource: write.resource.name.clone(),
            key,
            value: now.clone().map(Value::of),
        });
        let gauge = &write.resource.core.frames;
        let event = Event::new(revision, now.clone(), found.clone(), gauge)
            .expect("a deletion was judged to find something");
        let committed = Committed {
            revision,
            entry: event.entry.clone(),
            previous: found,
        };
        self.events.push((write.resource, Arc::new(event)));
        (committed, now)
    }
}
