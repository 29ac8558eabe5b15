//! GET of one object.

use super::freshness;
use super::kind_request::Shown;
use super::kind_request::{Arity, KindRequest};
use crate::reply::{self, Response};
use crate::request::negotiate::Media;
use crate::request::options::{refuse_export, resource_version};
use bareboat_api::Status;
use http::StatusCode;

/// Returns the answer, if its bytes exist already.
pub(crate) fn ready(call: &KindRequest) -> Result<Option<Response>, Status> {
    let agreed = call.negotiate(Arity::One)?;
    refuse_export(&call.ask.query)?;
    let version = resource_version(call.ask.query.get("resourceVersion"))?;
    if !agreed.is_plain_json() || version.is_some_and(|it| it > call.served.store().visible()) {
        return Ok(None);
    }
    let entry = call.served.resource().get(&call.key());
    let entry = entry.ok_or_else(|| call.not_found())?;
    let bytes = call.served.ready(&entry, call.version, Media::Json);
    Ok(bytes.map(|bytes| reply::full(StatusCode::OK, Media::Json.name(), bytes)))
}

/// Answers with the object the URL names.
pub(crate) async fn get(call: &KindRequest) -> Result<Response, Status> {
    // Negotiation fails before the object is looked up.
    call.negotiate(Arity::One)?;
    if let Some(version) = resource_version(call.ask.query.get("resourceVersion"))? {
        freshness::at_least(call, version).await?;
    }
    let entry = call
        .served
        .resource()
        .get(&call.key())
        .ok_or_else(|| call.not_found())?;
    call.present(StatusCode::OK, Shown::Entry(entry)).await
}
