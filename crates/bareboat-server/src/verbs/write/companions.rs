//! Companions: objects of other kinds that are stored and removed in the same commit as the written object.
//!
//! The strategy of the kind returns them and their content.

use super::Pipeline;
use crate::kinds::catalog::Backing;
use crate::managed;
use crate::verbs::delete::begin;
use crate::verbs::kind_request::KindRequest;
use bareboat_api::kind::Companion;
use bareboat_api::{Object, Status};
use bareboat_storage::{CommitError, Entry, Write};
use std::sync::Arc;

/// Field manager of the server's own writes.
const MANAGER: &str = "kube-apiserver";

pub(super) fn same(a: &Companion, b: &Companion) -> bool {
    (a.group, a.resource, &a.name) == (b.group, b.resource, &b.name)
}

/// Returns the same request for the kind of a companion; `None` if that kind is not served.
fn call_of(call: &KindRequest, companion: &Companion) -> Option<KindRequest> {
    let table = call.state.catalog.table();
    let Some(Backing::Stored(served)) = table.find(companion.group, companion.resource) else {
        return None;
    };
    Some(KindRequest {
        state: call.state.clone(),
        ask: call.ask.clone(),
        version: served.storage_version().unwrap_or(0),
        served: served.clone(),
    })
}

fn found(call: &KindRequest, own: &KindRequest, companion: &Companion) -> Option<Arc<Entry>> {
    let key = own.served.key(&call.ask.info.namespace, &companion.name);
    own.served.resource().get(&key)
}

/// Returns whether a stored companion has the content that the object prescribes.
fn says(stored: &Object, companion: &Companion) -> bool {
    let said = companion.says.as_ref();
    said.is_none_or(|said| stored.get("spec") == said.get("spec"))
}

/// Returns the write that creates a companion, unless it exists. A companion with other content is a conflict.
pub(super) async fn coming(
    call: &KindRequest,
    companion: &Companion,
) -> Result<Result<Option<Write>, CommitError>, Status> {
    let (Some(own), Some(said)) = (call_of(call, companion), &companion.says) else {
        return Ok(Ok(None));
    };
    if let Some(entry) = found(call, &own, companion) {
        return Ok(match says(&own.served.parse(&entry)?, companion) {
            true => Ok(None),
            false => Err(CommitError::Conflict { found: Some(entry) }),
        });
    }
    let mut said = said.clone();
    let defaulted = own.version().shape.default(&mut said);
    defaulted.map_err(Status::internal)?;
    let object =
        Object::try_from(said).map_err(|_| Status::internal("a companion is not an object"))?;
    let pipeline = Pipeline::new(&own, false);
    let object = managed::on_create(&own, object, MANAGER, &pipeline.now).await?;
    let object = pipeline.make(object)?.object;
    let key = own.served.key(object.namespace(), object.name());
    let (stored, shape) = own.served.to_storage_version(object, None).await?;
    let bytes = bareboat_wire::encode::persisted(stored.value());
    let write = Write::create(own.served.resource(), key, bytes);
    Ok(Ok(Some(write.shaped(shape))))
}

/// Returns the write that removes a companion, or starts its deletion if it has finalizers. A companion with other
/// content stays.
pub(super) async fn going(
    call: &KindRequest,
    companion: &Companion,
) -> Result<Option<Write>, Status> {
    let Some(own) = call_of(call, companion) else {
        return Ok(None);
    };
    let Some(entry) = found(call, &own, companion) else {
        return Ok(None);
    };
    let mut object = own.served.parse(&entry)?;
    if !says(&object, companion) {
        return Ok(None);
    }
    let resource = own.served.resource();
    if object.finalizers().next().is_none() {
        return Ok(Some(Write::delete(resource, &entry)));
    }
    if object.deletion_timestamp().is_some() {
        return Ok(None);
    }
    begin(&mut object, &call.state.clock.text(), 0);
    let stored = own.encode_for_storage(&entry, object).await?;
    let write = Write::replace(resource, &entry, stored.bytes);
    Ok(Some(write.shaped(stored.shape)))
}
