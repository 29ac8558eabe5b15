//! Serves logs from kubelets.

use crate::handlers;
use crate::kubelet::{Kubelets, page, target};
use crate::objects;
use crate::options::{self, LogOptions};
use bareboat_api::Status;
use bareboat_server::reply::{Body, Response};
use bareboat_server::request::body::{BodyError, RequestBody};
use bareboat_server::{CallError, Hold, Life, Visit};
use bytes::Bytes;
use http::{Method, StatusCode};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Serves `pods/log` from the kubelet of the pod.
pub(crate) async fn serve(kubelets: Kubelets, mut visit: Visit) -> Result<Response, Status> {
    let query = options::query(visit.request.uri())?;
    let mut options = LogOptions::parse(&query, &visit.question.name)?;
    let pod = handlers::pod(visit.object.take())?;
    options.container = objects::container(&pod, &options.container)?;
    let location = kubelets.of_pod(visit.question.access.objects(), &pod)?;
    let Some(location) = location else {
        // A pod without a node has no log yet.
        let mut response = http::Response::new(Body::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        return Ok(response);
    };
    let path = [
        "containerLogs",
        pod.namespace(),
        pod.name(),
        &options.container,
    ];
    let target = target(&path, &options.for_kubelet());
    let upstream = kubelets.upstream(&location.url, options.insecure_backend);
    let mut request = http::Request::new(RequestBody::default());
    *request.method_mut() = Method::GET;
    let sent = visit.calls.send(&upstream, &target, request).await;
    let answer = sent.map_err(|error| match error {
        CallError::Busy(_) => Status::too_many_requests(error.to_string(), 1),
        error => Status::new(
            500,
            "",
            format!("Get \"{}{target}\": {error}", location.url),
        ),
    })?;
    let code = answer.response.status();
    if code.is_redirection() {
        return Err(Status::internal("redirects are not followed for logs"));
    }
    if !code.is_success() {
        let page = page(answer.response).await;
        return Err(refused(code, pod.name(), page));
    }
    let life = visit.calls.life();
    let log = Log {
        inner: answer.response.into_body(),
        ended: Box::pin(async move { life.ended().await }),
        _held: (answer.hold, visit.calls.life()),
    };
    Ok(handlers::text(Body::stream(log)))
}

/// Returns the Status for a kubelet's error.
fn refused(code: StatusCode, pod: &str, page: String) -> Status {
    let named = |sentence: &str| format!("{sentence} ( pods/log {pod})");
    match code.as_u16() {
        400 => Status::bad_request(page),
        401 => Status::new(
            401,
            "Unauthorized",
            named("the server has asked for the client to provide credentials"),
        ),
        403 => Status::new(403, "Forbidden", page),
        404 => Status::new(
            404,
            "NotFound",
            named("the server could not find the requested resource"),
        ),
        500 => Status::internal(page),
        code => Status::new(
            code,
            "",
            named(&format!(
                "the server responded with the status code {code} but did not return more information"
            )),
        ),
    }
}

/// The body of a kubelet's answer. It ends when the client may no longer read the log.
struct Log {
    inner: Incoming,
    ended: Pin<Box<dyn Future<Output = ()> + Send>>,
    _held: (Hold, Life),
}

impl http_body::Body for Log {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if self.ended.as_mut().poll(cx).is_ready() {
            self.ended = Box::pin(std::future::pending());
            return Poll::Ready(Some(Err("the user may no longer read the log".into())));
        }
        Pin::new(&mut self.inner)
            .poll_frame(cx)
            .map_err(BodyError::from)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
