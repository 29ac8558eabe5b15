//! GET of one object.

use super::call::{Arity, Call};
use super::freshness;
use super::present::Shown;
use crate::reply::Response;
use crate::request::options::resource_version;
use bareboat_api::Status;
use http::StatusCode;

/// Answers with the object the URL names.
pub(crate) async fn get(call: &Call) -> Result<Response, Status> {
    // A form that cannot be had is refused before anything is looked for.
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
