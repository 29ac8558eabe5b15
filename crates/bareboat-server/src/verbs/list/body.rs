//! The body of a list: makes frames as the client reads them, so that memory does not grow with the list.

use super::items::Items;
use super::text_format::TextFormat;
use crate::flow::Seat;
use crate::reply::{self, Body, Response};
use crate::request::body::BodyError;
use crate::work;
use bareboat_api::Status;
use bareboat_api::kind::BoxFuture;
use bareboat_wire::proto;
use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use http_body::Frame;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

/// Target size of a frame. One frame per object would cost five times as much on HTTP/2.
const FRAME: usize = 64 * 1024;
/// Lists up to this size are sent in one piece with a Content-Length.
const WHOLE: usize = 128 * 1024;

/// The body of a list.
pub(super) struct ListBody {
    items: Items,
    head: Vec<u8>,
    pieces: Pieces,
    /// The seat that the list began on.
    seat: Option<Arc<Seat>>,
}

/// The encoding of a list.
enum Pieces {
    /// JSON, or a format made from it.
    Text(TextFormat),
    /// Protobuf messages; `left` counts their remaining bytes.
    Messages { left: usize },
}

impl ListBody {
    /// A list in JSON, or in a format made from it.
    pub(super) fn of_text(items: Items, head: Vec<u8>, form: TextFormat) -> ListBody {
        let pieces = Pieces::Text(form);
        ListBody {
            items,
            head,
            pieces,
            seat: None,
        }
    }

    /// A list of protobuf messages, which take `size` bytes as items of the list.
    pub(super) fn of_messages(items: Items, head: Vec<u8>, size: usize) -> ListBody {
        let pieces = Pieces::Messages { left: size };
        ListBody {
            items,
            head,
            pieces,
            seat: None,
        }
    }

    /// Returns the bytes before the items.
    fn take_head(&mut self) -> Result<Bytes, Status> {
        let head = std::mem::take(&mut self.head);
        match &mut self.pieces {
            Pieces::Text(form) => form.head(head),
            Pieces::Messages { .. } => Ok(head.into()),
        }
    }

    /// Returns the next items; `None` at the end.
    async fn next_frame(&mut self) -> Result<Option<Bytes>, Status> {
        match &mut self.pieces {
            Pieces::Text(form) => match self.items.next_frame(FRAME).await? {
                Some(frame) => {
                    work::maybe_large(form.effort(frame.len())).await;
                    form.items(frame).map(Some)
                }
                None => Ok(None),
            },
            Pieces::Messages { left } => {
                let changed = || Status::internal("a list changed while it was sent");
                // Such a list is large; smaller ones were made at once.
                work::maybe_large(FRAME).await;
                let Some(messages) = self.items.next_messages(FRAME).await? else {
                    return match left {
                        0 => Ok(None),
                        _ => Err(changed()),
                    };
                };
                let sizes = messages.iter().map(|one| proto::list_item_len(one.len()));
                let size = sizes.sum();
                *left = left.checked_sub(size).ok_or_else(changed)?;
                let mut out = Vec::with_capacity(size);
                for message in &messages {
                    proto::write_list_item(message, &mut out);
                }
                Ok(Some(out.into()))
            }
        }
    }

    /// Returns the bytes after the items.
    fn tail(&mut self) -> Bytes {
        match &mut self.pieces {
            Pieces::Text(form) => form.tail(b"]}"),
            Pieces::Messages { .. } => Bytes::from_static(proto::LIST_TAIL),
        }
    }

    /// Starts the answer. An error in the first frames still becomes a Status.
    pub(super) async fn respond(mut self, content_type: &'static str) -> Result<Response, Status> {
        let mut first = VecDeque::from([self.take_head()?]);
        let mut size = 0;
        while size < WHOLE {
            match self.next_frame().await? {
                Some(frame) => {
                    size += frame.len();
                    first.push_back(frame);
                }
                None => {
                    first.push_back(self.tail());
                    let mut whole = Vec::with_capacity(first.iter().map(Bytes::len).sum());
                    first
                        .iter()
                        .for_each(|frame| whole.extend_from_slice(frame));
                    return Ok(reply::full(StatusCode::OK, content_type, whole.into()));
                }
            }
        }
        let deadline = self.items.deadline();
        // The rest is made as the client reads, which may take long: without a seat, but charged for.
        self.seat = work::seat();
        if let Some(seat) = &self.seat {
            seat.retire();
        }
        let stream = Stream::new(first, self.step(), deadline);
        let mut response = http::Response::new(Body::stream_holding(stream, size));
        response
            .headers_mut()
            .insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        Ok(response)
    }

    /// Makes the next frame; returns the list unless it was the last frame.
    fn step(mut self) -> Step {
        let threads = self.items.threads().clone();
        let step: Step = Box::pin(async move {
            let begun = Instant::now();
            let next = self.next_frame().await;
            if let Some(seat) = &self.seat {
                seat.charge(begun);
            }
            match next {
                Ok(Some(frame)) => Ok((frame, Some(self))),
                Ok(None) => Ok((self.tail(), None)),
                // Part of the list was sent: the connection is aborted, so that the client does not take it for
                // complete.
                Err(status) => Err(status.into()),
            }
        });
        Box::pin(async move { threads.carry_out_boxed(None, step).await })
    }
}

type Step = BoxFuture<'static, Result<(Bytes, Option<ListBody>), BodyError>>;

/// The rest of the list: the next frame, or nothing after the last.
type Rest = Arc<Mutex<Option<Step>>>;

struct Stream {
    /// Frames that were made before the answer started.
    first: VecDeque<Bytes>,
    rest: Rest,
    /// Drops the rest of the list when the client stalls, because it pins a snapshot.
    guard: tokio::task::JoinHandle<()>,
    ended: bool,
}

impl Stream {
    fn new(first: VecDeque<Bytes>, next: Step, deadline: Instant) -> Stream {
        let rest: Rest = Arc::new(Mutex::new(Some(next)));
        let stalled = rest.clone();
        let guard = tokio::spawn(async move {
            tokio::time::sleep_until(deadline.into()).await;
            stalled.lock().take();
        });
        Stream {
            first,
            rest,
            guard,
            ended: false,
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.guard.abort();
    }
}

impl http_body::Body for Stream {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if let Some(bytes) = self.first.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        if self.ended {
            return Poll::Ready(None);
        }
        let polled = {
            let mut rest = self.rest.lock();
            match rest.as_mut() {
                None => Poll::Ready(Err("the list was not taken in time".into())),
                Some(step) => match step.as_mut().poll(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Ok((frame, Some(next)))) => {
                        *rest = Some(next.step());
                        return Poll::Ready(Some(Ok(Frame::data(frame))));
                    }
                    Poll::Ready(Ok((frame, None))) => Poll::Ready(Ok(Frame::data(frame))),
                    Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
                },
            }
        };
        self.ended = true;
        polled.map(Some)
    }
}
