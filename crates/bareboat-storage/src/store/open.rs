//! Opening a store: from the log to maps and rings, then the sequencer starts.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Shared, follow, run};
use crate::backend::{Backend, BackendError, Record, Writers};
use crate::core::Core;
use crate::event::Event;
use crate::layout::LayoutError;
use crate::options::StoreOptions;
use crate::queue::Queue;
use crate::recent::Recent;
use crate::sequencer::Sequencer;

/// Why a store can't be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The log can't be read.
    #[error("the log can't be read")]
    Log(#[from] BackendError),
    /// The log holds something that is not an object.
    #[error("revision {revision} ({resource} {key}) does not hold an object")]
    Malformed {
        /// Its revision.
        revision: u64,
        /// Its resource.
        resource: Arc<str>,
        /// Its key.
        key: Arc<str>,
        /// What was missed.
        #[source]
        source: LayoutError,
    },
    /// A thread could not be started.
    #[error("no thread for the log")]
    Thread(#[source] std::io::Error),
}

pub(super) fn open(
    backend: Arc<dyn Backend>,
    options: StoreOptions,
) -> Result<Arc<Shared>, OpenError> {
    let last = backend.last_revision()?;
    let writers = backend.writers();
    let floor = backend.compacted();
    let preload_after = floor.max(last.saturating_sub(options.ring_preload));
    let core = Arc::new(Core::new(backend, options, last, preload_after));
    let shared = Arc::new(Shared {
        queue: Queue::new(core.options.max_queue),
        recent: parking_lot::Mutex::new(Recent::new(preload_after)),
        resources: Default::default(),
        numbered: Default::default(),
        core,
    });
    let mut failed = None;
    shared.core.backend.load(preload_after, &mut |record| {
        // What others wrote since the last revision was read is followed, not loaded.
        if failed.is_none() && record.revision <= last {
            failed = take_in(&shared, record, preload_after).err();
        }
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    let sequencer = Sequencer::new(shared.clone());
    let inside = shared.clone();
    spawn("bareboat-log", move || run(sequencer, inside))?;
    if writers == Writers::Many {
        let inside = shared.clone();
        spawn("bareboat-follow", move || follow(inside))?;
    }
    Ok(shared)
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<(), OpenError> {
    std::thread::Builder::new()
        .name(name.into())
        .spawn(body)
        .map(drop)
        .map_err(OpenError::Thread)
}

fn take_in(shared: &Shared, record: Record, preload_after: u64) -> Result<(), OpenError> {
    let resource = shared.resource(&record.resource);
    let revision = record.revision;
    let value = record.value.as_ref();
    let entry = value
        .map(|value| value.entry(&record.key, revision))
        .transpose()
        .map_err(|source| OpenError::Malformed {
            revision,
            resource: record.resource.clone(),
            key: record.key.clone(),
            source,
        })?;
    if entry.as_ref().is_some_and(|entry| entry.is_damaged()) {
        shared.core.damaged.store(true, Ordering::Relaxed);
    }
    let previous = resource.load(entry.clone(), &record.key, revision);
    if revision <= preload_after {
        return Ok(());
    }
    let mut hub = resource.hub.lock();
    if let Some(event) = Event::new(revision, entry, previous, &shared.core.frames) {
        let event = Arc::new(event);
        hub.ring.push(event.clone());
        drop(hub);
        let batch = [(resource, event)];
        let options = &shared.core.options;
        (shared.recent.lock()).push(&batch, options, &mut Vec::new());
    }
    Ok(())
}
