//! The raw endpoint: single objects in their stored version, for controllers.
//!
//! Nothing is converted here, so that garbage collection, namespace deletion and the clean-up of definitions work when
//! a converter is broken or a version is no longer served. Only metadata can be changed. Authorization and admission
//! are those of any other request.

use super::delete::delete_key;
use super::delete::options::DeleteOptions;
use super::kind_request::KindRequest;
use super::write::change::{Edit, Edited, change};
use crate::authz::Authorized;
use crate::diagnostics::Stage;
use crate::flow::{self, Unread};
use crate::kinds::stored_kind::StoredKind;
use crate::reply::{self, Response, status_response};
use crate::request::ask::Ask;
use crate::request::negotiate::Media;
use crate::request::options::WriteOptions;
use crate::server::state::State;
use crate::work;
use bareboat_api::kind::BoxFuture;
use bareboat_api::{Object, Status, Value};
use bareboat_merge::merge_patch;
use http::StatusCode;
use std::sync::Arc;

/// Answers get, patch and delete of one object.
pub(super) async fn answer(
    state: &Arc<State>,
    ask: Arc<Authorized<Ask>>,
    body: Unread,
    served: Arc<StoredKind>,
) -> Result<Response, Status> {
    let info = &ask.info;
    if info.name.is_empty() || !info.subresource.is_empty() {
        return Err(Status::method_not_allowed());
    }
    let call = KindRequest {
        state: state.clone(),
        version: served.version_for(&info.version),
        served,
        ask,
    };
    match call.ask.info.verb.as_str() {
        "get" => {
            let entry = call.served.resource().get(&call.key());
            let entry = entry.ok_or_else(|| call.not_found())?;
            let bytes = entry.json().clone();
            Ok(reply::full(StatusCode::OK, Media::Json.name(), bytes))
        }
        verb @ ("patch" | "delete") => {
            let is_patch = verb == "patch";
            let (body, seat) = body.read().await?;
            call.ask.trace.pass(Stage::Read);
            if let Some(audited) = call.ask.trace.audited() {
                audited.sent(&body);
            }
            let threads = state.threads.of(&call.ask.trace);
            let work = async move {
                work::maybe_large(body.len()).await;
                let _memory = flow::decoding(&body, 0).await?;
                match is_patch {
                    true => patch(&call, &body).await?,
                    false => delete(&call, &body).await?,
                }
                let success = Status::new(200, "", "");
                let headers = &call.ask.headers;
                Ok(status_response(headers, None, call.messages(), &success))
            };
            threads.carry_out(seat, work).await
        }
        _ => Err(Status::method_not_allowed()),
    }
}

async fn patch(call: &KindRequest, body: &[u8]) -> Result<(), Status> {
    let options = WriteOptions::parse(&call.ask.query, "PatchOptions")?;
    let parsed = bareboat_wire::json::parse(body)
        .map_err(|error| Status::bad_request(format!("error decoding patch: {error}")))?;
    let Value::Object(mut members) = parsed.value else {
        return Err(Status::bad_request("a merge patch must be an object"));
    };
    let metadata = members.remove("metadata").unwrap_or_default();
    if !members.is_empty() {
        return Err(Status::bad_request(
            "only metadata can be changed in an object as it is stored",
        ));
    }
    let edit = Metadata(metadata);
    let changed = change(call, &edit, &options).await?;
    changed.map(drop).ok_or_else(|| call.not_found())
}

async fn delete(call: &KindRequest, body: &[u8]) -> Result<(), Status> {
    let options = DeleteOptions::read(call, body)?;
    delete_key(call, &call.key(), &options).await.map(drop)
}

/// A merge patch of metadata.
struct Metadata(Value);

impl Edit for Metadata {
    fn edit<'a>(
        &'a self,
        _call: &'a KindRequest,
        live: &'a Object,
    ) -> BoxFuture<'a, Result<Edited, Status>> {
        let mut object = live.clone();
        let metadata = object
            .map_mut()
            .entry_or_insert_with("metadata", Value::object);
        merge_patch(metadata, self.0.clone());
        Box::pin(std::future::ready(Ok(Edited {
            object,
            managed: false,
        })))
    }

    fn is_conditional(&self) -> bool {
        let version = self.0.get("resourceVersion");
        version.is_some_and(|version| !version.is_null())
    }
}
