//! The body of a request, read whole up to a limit.

use bareboat_api::Status;
use bytes::{Bytes, BytesMut};
use http_body::Body as _;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Maximum size of a request body.
pub const LIMIT: usize = 3 * 1024 * 1024;

/// Any error a body in transit may have.
pub type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// The body of a request, from a socket or from inside the process.
pub enum RequestBody {
    /// From a socket.
    Socket(hyper::body::Incoming),
    /// Already in memory.
    Memory(Bytes),
    /// From anything else.
    Boxed(Pin<Box<dyn http_body::Body<Data = Bytes, Error = BodyError> + Send>>),
}

bareboat_api::opaque_debug!(RequestBody);

impl Default for RequestBody {
    fn default() -> Self {
        RequestBody::Memory(Bytes::new())
    }
}

impl RequestBody {
    /// Any body of the `http` family, such as axum's.
    pub fn new<B>(body: B) -> RequestBody
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BodyError>,
    {
        let body = http_body_util::BodyExt::map_err(body, Into::into);
        RequestBody::Boxed(Box::pin(body))
    }

    /// Reads the whole body.
    pub async fn read(self) -> Result<Bytes, Status> {
        self.read_if(|_| Ok(())).await
    }

    /// Reads the whole body; asks `may_keep` for the size of every piece that is buffered until the next one arrives.
    pub(crate) async fn read_if(
        mut self,
        mut may_keep: impl FnMut(usize) -> Result<(), Status>,
    ) -> Result<Bytes, Status> {
        if let RequestBody::Memory(bytes) = self {
            return within_limit(bytes);
        }
        if self.size_hint().lower() > LIMIT as u64 {
            return Err(Status::too_large(LIMIT));
        }
        let mut first: Option<Bytes> = None;
        let mut rest = BytesMut::new();
        let mut size = 0;
        while let Some(frame) = http_body_util::BodyExt::frame(&mut self).await {
            let frame = frame.map_err(|error| {
                Status::bad_request(format!("the body of the request ended early: {error}"))
            })?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            size += data.len();
            if size > LIMIT {
                return Err(Status::too_large(LIMIT));
            }
            // Most bodies arrive in one piece and are not copied.
            if first.is_none() && rest.is_empty() {
                first = Some(data);
                continue;
            }
            may_keep(data.len())?;
            if let Some(earlier) = first.take() {
                rest.reserve(earlier.len() + data.len());
                rest.extend_from_slice(&earlier);
            }
            rest.extend_from_slice(&data);
        }
        Ok(first.unwrap_or_else(|| rest.freeze()))
    }
}

fn within_limit(bytes: Bytes) -> Result<Bytes, Status> {
    if bytes.len() > LIMIT {
        return Err(Status::too_large(LIMIT));
    }
    Ok(bytes)
}

impl http_body::Body for RequestBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, BodyError>>> {
        match self.get_mut() {
            RequestBody::Socket(body) => {
                Pin::new(body).poll_frame(cx).map_err(|error| error.into())
            }
            RequestBody::Memory(bytes) if bytes.is_empty() => Poll::Ready(None),
            RequestBody::Memory(bytes) => {
                Poll::Ready(Some(Ok(http_body::Frame::data(std::mem::take(bytes)))))
            }
            RequestBody::Boxed(body) => body.as_mut().poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            RequestBody::Socket(body) => body.is_end_stream(),
            RequestBody::Memory(bytes) => bytes.is_empty(),
            RequestBody::Boxed(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> http_body::SizeHint {
        match self {
            RequestBody::Socket(body) => body.size_hint(),
            RequestBody::Memory(bytes) => http_body::SizeHint::with_exact(bytes.len() as u64),
            RequestBody::Boxed(body) => body.size_hint(),
        }
    }
}
