//! Documents at paths that are not resources, added by the program that builds the server.

use crate::reply::{self, Response};
use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use std::sync::Arc;

/// A document, made anew at each request. Clients may keep it for an hour.
#[derive(Clone)]
pub struct Page {
    media_type: &'static str,
    content: Arc<dyn Fn() -> Vec<u8> + Send + Sync>,
}

impl Page {
    /// A document of a media type.
    pub fn new(
        media_type: &'static str,
        content: impl Fn() -> Vec<u8> + Send + Sync + 'static,
    ) -> Page {
        Page {
            media_type,
            content: Arc::new(content),
        }
    }

    pub(super) fn answer(&self) -> Response {
        let bytes = Bytes::from((self.content)());
        let mut response = reply::full(StatusCode::OK, self.media_type, bytes);
        response.headers_mut().insert(
            header::CACHE_CONTROL,
            HeaderValue::from_static("public, max-age=3600"),
        );
        response
    }
}

impl std::fmt::Debug for Page {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Page")
            .field("media_type", &self.media_type)
            .finish_non_exhaustive()
    }
}
