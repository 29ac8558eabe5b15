//! Fetches documents from another API server, as the aggregator itself.

use super::backend::Backend;
use crate::outbound::{Bounds, Outbound, OutboundError};
use crate::request::body::RequestBody;
use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use std::time::Duration;

/// How long a document may take, from the first packet to the last byte.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// The user of these requests, which its group allows to read everything.
const USER: &str = "system:kube-aggregator";
const GROUP: &str = "system:masters";

/// A document to fetch.
pub(super) struct Wanted<'a> {
    pub(super) path: &'a str,
    pub(super) accept: &'static str,
    /// The entity tag of the known document.
    pub(super) etag: Option<String>,
    /// Maximum size.
    pub(super) most: usize,
}

/// An answer, whatever its code.
pub(super) struct Fetched {
    pub(super) code: StatusCode,
    pub(super) etag: Option<String>,
    pub(super) media: String,
    /// The whole body, or why it could not be read.
    pub(super) body: Result<Bytes, OutboundError>,
}

/// Fetches a document.
pub(super) async fn get(
    outbound: &Outbound,
    backend: &Backend,
    wanted: Wanted<'_>,
) -> Result<Fetched, OutboundError> {
    let to = backend.remote.destination().map_err(Clone::clone)?;
    let mut request = Request::builder()
        .method(Method::GET)
        .uri(to.below(wanted.path)?)
        .header(header::ACCEPT, wanted.accept)
        .header(header::USER_AGENT, "bareboat")
        .header("x-remote-user", USER)
        .header("x-remote-group", GROUP);
    if let Some(etag) = wanted.etag {
        request = request.header(header::IF_NONE_MATCH, etag);
    }
    let request = request
        .body(RequestBody::Memory(Bytes::new()))
        .map_err(|error| OutboundError::Target(error.to_string()))?;
    let bounds = Bounds {
        time: PATIENCE,
        answer: wanted.most,
    };
    let (head, body) = outbound.fetch(to, request, bounds).await?;
    let text = |name: header::HeaderName| {
        let value = head.headers.get(name).and_then(|value| value.to_str().ok());
        value.map(str::to_owned)
    };
    Ok(Fetched {
        code: head.status,
        etag: text(header::ETAG),
        media: text(header::CONTENT_TYPE).unwrap_or_default(),
        body,
    })
}
