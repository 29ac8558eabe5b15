//! Flow control: how many requests may be under way at once.

use crate::reply::{Response, plain_text};
use crate::request::info::RequestInfo;
use http::{HeaderValue, StatusCode, header};
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Limits on requests under way; long-running ones do not count.
pub(crate) struct Flow {
    reading: Arc<Semaphore>,
    writing: Arc<Semaphore>,
}

impl Flow {
    /// Limits for reads and for writes.
    pub(crate) fn new(reading: usize, writing: usize) -> Flow {
        Flow {
            reading: Arc::new(Semaphore::new(reading)),
            writing: Arc::new(Semaphore::new(writing)),
        }
    }

    /// Lets a request in, or gives the answer that sends it away.
    pub(crate) fn enter(
        &self,
        info: &RequestInfo,
    ) -> Result<Option<OwnedSemaphorePermit>, Box<Response>> {
        if info.is_long_running() {
            return Ok(None);
        }
        let reads = matches!(info.verb.as_str(), "get" | "list" | "head" | "options");
        let limit = if reads { &self.reading } else { &self.writing };
        match limit.clone().try_acquire_owned() {
            Ok(permit) => Ok(Some(permit)),
            Err(_) => {
                let text = "Too many requests, please try again later.\n";
                let mut response = plain_text(StatusCode::TOO_MANY_REQUESTS, text);
                response
                    .headers_mut()
                    .insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
                Err(Box::new(response))
            }
        }
    }
}
