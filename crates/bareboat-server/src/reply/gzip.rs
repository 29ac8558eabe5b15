//! gzip compression of large answers, for clients that ask for it.

use super::Response;
use super::body::{Body, Stream};
use crate::request::body::BodyError;
use crate::work::{LARGE, Threads};
use bareboat_api::kind::BoxFuture;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderMap, HeaderValue, header};
use http_body::{Body as _, Frame};
use std::io::Write as _;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Smaller answers cost more to compress than to send.
pub(crate) const THRESHOLD: usize = 128 * 1024;
/// How many bytes are compressed at a time.
const PIECE: usize = 256 * 1024;

/// Memory of an encoder's tables.
const STATE: usize = 256 * 1024;

/// Compresses a large answer if the client accepts gzip.
///
/// A stream counts as large: only large bodies are streams.
pub(crate) fn compress_if_wanted(
    request: &HeaderMap,
    response: Response,
    threads: &Threads,
) -> Response {
    let large = match response.body().as_full() {
        Some(bytes) => bytes.len() > THRESHOLD,
        None => !response.body().is_end_stream(),
    };
    if !large || !accepts(request) || response.headers().contains_key(header::CONTENT_ENCODING) {
        return response;
    }
    let (mut head, body) = response.into_parts();
    head.headers
        .insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    head.headers
        .append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    head.headers.remove(header::CONTENT_LENGTH);
    let held = body.held() + STATE;
    let inner: Stream = Box::pin(body);
    let compressed = Gzip {
        inner,
        rest: Bytes::new(),
        stage: Stage::Ready(GzEncoder::new(Vec::new(), Compression::new(1))),
        threads: threads.clone(),
    };
    let body = Body::stream_holding(compressed, held);
    http::Response::from_parts(head, body)
}

/// Returns whether the client listed a plain `gzip`.
fn accepts(request: &HeaderMap) -> bool {
    request
        .get_all(header::ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(','))
        .any(|token| token.trim() == "gzip")
}

struct Gzip {
    inner: Stream,
    /// The part of the last frame that is not compressed yet.
    rest: Bytes,
    stage: Stage,
    threads: Threads,
}

type Encoder = GzEncoder<Vec<u8>>;

enum Stage {
    Ready(Encoder),
    /// A large piece is being compressed on another thread.
    Compressing(BoxFuture<'static, std::io::Result<Encoder>>),
    Ended,
}

impl Gzip {
    /// Starts to compress the next piece.
    fn compress(&mut self, mut encoder: Encoder) -> std::io::Result<Stage> {
        let piece = self.rest.split_to(self.rest.len().min(PIECE));
        if piece.len() <= LARGE {
            encoder.write_all(&piece)?;
            return Ok(Stage::Ready(encoder));
        }
        let threads = self.threads.clone();
        Ok(Stage::Compressing(Box::pin(async move {
            let compress = move || encoder.write_all(&piece).map(|()| encoder);
            threads.compute(PIECE, compress).await
        })))
    }
}

impl http_body::Body for Gzip {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        loop {
            let mut encoder = match std::mem::replace(&mut self.stage, Stage::Ended) {
                Stage::Ended => return Poll::Ready(None),
                Stage::Ready(encoder) => encoder,
                Stage::Compressing(mut work) => match work.as_mut().poll(cx) {
                    Poll::Ready(Ok(encoder)) => encoder,
                    Poll::Ready(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
                    Poll::Pending => {
                        self.stage = Stage::Compressing(work);
                        return Poll::Pending;
                    }
                },
            };
            let out = std::mem::take(encoder.get_mut());
            if !out.is_empty() {
                self.stage = Stage::Ready(encoder);
                return Poll::Ready(Some(Ok(Frame::data(out.into()))));
            }
            if !self.rest.is_empty() {
                self.stage = match self.compress(encoder) {
                    Ok(stage) => stage,
                    Err(error) => return Poll::Ready(Some(Err(error.into()))),
                };
                continue;
            }
            match self.inner.as_mut().poll_frame(cx) {
                Poll::Pending => {
                    self.stage = Stage::Ready(encoder);
                    return Poll::Pending;
                }
                Poll::Ready(Some(Ok(frame))) => {
                    self.rest = frame.into_data().unwrap_or_default();
                    self.stage = Stage::Ready(encoder);
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error))),
                Poll::Ready(None) => {
                    return Poll::Ready(Some(match encoder.finish() {
                        Ok(out) => Ok(Frame::data(out.into())),
                        Err(error) => Err(error.into()),
                    }));
                }
            }
        }
    }
}
