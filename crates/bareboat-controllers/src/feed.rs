//! One reader of the store's feed for all controllers: who listens is told of every change and notes what to look at.
//!
//! Listeners do no work themselves; they put keys into queues.

use bareboat_storage::{Event, FeedError, Resource, Store};
use std::sync::Arc;

/// How many events are taken at once.
const BATCH: usize = 256;

/// Somebody who wants to know what changes.
pub(crate) trait Listener: Send {
    /// Looks at everything there is: at the start, and when events were missed.
    ///
    /// Changes that happened during the look may be told once more afterwards.
    fn reset(&mut self, store: &Store);

    /// One change. Be quick.
    fn heard(&mut self, resource: &Arc<Resource>, event: &Event);
}

/// Tells listeners of every change until the store is closed.
pub(crate) async fn run(store: Store, mut listeners: Vec<Box<dyn Listener>>) {
    // Started before the look at everything, so that nothing falls in between.
    let mut feed = match store.feed(None) {
        Ok(feed) => feed,
        Err(error) => {
            tracing::error!(%error, "controllers have no feed");
            return;
        }
    };
    for listener in &mut listeners {
        listener.reset(&store);
    }
    loop {
        match feed.next_batch(BATCH).await {
            Ok(batch) => {
                for (resource, event) in &batch {
                    for listener in &mut listeners {
                        listener.heard(resource, event);
                    }
                }
            }
            Err(FeedError::Lagged) => {
                tracing::warn!("controllers fell behind and look at everything again");
                for listener in &mut listeners {
                    listener.reset(&store);
                }
            }
            Err(_) => return,
        }
        // A feed that always has more would keep this thread to itself.
        tokio::task::yield_now().await;
    }
}
