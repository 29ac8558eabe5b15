//! gzip, for large answers to clients that ask for it.

use super::Response;
use super::body::{Body, Stream};
use crate::request::body::BodyError;
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

/// Compresses a large answer if the client asked for it.
///
/// A stream counts as large: whoever makes one has found it to be.
pub(crate) fn compress_if_wanted(request: &HeaderMap, response: Response) -> Response {
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
    let inner: Stream = Box::pin(body);
    let encoder = GzEncoder::new(Vec::new(), Compression::new(1));
    let body = Body::stream(Gzip {
        inner,
        encoder: Some(encoder),
    });
    http::Response::from_parts(head, body)
}

/// Whether the client listed a bare `gzip`.
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
    encoder: Option<GzEncoder<Vec<u8>>>,
}

impl http_body::Body for Gzip {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        loop {
            let Some(mut encoder) = self.encoder.take() else {
                return Poll::Ready(None);
            };
            match self.inner.as_mut().poll_frame(cx) {
                Poll::Pending => {
                    self.encoder = Some(encoder);
                    return Poll::Pending;
                }
                Poll::Ready(Some(Ok(frame))) => {
                    let written = match frame.data_ref() {
                        Some(data) => encoder.write_all(data),
                        None => Ok(()),
                    };
                    if let Err(error) = written {
                        return Poll::Ready(Some(Err(error.into())));
                    }
                    let out = std::mem::take(encoder.get_mut());
                    self.encoder = Some(encoder);
                    if !out.is_empty() {
                        return Poll::Ready(Some(Ok(Frame::data(out.into()))));
                    }
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
