//! GET of one object.

use super::freshness;
use super::kind_request::{Arity, KindRequest, Shown};
use super::list;
use super::visibility;
use crate::reply::{self, Response};
use crate::request::negotiate::Media;
use crate::request::options::{refuse_export, resource_version};
use bareboat_api::Status;
use bareboat_storage::Entry;
use http::StatusCode;
use std::sync::Arc;

/// Returns the answer, if its bytes exist already.
pub(crate) fn ready(call: &KindRequest) -> Result<Option<Response>, Status> {
    let agreed = call.negotiate(Arity::One)?;
    refuse_export(&call.ask.query)?;
    let version = resource_version(call.ask.query.get("resourceVersion"))?;
    let kind = &call.served.kind;
    if is_exact(call) || kind.reader.is_some() || kind.on_get.is_some() {
        return Ok(None);
    }
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
    let version = resource_version(call.ask.query.get("resourceVersion"))?;
    if let Some(version) = version {
        freshness::at_least(call, version).await?;
    }
    if is_exact(call) {
        return exact(call, version.unwrap_or(0)).await;
    }
    let entry = call
        .served
        .resource()
        .get(&call.key())
        .ok_or_else(|| call.not_found())?;
    visibility::check(call, &entry).await?;
    show(call, entry).await
}

/// Answers with an object, after the function of the kind has completed it.
async fn show(call: &KindRequest, entry: Arc<Entry>) -> Result<Response, Status> {
    let Some(complete) = &call.served.kind.on_get else {
        return call.present(StatusCode::OK, Shown::Entry(entry)).await;
    };
    let object = call.served.object(&entry, call.version).await?;
    let shown = Shown::Object(complete(object).await?);
    call.present(StatusCode::OK, shown).await
}

/// Returns whether the request asks for a past version. Kubernetes has this only for lists.
fn is_exact(call: &KindRequest) -> bool {
    call.ask.query.get("resourceVersionMatch") == Some("Exact")
}

/// Answers with the object as it was at a revision.
async fn exact(call: &KindRequest, version: u64) -> Result<Response, Status> {
    if version == 0 {
        return Err(Status::bad_request(
            "resourceVersionMatch=Exact needs a resourceVersion other than 0",
        ));
    }
    let past = list::past(call, version, "get").await?;
    let entry = past.get(&call.key()).cloned();
    let entry = entry.ok_or_else(|| call.not_found())?;
    visibility::check(call, &entry).await?;
    show(call, entry).await
}
