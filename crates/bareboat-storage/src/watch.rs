//! A watcher: a position in the ring of a resource, woken when an event may be due.
//!
//! A watcher has no queue. Events that it has not taken stay in the ring; if such an event leaves the ring, the watcher
//! is closed. The server handles selectors beyond one label, encodings and bookmarks.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::backend::BackendError;
use crate::cold::NoReader;
use crate::event::Event;
use crate::resource::Resource;

pub(crate) mod index;
mod replay;

/// The size limit of a batch from the ring: the batch ends with the event that reaches it. So a client that does not
/// read uses little memory.
const BATCH_BYTES: usize = 16 << 10;

/// The events that a watcher receives.
#[derive(Clone, Debug)]
pub struct WatchSpec {
    /// Only events after this revision.
    pub after: u64,
    /// The keys whose events are delivered.
    pub scope: Scope,
    /// An equality term of a label selector. Only events whose old or new state has this label are delivered.
    pub label: Option<(Box<str>, Box<str>)>,
}

/// The keys of a resource that a watcher receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All keys.
    All,
    /// The keys of one namespace.
    Namespace(Box<str>),
    /// One key, `namespace/name` or `name`.
    Name(Box<str>),
}

impl Scope {
    /// Returns whether the event's key is in scope.
    pub fn holds(&self, event: &Event) -> bool {
        match self {
            Self::All => true,
            Self::Namespace(ns) => event.entry.namespace() == Some(ns),
            Self::Name(key) => event.key() == &**key,
        }
    }
}

impl WatchSpec {
    /// Selects all events of a resource after a revision.
    pub fn all(after: u64) -> Self {
        Self {
            after,
            scope: Scope::All,
            label: None,
        }
    }

    /// Selects one namespace of a resource after a revision.
    pub fn namespace(after: u64, ns: impl Into<Box<str>>) -> Self {
        Self {
            scope: Scope::Namespace(ns.into()),
            ..Self::all(after)
        }
    }

    /// Selects one object of a resource after a revision.
    pub fn name(after: u64, key: impl Into<Box<str>>) -> Self {
        Self {
            scope: Scope::Name(key.into()),
            ..Self::all(after)
        }
    }

    /// Adds an equality term of a label selector.
    pub fn with_label(self, key: impl Into<Box<str>>, value: impl Into<Box<str>>) -> Self {
        Self {
            label: Some((key.into(), value.into())),
            ..self
        }
    }

    fn wants(&self, event: &Event) -> bool {
        self.scope.holds(event)
            && self.label.as_ref().is_none_or(|(key, value)| {
                std::iter::once(&event.entry)
                    .chain(&event.prev)
                    .any(|entry| entry.facets().label(key) == Some(value))
            })
    }
}

/// The error of a watch.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WatchError {
    /// The next events are compacted: 410.
    #[error("revisions before {floor} have been compacted")]
    Expired {
        /// The oldest revision after which a watch may start.
        floor: u64,
    },
    /// The watcher was too slow, and its oldest events left the ring.
    #[error("the watcher was too slow")]
    Lagged,
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
    /// The log could not be read.
    #[error("the log could not be read")]
    Log(#[source] BackendError),
}

/// A watch of one resource.
pub struct Watcher {
    resource: Arc<Resource>,
    spec: Arc<WatchSpec>,
    after: u64,
    /// The number of reloads of the store when the watch began.
    reloads: u64,
    stage: Stage,
}

opaque_debug!(Watcher);

enum Stage {
    /// The watcher reads the log up to the start of the ring.
    Replay(Box<Replay>),
    /// The watcher is registered at the ring, under this number.
    Live(u32),
}

struct Replay {
    page: Option<Reading>,
    due: VecDeque<Arc<Event>>,
    reached: u64,
}

/// The number of events visited under the lock at once.
const LOOK: usize = 64;
/// The number of such visits after which the task yields.
const TURNS: usize = 16;

/// The result of a visit to the ring.
enum Look {
    Done(Poll<Result<usize, WatchError>>),
    /// No visited event matches, and there are more events.
    Nothing,
}

/// The future of a page that is being read or queued.
type Reading =
    Pin<Box<dyn Future<Output = Result<Result<Page, BackendError>, NoReader>> + Send + Sync>>;

/// Events read from the log, complete up to `reached`.
struct Page {
    events: Vec<Arc<Event>>,
    reached: u64,
}

impl Watcher {
    pub(crate) fn start(resource: Arc<Resource>, spec: WatchSpec) -> Result<Self, WatchError> {
        let after = spec.after;
        // Read the number first: a later reload raises the floor before it increases the number.
        let reloads = resource.core.reloads();
        let floor = resource.core.floor();
        if after < floor {
            return Err(WatchError::Expired { floor });
        }
        let spec = Arc::new(spec);
        let mut watcher = Self {
            stage: Stage::Replay(Box::new(Replay {
                page: None,
                due: VecDeque::new(),
                reached: after,
            })),
            resource,
            spec,
            after,
            reloads,
        };
        watcher.join(after);
        Ok(watcher)
    }

    /// Joins the ring after `reached`, if the ring reaches back that far. Returns whether it does.
    fn join(&mut self, reached: u64) -> bool {
        let mut hub = self.resource.hub.lock();
        if reached < hub.ring.since() {
            return false;
        }
        let from = hub.ring.position_after(reached);
        let pending = (from < hub.ring.end()).then_some(from);
        self.stage = Stage::Live(hub.watchers.enter(self.spec.clone(), pending));
        drop(hub);
        self.resource.core.count_watcher(true);
        true
    }

    /// Takes up to `max` due events into `out`, in order. If there are no due events, returns pending and wakes the
    /// task later.
    ///
    /// Returns the number of added events, at least one. An error ends the watch.
    pub fn poll_batch(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut Vec<Arc<Event>>,
        max: usize,
    ) -> Poll<Result<usize, WatchError>> {
        loop {
            if self.resource.core.reloads() != self.reloads {
                let floor = self.resource.core.floor();
                return Poll::Ready(Err(WatchError::Expired { floor }));
            }
            match self.stage {
                Stage::Live(id) => return self.poll_ring(id, cx, out, max),
                Stage::Replay(_) => match self.poll_replay(cx, out, max) {
                    Poll::Ready(Ok(0)) => continue,
                    other => return other,
                },
            }
        }
    }

    fn poll_ring(
        &mut self,
        id: u32,
        cx: &mut Context<'_>,
        out: &mut Vec<Arc<Event>>,
        max: usize,
    ) -> Poll<Result<usize, WatchError>> {
        for _ in 0..TURNS {
            match self.look(id, cx, out, max) {
                Look::Done(outcome) => return outcome,
                Look::Nothing => {}
            }
        }
        // There are more events to visit; other tasks of this thread run first.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Visits the next events in the ring, a few at a time, because writers wait for this lock.
    fn look(
        &mut self,
        id: u32,
        cx: &mut Context<'_>,
        out: &mut Vec<Arc<Event>>,
        max: usize,
    ) -> Look {
        let before = out.len();
        // Declared before the guard, so that a replaced waker is dropped outside the lock.
        let _replaced;
        let mut hub = self.resource.hub.lock();
        let hub = &mut *hub;
        if let Some(from) = hub.watchers.pending(id) {
            if from < hub.ring.first() {
                return Look::Done(Poll::Ready(Err(WatchError::Lagged)));
            }
            let mut next = from;
            let mut bytes = 0;
            for event in hub.ring.from(from).take(LOOK) {
                if out.len() - before >= max || bytes >= BATCH_BYTES {
                    break;
                }
                next += 1;
                if event.rev > self.after && self.spec.wants(event) {
                    self.after = event.rev;
                    bytes += event.weight();
                    out.push(event.clone());
                }
            }
            let rest = (next < hub.ring.end()).then_some(next);
            hub.watchers.set_pending(id, rest);
            if out.len() > before {
                return Look::Done(Poll::Ready(Ok(out.len() - before)));
            }
            if rest.is_some() {
                return Look::Nothing;
            }
        }
        if self.resource.core.is_closed() {
            return Look::Done(Poll::Ready(Err(WatchError::Closed)));
        }
        _replaced = hub.watchers.park(id, cx.waker());
        Look::Done(Poll::Pending)
    }

    /// Returns the next due events, at least one and at most `max`. Dropping the future loses no
    /// events.
    pub async fn next_batch(&mut self, max: usize) -> Result<Vec<Arc<Event>>, WatchError> {
        let mut out = Vec::new();
        std::future::poll_fn(|cx| self.poll_batch(cx, &mut out, max)).await?;
        Ok(out)
    }

    /// Returns the revision up to which this watcher has seen everything, for bookmarks.
    pub fn progress(&self) -> u64 {
        // Read the counter first: all due events up to this revision are already marked.
        let visible = self.resource.core.visible();
        match self.stage {
            Stage::Live(id) if self.resource.hub.lock().watchers.pending(id).is_none() => {
                visible.max(self.after)
            }
            _ => self.after,
        }
    }

    /// Returns the watched resource.
    pub fn resource(&self) -> &Arc<Resource> {
        &self.resource
    }

    /// Returns the spec of the watch.
    pub fn spec(&self) -> &WatchSpec {
        &self.spec
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        if let Stage::Live(id) = self.stage {
            let waker = self.resource.hub.lock().watchers.leave(id);
            drop(waker);
            self.resource.core.count_watcher(false);
        }
    }
}
