//! The body of a list: frames made as the client takes them, so that memory does not grow with the list.

use super::items::Items;
use crate::reply::{self, Body, Response};
use crate::request::body::BodyError;
use bareboat_api::Status;
use bareboat_api::kind::BoxFuture;
use bytes::{Bytes, BytesMut};
use http::{HeaderValue, StatusCode, header};
use http_body::Frame;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A frame an object costs five times as much on HTTP/2.
const FRAME: usize = 64 * 1024;
/// Lists up to this size are sent in one piece with their length.
const WHOLE: usize = 128 * 1024;

/// A list on its way out.
pub(super) struct ListBody {
    items: Items,
    head: Vec<u8>,
    tail: &'static [u8],
}

impl ListBody {
    pub(super) fn new(items: Items, head: Vec<u8>, tail: &'static [u8]) -> ListBody {
        ListBody { items, head, tail }
    }

    /// Begins the answer. Whatever fails in the first frames still becomes a Status.
    pub(super) async fn respond(mut self, content_type: &'static str) -> Result<Response, Status> {
        let mut start = BytesMut::from(&self.head[..]);
        while start.len() < WHOLE {
            match self.items.next_frame(FRAME).await? {
                Some(frame) => start.extend_from_slice(&frame),
                None => {
                    start.extend_from_slice(self.tail);
                    return Ok(reply::full(StatusCode::OK, content_type, start.freeze()));
                }
            }
        }
        let stream = Stream {
            ready: Some(start.freeze()),
            next: self.step(),
        };
        let mut response = http::Response::new(Body::stream(stream));
        response
            .headers_mut()
            .insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        Ok(response)
    }

    /// Makes the next frame; gives the list back unless it was the last.
    fn step(mut self) -> Step {
        Box::pin(async move {
            match self.items.next_frame(FRAME).await {
                Ok(Some(frame)) => Ok((frame, Some(self))),
                Ok(None) => Ok((Bytes::from_static(self.tail), None)),
                // Half of the list is out: the connection breaks off, so nobody takes it for whole.
                Err(status) => Err(status.into()),
            }
        })
    }
}

type Step = BoxFuture<'static, Result<(Bytes, Option<ListBody>), BodyError>>;

struct Stream {
    ready: Option<Bytes>,
    next: Step,
}

/// A stream that has ended asks for nothing more.
fn ended() -> Step {
    Box::pin(std::future::pending())
}

impl http_body::Body for Stream {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if let Some(bytes) = self.ready.take() {
            return Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))));
        }
        match self.next.as_mut().poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok((frame, Some(rest)))) => {
                self.next = rest.step();
                Poll::Ready(Some(Ok(Frame::data(frame))))
            }
            Poll::Ready(Ok((frame, None))) => {
                self.next = ended();
                self.ready = Some(Bytes::new());
                Poll::Ready(Some(Ok(Frame::data(frame))))
            }
            Poll::Ready(Err(error)) => {
                self.next = ended();
                self.ready = Some(Bytes::new());
                Poll::Ready(Some(Err(error)))
            }
        }
    }
}
