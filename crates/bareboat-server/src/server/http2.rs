//! HTTP/2 on a connection whose client chose it in the TLS handshake.

use super::carrier::Carrier;
use super::drive::until_done;
use super::listen::LARGEST_HEAD;
use super::state::Ending;
use crate::connections::{Line, Metered};
use crate::work::Threads;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http2::Builder;
use hyper::service::Service;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

/// Send buffer of a stream.
const SEND_BUFFER: usize = 256 * 1024;

/// The protocols that handshakes offer, the preferred one first.
pub(crate) const PROTOCOLS: &[&[u8]] = &[b"h2", b"http/1.1"];

/// Serves a connection until it ends; `None` if it was cut off.
pub(super) async fn serve<S>(
    stream: Carrier,
    service: S,
    ending: Ending,
    line: &Arc<Line>,
    threads: &Threads,
) -> Option<hyper::Result<()>>
where
    S: Service<Request<Incoming>, Response = Response<Metered>, Error = Infallible>,
    S: Send + 'static,
    S::Future: Send + 'static,
{
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(250)
        .max_send_buf_size(SEND_BUFFER)
        .max_header_list_size(LARGEST_HEAD as u32)
        .keep_alive_interval(Some(Duration::from_secs(30)));
    let connection = Box::pin(builder.serve_connection(TokioIo::new(stream), service));
    until_done(
        connection,
        |it| it.graceful_shutdown(),
        ending,
        line,
        threads,
    )
    .await
}
