//! A watcher: a place in the ring of a resource, woken when something may be due to it.
//!
//! It has no queue. What it has not taken stays in the ring, and if it leaves the ring first the watcher is closed.
//! Selectors beyond one label, encodings and bookmarks are the server's.

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

/// A batch out of the ring ends with the event that makes it this large, so that a client which does not read holds little.
const BATCH_BYTES: usize = 16 << 10;

/// What a watcher wants to see.
#[derive(Clone, Debug)]
pub struct WatchSpec {
    /// Only events after this revision.
    pub after: u64,
    /// Which keys.
    pub scope: Scope,
    /// One equality term of a label selector: only events whose old or new state carries it are delivered.
    pub label: Option<(Box<str>, Box<str>)>,
}

/// Which keys of a resource a watcher sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All of them.
    All,
    /// Those of one namespace.
    Namespace(Box<str>),
    /// One key, `namespace/name` or `name`.
    Name(Box<str>),
}

impl Scope {
    /// Whether the event's key is in scope.
    pub fn holds(&self, event: &Event) -> bool {
        match self {
            Self::All => true,
            Self::Namespace(ns) => event.entry.namespace() == Some(ns),
            Self::Name(key) => event.key() == &**key,
        }
    }
}

impl WatchSpec {
    /// Everything of a resource after a revision.
    pub fn all(after: u64) -> Self {
        Self {
            after,
            scope: Scope::All,
            label: None,
        }
    }

    /// One namespace of a resource after a revision.
    pub fn namespace(after: u64, ns: impl Into<Box<str>>) -> Self {
        Self {
            scope: Scope::Namespace(ns.into()),
            ..Self::all(after)
        }
    }

    /// One object of a resource after a revision.
    pub fn name(after: u64, key: impl Into<Box<str>>) -> Self {
        Self {
            scope: Scope::Name(key.into()),
            ..Self::all(after)
        }
    }

    /// The same with a label hint.
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

/// Why a watch can't start or go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WatchError {
    /// What it should see next has been compacted: 410.
    #[error("revisions before {floor} have been compacted")]
    Expired {
        /// The oldest revision after which a watch may start.
        floor: u64,
    },
    /// It took its events too slowly, and the oldest of them left the ring.
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
    stage: Stage,
}

enum Stage {
    /// Reading the log up to where the ring begins.
    Replay(Box<Replay>),
    /// In the ring, under this number.
    Live(u32),
}

struct Replay {
    page: Option<Reading>,
    due: VecDeque<Arc<Event>>,
    reached: u64,
}

/// Events looked at under the lock at once.
const LOOK: usize = 64;
/// So many times before the thread is given to others.
const TURNS: usize = 16;

/// What a look into the ring came to.
enum Look {
    Done(Poll<Result<usize, WatchError>>),
    /// Nothing of what was looked at is wanted, and there is more.
    Nothing,
}

/// A page that is being read, or waits for its turn.
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
        };
        watcher.join(after);
        Ok(watcher)
    }

    /// Joins the ring behind `reached`, if the ring reaches back so far.
    fn join(&mut self, reached: u64) -> bool {
        let mut hub = self.resource.hub.lock();
        if reached < hub.ring.since() {
            return false;
        }
        let from = hub.ring.position_after(reached);
        let pending = (from < hub.ring.end()).then_some(from);
        self.stage = Stage::Live(hub.watchers.enter(self.spec.clone(), pending));
        true
    }

    /// Takes up to `max` due events into `out`, in order; pending, and the task will be woken, if there are none.
    ///
    /// Returns how many were added, at least one. An error ends the watch.
    pub fn poll_batch(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut Vec<Arc<Event>>,
        max: usize,
    ) -> Poll<Result<usize, WatchError>> {
        loop {
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
        // There is more to look through; others on this thread come first.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Looks through the next events in the ring, a few at a time: writers wait for this lock.
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

    /// The next due events, at least one and at most `max`. Dropping the future loses nothing.
    pub async fn next_batch(&mut self, max: usize) -> Result<Vec<Arc<Event>>, WatchError> {
        let mut out = Vec::new();
        std::future::poll_fn(|cx| self.poll_batch(cx, &mut out, max)).await?;
        Ok(out)
    }

    /// The revision up to which this watcher has seen everything: what a bookmark may say.
    pub fn progress(&self) -> u64 {
        // Read first: whatever was due up to here is already marked.
        let visible = self.resource.core.visible();
        match self.stage {
            Stage::Live(id) if self.resource.hub.lock().watchers.pending(id).is_none() => {
                visible.max(self.after)
            }
            _ => self.after,
        }
    }

    /// The resource that is watched.
    pub fn resource(&self) -> &Arc<Resource> {
        &self.resource
    }

    /// What is watched.
    pub fn spec(&self) -> &WatchSpec {
        &self.spec
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        if let Stage::Live(id) = self.stage {
            let waker = self.resource.hub.lock().watchers.leave(id);
            drop(waker);
        }
    }
}
