//! The beginning of a watch that starts further back than the ring: pages of the log, until the ring takes over.

use std::sync::Arc;
use std::task::{Context, Poll};

use super::{Page, Stage, WatchError, Watcher};
use crate::backend::{BackendError, Change};
use crate::event::Event;
use crate::resource::Resource;

/// Changes read at once.
const PAGE: usize = 256;

impl Watcher {
    /// Ready with 0 once the watcher has joined the ring.
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
                let page = std::task::ready!(std::pin::Pin::new(page).poll(cx));
                replay.page = None;
                match page {
                    Ok(Ok(page)) => {
                        replay.reached = page.reached;
                        let spec = &self.spec;
                        replay
                            .due
                            .extend(page.events.into_iter().filter(|event| spec.wants(event)));
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
            let resource = self.resource.clone();
            let page = (self.resource.core.cold).run(move || read_page(&resource, reached));
            if let Stage::Replay(replay) = &mut self.stage {
                replay.page = Some(page);
            }
        }
    }
}

fn read_page(resource: &Resource, after: u64) -> Result<Page, BackendError> {
    // Everything up to here is in the log, whatever the ring still holds.
    let upto = resource.core.visible();
    let core = &resource.core;
    let changes = core
        .backend
        .read_since(Some(&resource.name), after, upto, PAGE)?;
    let full = changes.len() == PAGE;
    let reached = match changes.last() {
        Some(last) if full => last.record.revision,
        _ => upto.max(after),
    };
    let events = changes
        .into_iter()
        .filter_map(|change| event_of(resource, change).transpose())
        .collect::<Result<_, _>>()?;
    Ok(Page { events, reached })
}

fn event_of(resource: &Resource, change: Change) -> Result<Option<Arc<Event>>, BackendError> {
    let malformed = |error| BackendError::Failed(Box::new(error));
    let record = change.record;
    let entry = record
        .value
        .map(|value| value.entry(&record.key, record.revision))
        .transpose()
        .map_err(malformed)?;
    let prev = change
        .previous
        .and_then(|previous| {
            let value = previous.value?;
            Some(value.entry(&record.key, previous.revision))
        })
        .transpose()
        .map_err(malformed)?;
    Ok(Event::new(record.revision, entry, prev, &resource.core.frames).map(Arc::new))
}
