//! The body of a response: nothing, bytes, or a stream.

use crate::request::body::BodyError;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};

/// A stream of frames, such as a list, a watch, or what another server says.
pub(crate) type Stream = Pin<Box<dyn http_body::Body<Data = Bytes, Error = BodyError> + Send>>;

/// The body of a response.
pub struct Body(Inner);

enum Inner {
    Empty,
    Full(Bytes),
    Stream { stream: Stream, held: usize },
}

impl Body {
    /// No body.
    pub fn empty() -> Body {
        Body(Inner::Empty)
    }

    /// A body in one piece.
    pub fn full(bytes: impl Into<Bytes>) -> Body {
        Body(Inner::Full(bytes.into()))
    }

    /// A body that comes bit by bit.
    pub fn stream(
        body: impl http_body::Body<Data = Bytes, Error = BodyError> + Send + 'static,
    ) -> Body {
        Body::stream_holding(body, 0)
    }

    /// A body that comes bit by bit and holds so many bytes from the beginning.
    pub(crate) fn stream_holding(
        body: impl http_body::Body<Data = Bytes, Error = BodyError> + Send + 'static,
        held: usize,
    ) -> Body {
        Body(Inner::Stream {
            stream: Box::pin(body),
            held,
        })
    }

    /// How many bytes it holds before anything is asked of it.
    pub(crate) fn held(&self) -> usize {
        match &self.0 {
            Inner::Empty => 0,
            Inner::Full(bytes) => bytes.len(),
            Inner::Stream { held, .. } => *held,
        }
    }

    /// The bytes, where they are in one piece.
    pub(crate) fn as_full(&self) -> Option<&Bytes> {
        match &self.0 {
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
        let inner = &mut self.get_mut().0;
        match inner {
            Inner::Empty => Poll::Ready(None),
            Inner::Full(bytes) => {
                let bytes = std::mem::take(bytes);
                *inner = Inner::Empty;
                Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
            }
            Inner::Stream { stream, .. } => stream.as_mut().poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Inner::Empty => true,
            Inner::Full(bytes) => bytes.is_empty(),
            Inner::Stream { stream, .. } => stream.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Inner::Empty => SizeHint::with_exact(0),
            Inner::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Inner::Stream { stream, .. } => stream.size_hint(),
        }
    }
}
