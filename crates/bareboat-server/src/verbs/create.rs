//! POST of a new object.

use super::kind_request::KindRequest;
use super::kind_request::Shown;
use super::write::change::Edited;
use super::write::{
    Pipeline, Ready, authorize_again, commit, commit_error, conclude, decode, shed_managed_fields,
};
use crate::reply::Response;
use crate::request::info::RequestInfo;
use crate::request::options::WriteOptions;
use crate::{authz, managed};
use bareboat_api::{Status, Str};
use bareboat_storage::{CommitError, Write};
use bytes::Bytes;
use http::StatusCode;

/// How many generated names are tried.
const TRIES: usize = 8;

/// Creates the object in the body.
pub(crate) async fn create(call: &KindRequest, body: Bytes) -> Result<Response, Status> {
    let options = WriteOptions::parse(&call.ask.query, "CreateOptions")?;
    let object = decode::object(call, &body, options.field_validation)?;
    let shown = create_object(call, Edited::new(object), &options).await?;
    call.present(StatusCode::CREATED, shown).await
}

/// Checks that the user may create the object that an apply or update names and that does not exist.
pub(super) async fn authorize_creation(call: &KindRequest) -> Result<(), Status> {
    let creating = RequestInfo {
        verb: Str::const_new("create"),
        ..RequestInfo::clone(&call.ask.info)
    };
    authz::also(&*call.state.authorizer, &call.ask.user, &creating).await
}

/// Creates a decoded object; also used by an apply or update of a missing object.
pub(super) async fn create_object(
    call: &KindRequest,
    edited: Edited,
    options: &WriteOptions,
) -> Result<Shown, Status> {
    let object = &edited.object;
    let generates = object.name().is_empty() && !object.meta_str("generateName").is_empty();
    let has_companions = !call.served.kind.strategy.companions(object).is_empty();
    // Another server may change what the new object depends on.
    let is_shared = call.served.store().is_shared();
    let (mut next, mut tries) = (edited, 0);
    loop {
        tries += 1;
        let spare = (generates || has_companions || is_shared).then(|| next.clone());
        let (name, error) = match attempt(call, next, options).await? {
            Ok(shown) => return Ok(shown),
            Err(failed) => failed,
        };
        match (error, spare) {
            // The generated name is taken.
            (CommitError::AlreadyExists { .. }, Some(again)) if generates && tries < TRIES => {
                next = again;
            }
            (CommitError::Outdated, Some(again)) => {
                authorize_again(call).await?;
                // An apply or update that creates needs this right, too.
                authorize_creation(call).await?;
                (next, tries) = (again, tries - 1);
            }
            // The conflict is not about the new object: a companion changed in the meantime.
            (CommitError::Conflict { .. }, Some(again)) if tries < TRIES => next = again,
            (error @ CommitError::AlreadyExists { .. }, _) if generates => {
                let mut status = commit_error(call, &name, error).retry_after(1);
                status
                    .message
                    .push_str("; the server was not able to generate a unique name for the object");
                return Err(status);
            }
            (error, _) => return Err(commit_error(call, &name, error)),
        }
    }
}

/// Runs one object through the pipeline and commits it. A failed commit comes with the name of the object, which may
/// have been generated.
async fn attempt(
    call: &KindRequest,
    edited: Edited,
    options: &WriteOptions,
) -> Result<Result<Shown, (String, CommitError)>, Status> {
    call.ask.basis.begin_at(call.served.store().visible());
    let manager = call.ask.manager(options.field_manager.as_deref());
    let pipeline = Pipeline::new(call, options.dry_run);
    let Edited {
        mut object,
        managed: has_managers,
    } = edited;
    if !has_managers {
        object = managed::on_create(call, object, manager, &pipeline.now).await?;
    }
    let mut ready = pipeline.create(object).await?;
    conclude(&pipeline, &mut ready).await;
    let name = ready.object.name().to_owned();
    let stored = store(&pipeline, ready, has_managers).await?;
    Ok(stored.map_err(|error| (name, error)))
}

async fn store(
    pipeline: &Pipeline<'_>,
    Ready { object, held }: Ready,
    applied: bool,
) -> Result<Result<Shown, CommitError>, Status> {
    let call = pipeline.call;
    let key = call.served.key(object.namespace(), object.name());
    let mut kept = pipeline.dry_run.then(|| object.clone());
    let (mut stored, shape) = call.served.to_storage_version(object, None).await?;
    let mut bytes = bareboat_wire::encode::persisted(stored.value());
    if !applied
        && shed_managed_fields(call, &mut stored, &mut bytes)
        && let Some(kept) = &mut kept
    {
        kept.remove_meta("managedFields");
    }
    let mut write = Write::create(call.served.resource(), key, bytes).shaped(shape);
    if let Some(definition) = call.served.definition() {
        // It may have been deleted since the request began, and its controller may have looked for objects already.
        write = write.being_part_of(definition.clone());
    }
    if let Some(object) = kept {
        return Ok(call
            .served
            .store()
            .rehearse(write)
            .map(|()| Shown::Object(object)));
    }
    let committed = commit(call, write, None, Some(&stored), held).await?;
    Ok(committed.map(|committed| Shown::Written(committed.entry, stored)))
}
