//! The start of a watch from before the ring: reads pages of the log, until the watcher joins the ring.

use std::sync::Arc;
use std::task::{Context, Poll};

use super::{Page, Stage, WatchError, WatchSpec, Watcher};
use crate::backend::{BackendError, LogChange, PageLimit, Stop};
use crate::event::Event;
use crate::resource::Resource;

/// The number of changes read at once.
const PAGE: usize = 256;
/// The maximum bytes of new and previous states that are read at once. A watch whose client does not read holds one
/// page.
const PAGE_BYTES: usize = 512 << 10;

impl Watcher {
    /// Reads the log. Returns ready with 0 once the watcher has joined the ring.
    pub(super) fn poll_replay(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut Vec<Arc<Event>>,
        max: usize,
    ) -> Poll<Result<usize, WatchError>> {
        loop {
            let Stage::Replay(replay) = &mut self.stage else {
                return Poll::Ready(Ok(0));
            };
            if !replay.due.is_empty() {
                let taken = replay.due.len().min(max);
                out.extend(replay.due.drain(..taken));
                self.after = out.last().map_or(self.after, |event| event.rev);
                return Poll::Ready(Ok(taken));
            }
            if let Some(page) = &mut replay.page {
                let page = std::task::ready!(page.as_mut().poll(cx));
                replay.page = None;
                match page {
                    Ok(Ok(page)) => {
                        replay.reached = page.reached;
                        replay.due.extend(page.events);
                    }
                    Ok(Err(BackendError::Compacted { floor })) => {
                        return Poll::Ready(Err(WatchError::Expired { floor }));
                    }
                    Ok(Err(error)) => return Poll::Ready(Err(WatchError::Log(error))),
                    Err(_) => return Poll::Ready(Err(WatchError::Closed)),
                }
                continue;
            }
            let reached = replay.reached;
            if self.join(reached) {
                self.after = self.after.max(reached);
                continue;
            }
            if self.resource.core.is_closed() {
                return Poll::Ready(Err(WatchError::Closed));
            }
            let (resource, spec) = (self.resource.clone(), self.spec.clone());
            let page = async move {
                let core = resource.core.clone();
                let read = move |stop: &Stop| read_page(&resource, &spec, reached, stop);
                core.cold.run(read).await
            };
            if let Stage::Replay(replay) = &mut self.stage {
                replay.page = Some(Box::pin(page));
            }
        }
    }
}

fn read_page(
    resource: &Resource,
    spec: &WatchSpec,
    after: u64,
    stop: &Stop,
) -> Result<Page, BackendError> {
    let core = &resource.core;
    // Everything up to this revision is in the log, whatever the ring contains.
    let upto = core.visible();
    let bytes = match core.old.exceeds(core.options.past_bytes) {
        true => 1,
        false => PAGE_BYTES,
    };
    let limit = PageLimit {
        changes: PAGE,
        bytes,
    };
    let name = Some(&*resource.name);
    let page = core.backend.read_since(name, after, upto, limit, stop)?;
    let mut events = Vec::new();
    for change in page.changes {
        events.extend(event_of(resource, change)?.filter(|event| spec.wants(event)));
    }
    Ok(Page {
        events,
        reached: page.complete_to,
    })
}

fn event_of(resource: &Resource, change: LogChange) -> Result<Option<Arc<Event>>, BackendError> {
    let malformed = |error| BackendError::Failed(Box::new(error));
    let record = change.record;
    let entry = record
        .value
        .map(|value| (resource.core.old).entry(&value, &record.key, record.revision))
        .transpose()
        .map_err(malformed)?;
    let prev = change
        .previous
        .and_then(|previous| {
            let value = previous.value?;
            Some((resource.core.old).entry(&value, &record.key, previous.revision))
        })
        .transpose()
        .map_err(malformed)?;
    Ok(Event::new(record.revision, entry, prev, &resource.core.frames).map(Arc::new))
}
