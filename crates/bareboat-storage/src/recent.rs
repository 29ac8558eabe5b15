//! The recent events of all resources in one order: the source of feeds, and the limit of the
//! rings.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::event::Event;
use crate::options::StoreOptions;
use crate::resource::Resource;
use crate::store::Shared;

/// Recent events over all resources, oldest first.
pub(crate) struct Recent {
    events: VecDeque<(Arc<Resource>, Arc<Event>)>,
    first: u64,
    since: u64,
    bytes: usize,
    /// Events with lower numbers have no frames.
    framed_from: u64,
    /// The wakers of waiting feeds, by the number of the feed.
    parked: Vec<(u64, Waker)>,
    next_feed: u64,
}

/// The number of recent events that may keep encoded frames.
const FRAMED: u64 = 1024;

impl Recent {
    pub(crate) fn new(since: u64) -> Self {
        Self {
            events: VecDeque::new(),
            first: 0,
            since,
            bytes: 0,
            framed_from: 0,
            parked: Vec::new(),
            next_feed: 0,
        }
    }

    fn end(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    /// Appends a batch, drops the oldest events while the budget is exceeded, and collects the
    /// feeds to wake.
    pub(crate) fn push(
        &mut self,
        batch: &[(Arc<Resource>, Arc<Event>)],
        options: &StoreOptions,
        wake: &mut Vec<Waker>,
    ) {
        self.bytes += batch.iter().map(|(_, e)| e.weight()).sum::<usize>();
        self.events.extend(batch.iter().cloned());
        while self.bytes > options.ring_bytes && self.events.len() > batch.len() {
            self.pop(options.ring_floor_bytes);
        }
        self.drop_frames(batch, options);
        self.wake_all(wake);
    }

    /// Drops all events up to `revision`. Returns them, so that the caller can free them elsewhere: freeing takes long.
    pub(crate) fn trim(&mut self, revision: u64) -> Vec<Arc<Event>> {
        let mut gone = Vec::new();
        while self.events.front().is_some_and(|(_, e)| e.rev <= revision) {
            gone.extend(self.pop(0));
        }
        if self.events.is_empty() {
            self.events.shrink_to_fit();
        }
        gone
    }

    /// Drops all events. Feeds get an error, because they missed events.
    pub(crate) fn restart(&mut self, since: u64, wake: &mut Vec<Waker>) {
        // One more than the number of events: a feed that had taken all events missed something, too.
        self.first = self.end() + 1;
        self.framed_from = self.first;
        self.since = since;
        self.bytes = 0;
        self.events = VecDeque::new();
        self.wake_all(wake);
    }

    fn pop(&mut self, keep: usize) -> Option<Arc<Event>> {
        let (resource, event) = self.events.pop_front()?;
        self.first += 1;
        self.since = event.rev;
        self.bytes -= event.weight();
        resource.hub.lock().ring.trim(event.rev, keep);
        Some(event)
    }

    /// Drops the frames of older events. Frames are for watchers that keep up; slow watchers encode events again.
    fn drop_frames(&mut self, batch: &[(Arc<Resource>, Arc<Event>)], options: &StoreOptions) {
        let settled = self.end() - batch.len() as u64;
        self.framed_from = self.framed_from.max(self.first);
        while self.framed_from < settled
            && (self.framed_from + FRAMED < self.end()
                || batch[0].0.core.frames.held() > options.frame_bytes)
        {
            let at = (self.framed_from - self.first) as usize;
            self.events[at].1.drop_frames();
            self.framed_from += 1;
        }
    }

    pub(crate) fn wake_all(&mut self, wake: &mut Vec<Waker>) {
        wake.extend(self.parked.drain(..).map(|(_, waker)| waker));
    }
}

/// All events of all resources, in order of revision, for controllers and indexes within the
/// process.
pub struct Feed {
    shared: Arc<Shared>,
    next: u64,
    id: u64,
}

opaque_debug!(Feed);

/// The error of a feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FeedError {
    /// Events were missed. The feed continues with new events; the caller must scan the resources
    /// again.
    #[error("the feed was read too slowly")]
    Lagged,
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

impl Feed {
    pub(crate) fn start(shared: Arc<Shared>, after: Option<u64>) -> Result<Self, FeedError> {
        let mut recent = shared.recent.lock();
        let next = match after {
            None => recent.end(),
            Some(after) if after < recent.since => return Err(FeedError::Lagged),
            Some(after) => {
                let at = recent.events.partition_point(|(_, e)| e.rev <= after);
                recent.first + at as u64
            }
        };
        let id = recent.next_feed;
        recent.next_feed += 1;
        drop(recent);
        Ok(Self { shared, next, id })
    }

    /// Takes up to `max` events into `out`. If there are no events, returns pending and wakes the task later.
    pub fn poll_batch(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut Vec<(Arc<Resource>, Arc<Event>)>,
        max: usize,
    ) -> Poll<Result<usize, FeedError>> {
        let mut recent = self.shared.recent.lock();
        if self.next < recent.first {
            self.next = recent.end();
            return Poll::Ready(Err(FeedError::Lagged));
        }
        let from = (self.next - recent.first) as usize;
        let taken = (recent.events.len() - from).min(max);
        if taken > 0 {
            out.extend(recent.events.range(from..from + taken).cloned());
            self.next += taken as u64;
            return Poll::Ready(Ok(taken));
        }
        if self.shared.core.is_closed() {
            return Poll::Ready(Err(FeedError::Closed));
        }
        recent.parked.retain(|(id, _)| *id != self.id);
        recent.parked.push((self.id, cx.waker().clone()));
        Poll::Pending
    }

    /// Returns the next events, at least one and at most `max`. Dropping the future loses no
    /// events.
    pub async fn next_batch(
        &mut self,
        max: usize,
    ) -> Result<Vec<(Arc<Resource>, Arc<Event>)>, FeedError> {
        let mut out = Vec::new();
        std::future::poll_fn(|cx| self.poll_batch(cx, &mut out, max)).await?;
        Ok(out)
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        let mut recent = self.shared.recent.lock();
        recent.parked.retain(|(id, _)| *id != self.id);
    }
}
