//! Bodies that a task fills: lists that are longer than one page, and watches.

use bareboat_server::reply::Body;
use bareboat_server::request::body::BodyError;
use bytes::Bytes;
use http_body::Frame;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::mpsc;

/// How many pieces may wait for the client.
const WAITING: usize = 4;

/// The end of a body that a task writes to. It waits while the client does not read.
pub(crate) type Pipe = mpsc::Sender<Result<Bytes, BodyError>>;

/// Returns a body and the end that a task writes to.
pub(crate) fn pipe() -> (Pipe, Body) {
    let (sender, receiver) = mpsc::channel(WAITING);
    (sender, Body::stream(Piped(receiver)))
}

struct Piped(mpsc::Receiver<Result<Bytes, BodyError>>);

impl http_body::Body for Piped {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let received = self.0.poll_recv(cx);
        received.map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}
