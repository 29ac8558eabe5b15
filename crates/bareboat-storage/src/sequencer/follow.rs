//! Follows the writes of other stores: applies their batches, and loads the whole state again when the log has another
//! history.

use std::sync::Arc;
use std::time::Instant;

use super::{Events, Sequencer, describe};
use crate::backend::{BackendError, Record};
use crate::batch::Tail;
use crate::event::Event;
use crate::store::open;

impl Sequencer {
    /// Applies everything that is in the log now.
    pub(super) fn catch_up(&mut self) -> Result<(), BackendError> {
        loop {
            let begun = Instant::now();
            let tail = self.shared.core.backend.tail(&self.mark)?;
            let more = matches!(tail, Tail::Batches { more: true, .. } | Tail::Reload);
            self.take_in(tail)?;
            if !more {
                self.shared.core.proven_fresh(begun);
                return Ok(());
            }
        }
    }

    /// Runs the command `CatchUp`. Returns whether the log could be read.
    pub(super) fn follow(&mut self) -> bool {
        if self.shared.core.poisoned().is_some() {
            return false;
        }
        let followed = self.resolve().and_then(|()| self.catch_up());
        match &followed {
            Ok(()) => {}
            Err(
                BackendError::Unreachable(_)
                | BackendError::Busy(_)
                | BackendError::ReadOnly(_)
                | BackendError::Full(_),
            ) => {
                tracing::debug!("the log cannot be followed");
            }
            Err(error) => self.shared.core.poison(describe(error)),
        }
        self.wake_everyone();
        followed.is_ok()
    }

    /// Applies `tail`, which follows the known end of the log.
    pub(super) fn take_in(&mut self, tail: Tail) -> Result<(), BackendError> {
        let (batches, end) = match tail {
            Tail::Reload => return self.reload(),
            Tail::Batches { batches, end, .. } => (batches, end),
        };
        let taken: usize = batches.iter().map(Vec::len).sum();
        if taken > 0 {
            self.shared.core.activity.followed(taken as u64);
        }
        for records in batches {
            let next = self.mark.last + 1;
            if records
                .first()
                .is_some_and(|record| record.revision != next)
            {
                return Err(BackendError::Failed(
                    format!("the log has no revision {next}").into(),
                ));
            }
            self.mark.last += records.len() as u64;
            let mut events = self.events_of(&records)?;
            for (resource, event) in &events {
                let mut others = resource.others.lock();
                others.note(event.entry.namespace(), event.rev);
            }
            self.apply(&mut events);
        }
        if end.last > self.shared.core.visible() {
            // The last batch changed nothing that this store knows.
            self.shared.core.advance(end.last);
        }
        self.mark = end;
        self.learn_floor();
        Ok(())
    }

    fn events_of(&self, records: &[Record]) -> Result<Events, BackendError> {
        let mut events = Events::new();
        let mut overlay = ahash::AHashMap::new();
        for record in records {
            if record.cluster != self.shared.core.cluster {
                let why = format!("the logical cluster {:?} is not served", record.cluster);
                return Err(BackendError::Failed(why.into()));
            }
            let resource = self.shared.resource(&record.resource);
            let id = (resource.id, record.key.clone());
            let found = match overlay.get(&id) {
                Some(found) => Option::clone(found),
                None => resource.get(&record.key),
            };
            let value = record.value.as_ref();
            // The new entry shares the key of the entry that it replaces.
            let key = found
                .as_ref()
                .map_or(&record.key, |entry| entry.shared_key());
            let entry = value.map(|value| value.entry(key, record.revision));
            let entry = entry
                .transpose()
                .map_err(|error| BackendError::Failed(error.into()))?;
            overlay.insert(id, entry.clone());
            let gauge = &self.shared.core.frames;
            if let Some(event) = Event::new(record.revision, entry, found, gauge) {
                events.push((resource, Arc::new(event)));
            }
        }
        Ok(events)
    }

    /// Raises the floor in memory to that of the log, which other stores also raise.
    fn learn_floor(&mut self) {
        let floor = self.shared.core.backend.compacted().min(self.mark.last);
        if floor > self.shared.core.floor() {
            self.trim(floor);
        }
    }

    /// Replaces everything in memory by the content of the log. Watches, feeds and pinned lists end.
    fn reload(&mut self) -> Result<(), BackendError> {
        tracing::warn!("the log has another history than this store: loading it again");
        // A batch with an unknown outcome is in the loaded content, or will never be in the log.
        self.unresolved = None;
        self.mark = open::reload(&self.shared, &mut self.wake)?;
        self.retention.end(Instant::now(), self.mark.last);
        self.sweeping = true;
        Ok(())
    }
}
