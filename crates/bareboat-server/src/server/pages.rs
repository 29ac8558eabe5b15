//! Documents at paths that are not resources, added by the program that builds the server.

use crate::reply::{self, Response};
use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, header};
use std::sync::Arc;

type Content = Arc<dyn Fn() -> Vec<u8> + Send + Sync>;

/// A document, made for each request. Clients may cache it for an hour, unless it also answers POST.
#[derive(Clone)]
pub struct Page {
    media_type: &'static str,
    content: Content,
    posted: Option<Content>,
}

impl Page {
    /// Returns a document of a media type.
    pub fn new(
        media_type: &'static str,
        content: impl Fn() -> Vec<u8> + Send + Sync + 'static,
    ) -> Page {
        Page {
            media_type,
            content: Arc::new(content),
            posted: None,
        }
    }

    /// Does something when the path is posted to, and answers with a document. It must not block. The body of the request
    /// is not read.
    #[must_use]
    pub fn on_post(mut self, act: impl Fn() -> Vec<u8> + Send + Sync + 'static) -> Page {
        self.posted = Some(Arc::new(act));
        self
    }

    /// Whether it answers requests of a method.
    pub(super) fn accepts(&self, method: &Method) -> bool {
        matches!(*method, Method::GET | Method::HEAD)
            || *method == Method::POST && self.posted.is_some()
    }

    pub(super) fn answer(&self, method: &Method) -> Response {
        let (content, cached) = match &self.posted {
            Some(act) if *method == Method::POST => (act, "no-store"),
            Some(_) => (&self.content, "no-store"),
            None => (&self.content, "public, max-age=3600"),
        };
        let bytes = Bytes::from(content());
        let mut response = reply::full(StatusCode::OK, self.media_type, bytes);
        let cached = HeaderValue::from_static(cached);
        response.headers_mut().insert(header::CACHE_CONTROL, cached);
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
