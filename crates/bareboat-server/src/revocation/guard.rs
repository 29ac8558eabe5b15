//! Ends bodies of programs and of computed kinds, which do not check permissions, when their client loses its
//! permission.

use super::Standing;
use crate::bell::Bell;
use crate::reply::{Body, Response};
use crate::request::body::BodyError;
use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// How a body ends when its client loses its permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Like a complete body, as watches end.
    Plain,
    /// With an error, so that it is not taken for complete.
    Broken,
}

/// Ends the body of an answer when the permission is lost. Bodies of known length are not affected.
pub(crate) fn guard(response: Response, standing: Option<&Arc<Standing>>, end: End) -> Response {
    let Some(standing) = standing.filter(|_| response.body().size_hint().exact().is_none()) else {
        return response;
    };
    let standing = standing.clone();
    response.map(|inner| {
        Body::stream(Guarded {
            inner,
            bell: Bell::new(),
            revoked: Box::pin(async move { standing.revoked().await }),
            end,
        })
    })
}

struct Guarded {
    inner: Body,
    bell: Bell,
    revoked: Pin<Box<dyn Future<Output = ()> + Send>>,
    end: End,
}

impl http_body::Body for Guarded {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if let Some(waker) = self.bell.rung(cx) {
            let cx = &mut Context::from_waker(&waker);
            if self.revoked.as_mut().poll(cx).is_ready() {
                self.inner = Body::empty();
                self.revoked = Box::pin(std::future::pending());
                return Poll::Ready(match self.end {
                    End::Plain => None,
                    End::Broken => Some(Err("the client may no longer have this".into())),
                });
            }
        }
        Pin::new(&mut self.inner).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
