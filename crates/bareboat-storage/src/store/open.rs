//! Opens a store: loads maps and rings from the log, then starts the sequencer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use std::task::Waker;

use ahash::AHashMap;

use super::{Shared, follow, run};
use crate::backend::{Backend, BackendError, Record};
use crate::barrier::Barrier;
use crate::batch::Mark;
use crate::core::Core;
use crate::entry::Entry;
use crate::event::Event;
use crate::layout::LayoutError;
use crate::options::StoreOptions;
use crate::queue::Queue;
use crate::recent::Recent;
use crate::sequencer::Sequencer;

/// The error of opening a store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The log cannot be read.
    #[error("the log cannot be read")]
    Log(#[from] BackendError),
    /// The log is incomplete, because a restore was interrupted.
    #[error("a restore into this store was interrupted: run it again")]
    Incomplete,
    /// The value of a record is not an object.
    #[error("revision {revision} ({resource} {key}) is not an object")]
    Malformed {
        /// The revision of the record.
        revision: u64,
        /// The resource of the record, such as `apps/deployments`.
        resource: Arc<str>,
        /// The key of the record, `namespace/name` or `name`.
        key: Arc<str>,
        /// The reason why the value is not an object.
        #[source]
        source: LayoutError,
    },
    /// A record belongs to a logical cluster other than the default one.
    #[error(
        "revision {revision} belongs to the logical cluster {cluster:?}, which this version does not serve; use the version that wrote it"
    )]
    Cluster {
        /// The revision of the record.
        revision: u64,
        /// The logical cluster.
        cluster: Arc<str>,
    },
    /// A thread could not be started.
    #[error("cannot start a thread for the log")]
    Thread(#[source] std::io::Error),
}

pub(super) fn open(
    backend: Arc<dyn Backend>,
    options: StoreOptions,
) -> Result<Arc<Shared>, OpenError> {
    if !backend.is_complete()? {
        return Err(OpenError::Incomplete);
    }
    let last = backend.mark()?.last;
    let floor = backend.compacted();
    let preload_after = floor.max(last.saturating_sub(options.ring_preload));
    let core = Arc::new(Core::new(backend, options, last, preload_after));
    let shared = Arc::new(Shared {
        queue: Queue::new(core.options.max_queue),
        barrier: Barrier::default(),
        asked: AtomicBool::new(false),
        wanted: AtomicU64::new(0),
        recent: parking_lot::Mutex::new(Recent::new(preload_after)),
        resources: Default::default(),
        numbered: Default::default(),
        core,
    });
    let mut failed = None;
    let mark = shared.core.backend.load(preload_after, &mut |record| {
        if failed.is_none() {
            failed = take_in(&shared, record, preload_after).err();
        }
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    // Another store may have raised the floor before everything was read.
    let floor = shared.core.backend.compacted().min(mark.last);
    shared.core.raise_floor(floor);
    shared.core.advance(mark.last);
    let sequencer = Sequencer::new(shared.clone(), mark);
    let inside = shared.clone();
    spawn("bareboat-log", move || run(sequencer, inside))?;
    if shared.core.shared {
        let inside = shared.clone();
        spawn("bareboat-follow", move || follow::follow(inside))?;
        let inside = shared.clone();
        spawn("bareboat-fresh", move || {
            let core = &inside.core;
            inside.barrier.serve(&*core.backend, &core.activity);
        })?;
    }
    Ok(shared)
}

/// Replaces everything in memory by the current content of the log, and collects the wakers of all watches.
pub(crate) fn reload(shared: &Shared, wake: &mut Vec<Waker>) -> Result<Mark, BackendError> {
    let core = &shared.core;
    let mut loaded: AHashMap<Arc<str>, Vec<Arc<Entry>>> = AHashMap::new();
    let mut failed = None;
    // Load only the live state: there is no history before it.
    let mark = core.backend.load(u64::MAX >> 1, &mut |record| {
        let Some(value) = record.value.filter(|_| !record.resource.is_empty()) else {
            return;
        };
        match value.entry(&record.key, record.revision) {
            Ok(entry) => loaded.entry(record.resource).or_default().push(entry),
            Err(error) => failed = Some(error),
        }
    })?;
    if let Some(error) = failed {
        return Err(BackendError::Failed(error.into()));
    }
    // Counted before the first watcher is woken, so that every earlier watch ends.
    core.reloaded(mark.last);
    core.pins.lock().clear();
    for name in loaded.keys() {
        shared.resource(name);
    }
    for resource in shared.resources() {
        let entries = loaded.remove(&resource.name).unwrap_or_default();
        resource.others.lock().note_all(mark.last);
        resource.replace(entries, mark.last, wake);
    }
    shared.recent.lock().restart(mark.last, wake);
    core.advance(mark.last);
    Ok(mark)
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<(), OpenError> {
    std::thread::Builder::new()
        .name(name.into())
        .spawn(body)
        .map(drop)
        .map_err(OpenError::Thread)
}

fn take_in(shared: &Shared, record: Record, preload_after: u64) -> Result<(), OpenError> {
    // This is the record of an epoch, which is not an object.
    if record.resource.is_empty() {
        return Ok(());
    }
    if record.cluster != shared.core.cluster {
        return Err(OpenError::Cluster {
            revision: record.revision,
            cluster: record.cluster,
        });
    }
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
