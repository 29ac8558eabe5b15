//! Changing an object: computes the new object from the live one, again after each conflict with another write.

use super::{Pipeline, Ready, commit, conclude, retry_on_conflict, shed_managed_fields};
use crate::admission::Scaled;
use crate::managed;
use crate::request::options::WriteOptions;
use crate::verbs::kind_request::KindRequest;
use crate::verbs::kind_request::Shown;
use crate::verbs::visibility;
use crate::work;
use bareboat_api::kind::BoxFuture;
use bareboat_api::status::MODIFIED;
use bareboat_api::{FieldError, FieldPath, Object, Status, Value};
use bareboat_merge::managed::keep_times;
use bareboat_storage::{CommitError, Entry, Write};
use std::sync::Arc;

/// Computes the new object from the live one. Called again after a conflict.
pub(crate) trait Edit: Send + Sync {
    /// Returns the new object in the version of the request, decoded and with defaults.
    fn edit<'a>(
        &'a self,
        call: &'a KindRequest,
        live: &'a Object,
    ) -> BoxFuture<'a, Result<Edited, Status>>;

    /// Returns whether the client gave a resourceVersion. A conflict is then its answer.
    fn is_conditional(&self) -> bool;

    /// Returns whether the client sent the whole object, so that a uid in it is a precondition.
    fn is_whole(&self) -> bool {
        false
    }

    /// Returns how Scales are made of the object, for writes through a Scale.
    fn scaled(&self) -> Option<&dyn Scaled> {
        None
    }
}

/// The result of an edit.
#[derive(Clone)]
pub(crate) struct Edited {
    pub(crate) object: Object,
    /// Whether managed fields are set already (server-side apply).
    pub(crate) managed: bool,
}

impl Edited {
    /// An object whose managers still have to be recorded.
    pub(crate) fn new(object: Object) -> Edited {
        Edited {
            object,
            managed: false,
        }
    }
}

/// Changes the object the URL names; `None` if it does not exist.
pub(crate) async fn change(
    call: &KindRequest,
    edit: &dyn Edit,
    options: &WriteOptions,
) -> Result<Option<Shown>, Status> {
    let key = call.key();
    let sees = visibility::of(call).await;
    loop {
        let Some(entry) = call.served.resource().get(&key) else {
            return Ok(None);
        };
        if !visibility::shows(sees.as_ref(), call, &entry).await? {
            return Ok(None);
        }
        match attempt(call, edit, options, &entry).await? {
            Ok(shown) => return Ok(Some(shown)),
            Err(error) => {
                let name = &call.ask.info.name;
                retry_on_conflict(call, name, edit.is_conditional(), error).await?;
            }
        }
    }
}

async fn attempt(
    call: &KindRequest,
    edit: &dyn Edit,
    options: &WriteOptions,
    entry: &Arc<Entry>,
) -> Result<Result<Shown, CommitError>, Status> {
    let served = &call.served;
    call.ask.basis.begin_at(call.served.store().visible());
    work::maybe_large(entry.json().len()).await;
    let live = call.live(entry).await?;
    let Edited {
        mut object,
        managed: has_managers,
    } = edit.edit(call, &live).await?;
    check_identity(call, edit, &object, &live)?;
    let pipeline = Pipeline::new(call, options.dry_run).scaling(edit.scaled());
    if !has_managers {
        let manager = call.ask.manager(options.field_manager.as_deref());
        object = managed::on_update(call, object, &live, manager, &pipeline.now).await?;
    }
    let mut ready = pipeline.update(object, &live).await?;
    conclude(&pipeline, &mut ready).await;
    let Ready {
        object: mut ready,
        held,
    } = ready;
    // A write that would only update the time of a manager changes nothing.
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
        // The write removed the last finalizer, so the object is gone; the client sees its last state.
        return Ok(committed.map(|_| Shown::Object(ready)));
    }

    let mut kept = options.dry_run.then(|| {
        let mut kept = ready.clone();
        // Nothing was written, so the resourceVersion is still that of the live object.
        kept.set_meta("resourceVersion", Value::string(live.resource_version()));
        kept
    });
    let mut stored = call.encode_for_storage(entry, ready).await?;
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
    if entry.persisted_eq(&stored.bytes) {
        return Ok(Ok(Shown::Entry(entry.clone())));
    }
    let write = Write::replace(served.resource(), entry, stored.bytes).shaped(stored.shape);
    let committed = commit(call, write, Some(&live), Some(&stored.object), held).await?;
    Ok(committed.map(|committed| Shown::Written(committed.entry, stored.object)))
}

/// Returns whether an object under deletion has no finalizer left.
pub(crate) fn is_finished(call: &KindRequest, object: &Object) -> bool {
    object.deletion_timestamp().is_some()
        && object.finalizers().next().is_none()
        && object
            .meta("deletionGracePeriodSeconds")
            .and_then(Value::as_i64)
            .unwrap_or(0)
            == 0
        && !call.served.kind.strategy.holds_back_deletion(object)
}

/// Returns a 400 for an object without a name.
pub(crate) fn nameless(name: &str) -> Status {
    Status::bad_request(format!(
        "the name of the object ({name} based on URL) was undeterminable: name must be provided"
    ))
}

/// Checks name, uid and resourceVersion of the new object against URL and live object.
fn check_identity(
    call: &KindRequest,
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
        // An update with another uid is a failed precondition; a patch with another uid tries to change an immutable
        // field.
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
