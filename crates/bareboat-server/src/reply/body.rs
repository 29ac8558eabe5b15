//! The body of a response: empty, bytes, or a stream.

use crate::audit::Audited;
use crate::metrics::{Histogram, Running};
use crate::request::body::BodyError;
use crate::server::state::Counted;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// A stream of frames, such as a list, a watch, or a proxied answer.
pub(crate) type Stream = Pin<Box<dyn http_body::Body<Data = Bytes, Error = BodyError> + Send>>;

/// The body of a response.
pub struct Body {
    inner: Inner,
    meter: Option<Box<Meter>>,
    /// The request is over when the body is.
    audited: Option<Arc<Audited>>,
    /// A shutdown waits for the body.
    running: Option<Counted>,
}

bareboat_api::opaque_debug!(Body);

/// Measures a stream until it ends or is dropped.
pub(crate) struct Meter {
    sizes: Option<Arc<Histogram>>,
    sent: u64,
    /// Counts the request as running.
    _running: Option<Running>,
}

impl Meter {
    /// Measures how many bytes are sent.
    pub(crate) fn sized(sizes: Arc<Histogram>) -> Meter {
        Meter {
            sizes: Some(sizes),
            sent: 0,
            _running: None,
        }
    }

    /// Measures how long the stream is open.
    pub(crate) fn lasting(running: Running) -> Meter {
        Meter {
            sizes: None,
            sent: 0,
            _running: Some(running),
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        if let Some(sizes) = &self.sizes {
            sizes.observe(self.sent);
        }
    }
}

enum Inner {
    Empty,
    Full(Bytes),
    Stream { stream: Stream, held: usize },
}

impl Body {
    fn of(inner: Inner) -> Body {
        Body {
            inner,
            meter: None,
            audited: None,
            running: None,
        }
    }

    /// Attaches a meter to the body, if it is a stream.
    pub(crate) fn measure(&mut self, meter: Meter) {
        if matches!(self.inner, Inner::Stream { .. }) {
            self.meter = Some(Box::new(meter));
        }
    }

    /// Keeps the record of a request open for as long as the body lives.
    pub(crate) fn record(&mut self, audited: Arc<Audited>) {
        self.audited = Some(audited);
    }

    /// Counts the request as running until the body ends or is dropped, if the body is a stream.
    pub(crate) fn keep_running(&mut self, running: Counted) {
        if matches!(self.inner, Inner::Stream { .. }) {
            self.running = Some(running);
        }
    }

    /// Returns an empty body.
    pub fn empty() -> Body {
        Body::of(Inner::Empty)
    }

    /// Returns a body in one piece.
    pub fn full(bytes: impl Into<Bytes>) -> Body {
        Body::of(Inner::Full(bytes.into()))
    }

    /// Returns a body that is a stream.
    pub fn stream(
        body: impl http_body::Body<Data = Bytes, Error = BodyError> + Send + 'static,
    ) -> Body {
        Body::stream_holding(body, 0)
    }

    /// Returns a body that is a stream and holds so many bytes from the start.
    pub(crate) fn stream_holding(
        body: impl http_body::Body<Data = Bytes, Error = BodyError> + Send + 'static,
        held: usize,
    ) -> Body {
        Body::of(Inner::Stream {
            stream: Box::pin(body),
            held,
        })
    }

    /// Returns how many bytes the body holds before it is polled.
    pub(crate) fn held(&self) -> usize {
        match &self.inner {
            Inner::Empty => 0,
            Inner::Full(bytes) => bytes.len(),
            Inner::Stream { held, .. } => *held,
        }
    }

    /// Returns the bytes, if they are in one piece.
    pub(crate) fn as_full(&self) -> Option<&Bytes> {
        match &self.inner {
            Inner::Full(bytes) => Some(bytes),
            _ => None,
        }
    }
}

impl Default for Body {
    fn default() -> Self {
        Body::empty()
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let Body { inner, meter, .. } = self.get_mut();
        match inner {
            Inner::Empty => Poll::Ready(None),
            Inner::Full(bytes) => {
                let bytes = std::mem::take(bytes);
                *inner = Inner::Empty;
                Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
            }
            Inner::Stream { stream, .. } => {
                let polled = stream.as_mut().poll_frame(cx);
                if let (Poll::Ready(Some(Ok(frame))), Some(meter)) = (&polled, meter) {
                    meter.sent += frame.data_ref().map_or(0, |data| data.len() as u64);
                }
                polled
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.inner {
            Inner::Empty => true,
            Inner::Full(bytes) => bytes.is_empty(),
            Inner::Stream { stream, .. } => stream.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.inner {
            Inner::Empty => SizeHint::with_exact(0),
            Inner::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Inner::Stream { stream, .. } => stream.size_hint(),
        }
    }
}
