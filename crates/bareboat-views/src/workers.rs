//! Threads for calls of the shelf, which block: so many at once, and interrupted when their request is gone.

use bareboat_api::Status;
use bareboat_api::interrupt::Interrupt;
use bareboat_shelf::ShelfError;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Runs calls of the shelf.
#[derive(Clone, Debug)]
pub(crate) struct Workers(Arc<Semaphore>);

/// Interrupts a call when it is dropped.
struct Waiting(Interrupt);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.request();
    }
}

impl Workers {
    pub(crate) fn new(most: usize) -> Workers {
        Workers(Arc::new(Semaphore::new(most.max(1))))
    }

    /// Runs a call on a thread when there is a place.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        call: impl FnOnce() -> Result<T, ShelfError> + Send + 'static,
    ) -> Result<T, Status> {
        let place = self.0.clone().acquire_owned().await;
        let place = place.map_err(|_| Status::unavailable("the server is stopping"))?;
        let waiting = Waiting(Interrupt::default());
        let interrupt = waiting.0.clone();
        let work = move || {
            let _place = place;
            interrupt.watch(call)
        };
        let done = tokio::task::spawn_blocking(work).await;
        drop(waiting);
        match done {
            Ok(result) => result.map_err(status),
            Err(error) => Err(Status::internal("a search failed").caused_by(error)),
        }
    }
}

/// Returns the answer for an error of the shelf.
pub(crate) fn status(error: ShelfError) -> Status {
    match error {
        ShelfError::Query(why) => Status::bad_request(why),
        error @ ShelfError::TooLong { .. } => {
            Status::new(504, "Timeout", format!("Timeout: {error}"))
        }
        error @ ShelfError::Unreachable(_) => {
            Status::unavailable("the index of the fleet cannot be reached at the moment")
                .retry_after(1)
                .caused_by(error)
        }
        error => Status::internal("the index of the fleet failed").caused_by(error),
    }
}
