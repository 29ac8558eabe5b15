//! PUT and PATCH of a computed kind: the change that its function applies to the live object.
//!
//! There are no managed fields, so server-side apply is not supported.

use crate::authz::Authorized;
use crate::kinds::computed::{Change, Computed};
use crate::request::ask::Ask;
use crate::request::negotiate::media_type;
use crate::request::options::{FieldValidation, WriteOptions};
use crate::server::state::State;
use crate::verbs::patch::{JSON, MERGE, json_patch};
use bareboat_api::admission::Operation;
use bareboat_api::status::MODIFIED;
use bareboat_api::{Object, Status, Value};
use bareboat_merge::json_patch::JsonPatch;
use bareboat_merge::merge_patch;
use std::sync::Arc;

enum Body {
    Whole(Object),
    Json(JsonPatch),
    Merge(Value),
}

/// Reads the body of a PUT or PATCH.
pub(super) fn read(
    state: &Arc<State>,
    ask: &Arc<Authorized<Ask>>,
    computed: &Arc<Computed>,
    version: usize,
    body: &[u8],
) -> Result<Change, Status> {
    let name = ask.info.name.clone();
    let change = match ask.info.verb.as_str() {
        "update" => {
            let object = super::decode(ask, computed, version, body)?;
            if object.name() != name {
                let own = object.name();
                return Err(Status::bad_request(format!(
                    "the name of the object ({own}) does not match the name on the URL ({name})"
                )));
            }
            Body::Whole(object)
        }
        _ => patch(ask, body)?,
    };
    let parts = Arc::new((state.clone(), ask.clone(), computed.clone(), change));
    Ok(Change(Box::new(move |live| {
        let parts = parts.clone();
        Box::pin(async move {
            let (state, ask, computed, change) = &*parts;
            let mut new = changed(change, computed, version, &live)?;
            super::admit(state, ask, computed, version, Operation::Update, &mut new).await?;
            check(computed, version, &new, &live)?;
            Ok(new)
        })
    })))
}

fn patch(ask: &Ask, body: &[u8]) -> Result<Body, Status> {
    WriteOptions::parse(&ask.query, "PatchOptions")?;
    let media = media_type(&ask.headers).to_owned();
    if media != JSON && media != MERGE {
        return Err(Status::unsupported_media_type(&[JSON, MERGE]));
    }
    let parsed = bareboat_wire::json::parse(body)
        .map_err(|error| Status::bad_request(format!("error decoding patch: {error}")))?;
    Ok(match media == JSON {
        true => Body::Json(json_patch(&parsed.value, FieldValidation::Ignore)?),
        false => Body::Merge(parsed.value),
    })
}

/// Computes the new object from the live one.
fn changed(
    change: &Body,
    computed: &Computed,
    version: usize,
    live: &Object,
) -> Result<Object, Status> {
    let kind = computed.kind();
    let mut value = Value::from(live.clone());
    match change {
        Body::Whole(object) => value = object.clone().into(),
        Body::Merge(patch) => merge_patch(&mut value, patch.clone()),
        Body::Json(patch) => {
            let applied = patch.apply(&mut value);
            applied.map_err(|error| Status::new(422, "Invalid", error.to_string()))?;
        }
    }
    let shape = &kind.versions[version].shape;
    let refuse = |why: String| Status::bad_request(format!("the object cannot be read: {why}"));
    shape.conform(&mut value, &mut Vec::new()).map_err(refuse)?;
    shape.default(&mut value).map_err(refuse)?;
    let new = Object::try_from(value).map_err(|_| Status::bad_request("it is no object"))?;
    let wanted = new.resource_version();
    if !matches!(wanted, "" | "0") && wanted != live.resource_version() {
        return Err(Status::conflict(
            kind.group_resource(),
            live.name(),
            MODIFIED,
        ));
    }
    Ok(new)
}

/// Validates the new object by the schema.
fn check(computed: &Computed, version: usize, new: &Object, live: &Object) -> Result<(), Status> {
    let kind = computed.kind();
    let shape = &kind.versions[version].shape;
    let errors = shape.validate(new.value(), Some(live.value())).errors;
    match errors.is_empty() {
        true => Ok(()),
        false => Err(Status::invalid(kind.group_kind(), live.name(), &errors)),
    }
}
