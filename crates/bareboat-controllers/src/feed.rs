//! One reader of the store's feed for all controllers. It passes every event to every listener.
//!
//! Listeners do not work themselves. They put keys into queues.

use bareboat_storage::{Event, Feed, FeedError, Resource, Store};
use std::sync::Arc;
use tokio::sync::watch;

/// How many events are read at once.
const BATCH: usize = 256;

/// Reads the feed for one controller.
pub(crate) trait Listener: Send {
    /// Looks at all objects: at the start, and after events were lost.
    ///
    /// Changes that happen during this look may arrive as events afterwards.
    fn reset(&mut self, store: &Store);

    /// Looks at one event. All controllers wait for this, so it must be quick.
    fn on_event(&mut self, resource: &Arc<Resource>, event: &Event);
}

/// Passes events to listeners until the store is closed. When this server begins to lead, they look at all objects:
/// queues of controllers that wait take no keys.
///
/// The feed begins before the look at all objects, so that no change is lost in between.
pub(crate) async fn run(
    store: Store,
    mut feed: Feed,
    mut leads: watch::Receiver<bool>,
    mut listeners: Vec<Box<dyn Listener>>,
) {
    leads.mark_unchanged();
    for listener in &mut listeners {
        listener.reset(&store);
    }
    let mut passed = 0;
    loop {
        let batch = tokio::select! {
            batch = feed.next_batch(BATCH) => batch,
            Ok(()) = leads.changed() => {
                if *leads.borrow_and_update() {
                    for listener in &mut listeners {
                        listener.reset(&store);
                    }
                }
                continue;
            }
        };
        match batch {
            Ok(batch) => {
                passed += batch.len();
                for (resource, event) in &batch {
                    for listener in &mut listeners {
                        listener.on_event(resource, event);
                    }
                }
            }
            Err(FeedError::Lagged) => {
                tracing::warn!("controllers lost events and look at all objects again");
                passed = BATCH;
                for listener in &mut listeners {
                    listener.reset(&store);
                }
            }
            Err(_) => return,
        }
        // A feed that always has more events must not keep this thread to itself. Mostly it has one, and waits for the
        // next: then yielding would only cost every write a turn of the scheduler.
        if passed >= BATCH {
            passed = 0;
            tokio::task::yield_now().await;
        }
    }
}
