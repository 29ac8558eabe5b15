//! Changing an object: given the live one, compute the new one, as often as races demand.

use super::{Pipeline, Ready, commit, commit_error, shed_managed_fields};
use crate::managed;
use crate::request::options::WriteOptions;
use crate::verbs::call::Call;
use crate::verbs::present::Shown;
use crate::work;
use bareboat_api::kind::BoxFuture;
use bareboat_api::status::MODIFIED;
use bareboat_api::{FieldError, FieldPath, Object, Status, Value};
use bareboat_merge::managed::keep_times;
use bareboat_storage::{CommitError, Entry, Write};
use std::sync::Arc;

/// Computes the new object from the live one; may be called again after a lost race.
pub(crate) trait Edit: Send + Sync {
    /// The new object, in the version of the request, in form and defaulted.
    fn edit<'a>(
        &'a self,
        call: &'a Call,
        live: &'a Object,
    ) -> BoxFuture<'a, Result<Edited, Status>>;

    /// Whether the client named the version it means to change, so that a lost race is its conflict.
    fn is_conditional(&self) -> bool;

    /// Whether the client sent the whole object, so that a uid in it tells which incarnation it means.
    fn is_whole(&self) -> bool {
        false
    }
}

/// What an edit gives.
#[derive(Clone)]
pub(crate) struct Edited {
    pub(crate) object: Object,
    /// Managed fields are set already (server-side apply).
    pub(crate) managed: bool,
}

impl Edited {
    /// An object whose managers are still to be recorded.
    pub(crate) fn new(object: Object) -> Edited {
        Edited {
            object,
            managed: false,
        }
    }
}

/// Changes the object the URL names; `None` when there is none.
pub(crate) async fn change(
    call: &Call,
    edit: &dyn Edit,
    options: &WriteOptions,
) -> Result<Option<Shown>, Status> {
    let key = call.key();
    loop {
        let Some(entry) = call.served.resource().get(&key) else {
            return Ok(None);
        };
        match attempt(call, edit, options, &entry).await? {
            Ok(shown) => return Ok(Some(shown)),
            // Somebody was faster. Unless the client insists on what it saw, look again.
            Err(CommitError::Conflict { .. } | CommitError::NotFound) if !edit.is_conditional() => {
                if call.time_left().is_zero() {
                    return Err(Status::timeout(
                        "request did not complete within the allotted timeout",
                    ));
                }
            }
            Err(error) => return Err(commit_error(call, &call.ask.info.name, error)),
        }
    }
}

async fn attempt(
    call: &Call,
    edit: &dyn Edit,
    options: &WriteOptions,
    entry: &Arc<Entry>,
) -> Result<Result<Shown, CommitError>, Status> {
    let served = &call.served;
    work::maybe_large(entry.json().len()).await;
    let live = call.live(entry).await?;
    let Edited {
        mut object,
        managed: has_managers,
    } = edit.edit(call, &live).await?;
    check_identity(call, edit, &object, &live)?;
    let turn = served.turn(&object).await;
    let pipeline = Pipeline::new(call, options.dry_run);
    if !has_managers {
        let manager = call.ask.manager(options.field_manager.as_deref());
        object = managed::on_update(call, object, &live, manager, &pipeline.now).await?;
    }
    let Ready {
        object: mut ready,
        mut held,
    } = pipeline.update(object, &live).await?;
    held.append(turn);
    // A write that changes nothing but the time of a manager changes nothing.
    keep_times(live.value(), ready.value_mut());

    if is_finished(call, &ready) {
        let write = Write::delete(served.resource(), entry);
        if options.dry_run {
            return Ok(served
                .store()
                .rehearse(write)
                .map(|()| Shown::Object(ready)));
        }
        let held = held.until_done();
        let committed = commit(call, write, Some(&live), None, held).await?;
        // The client sees the object without its last finalizer, as it vanished.
        return Ok(committed.map(|_| Shown::Object(ready)));
    }

    let mut kept = options.dry_run.then(|| {
        let mut kept = ready.clone();
        // Nothing was written, so the version is still that of the live object.
        kept.set_meta("resourceVersion", Value::string(live.resource_version()));
        kept
    });
    let mut stored = call.stored(entry, ready).await?;
    if !has_managers
        && shed_managed_fields(call, &mut stored.object, &mut stored.bytes)
        && let Some(kept) = &mut kept
    {
        kept.remove_meta("managedFields");
    }
    if let Some(object) = kept {
        let write = Write::replace(served.resource(), entry, stored.bytes);
        return Ok(served
            .store()
            .rehearse(write)
            .map(|()| Shown::Object(object)));
    }
    if entry.stored_eq(&stored.bytes) {
        return Ok(Ok(Shown::Entry(entry.clone())));
    }
    let write = Write::replace(served.resource(), entry, stored.bytes).shaped(stored.shape);
    let committed = commit(call, write, Some(&live), Some(&stored.object), held).await?;
    Ok(committed.map(|committed| Shown::Written(committed.entry, stored.object)))
}

/// Whether nothing holds an object under deletion any longer.
pub(crate) fn is_finished(call: &Call, object: &Object) -> bool {
    object.deletion_timestamp().is_some()
        && object.finalizers().next().is_none()
        && object
            .meta("deletionGracePeriodSeconds")
            .and_then(Value::as_i64)
            .unwrap_or(0)
            == 0
        && !call.served.kind.strategy.holds_back_deletion(object)
}

/// 400 for an object that does not say which one it is.
pub(crate) fn nameless(name: &str) -> Status {
    Status::bad_request(format!(
        "the name of the object ({name} based on URL) was undeterminable: name must be provided"
    ))
}

/// The new object must be the one the URL names, in the incarnation and version the client means.
fn check_identity(
    call: &Call,
    edit: &dyn Edit,
    object: &Object,
    live: &Object,
) -> Result<(), Status> {
    let (own, name) = (object.name(), &call.ask.info.name);
    if own != name {
        if own.is_empty() {
            return Err(nameless(name));
        }
        return Err(Status::bad_request(format!(
            "the name of the object ({own}) does not match the name on the URL ({name})"
        )));
    }
    let kind = &call.served.kind;
    if !object.uid().is_empty() && object.uid() != live.uid() {
        // Who replaces an object means another one; who patches it tries to make it another one.
        if !edit.is_whole() {
            let path = FieldPath::new("metadata.uid");
            let error = FieldError::invalid(path, object.uid(), "field is immutable");
            return Err(Status::invalid(kind.group_kind(), name, &[error]));
        }
        let why = format!(
            "Precondition failed: UID in precondition: {}, UID in object meta: {}",
            object.uid(),
            live.uid()
        );
        return Err(Status::conflict(kind.group_resource(), name, why));
    }
    let version = object.resource_version();
    if version.is_empty() || version == "0" {
        if kind.policy.unconditional_update {
            return Ok(());
        }
        let path = FieldPath::new("metadata.resourceVersion");
        let error = FieldError::invalid(path, 0, "must be specified for an update");
        return Err(Status::invalid(kind.group_resource(), name, &[error]));
    }
    if version.parse::<u64>().is_err() {
        let path = FieldPath::new("metadata.resourceVersion");
        let error = FieldError::invalid(
            path,
            version,
            "must be the resourceVersion of an object as it was read",
        );
        return Err(Status::invalid(kind.group_kind(), name, &[error]));
    }
    if version != live.resource_version() {
        return Err(Status::conflict(kind.group_resource(), name, MODIFIED));
    }
    Ok(())
}
