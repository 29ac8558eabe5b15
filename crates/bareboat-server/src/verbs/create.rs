//! POST of a new object.

use super::call::Call;
use super::present::Shown;
use super::write::change::Edited;
use super::write::{
    Pipeline, Ready, commit, commit_error, decode, generate_name, shed_managed_fields,
};
use crate::managed;
use crate::reply::Response;
use crate::request::options::WriteOptions;
use bareboat_api::{Status, Value};
use bareboat_storage::{CommitError, Write};
use bytes::Bytes;
use http::StatusCode;

/// How many generated names are tried.
const TRIES: usize = 8;

/// Creates the object in the body.
pub(crate) async fn create(call: &Call, body: Bytes) -> Result<Response, Status> {
    let options = WriteOptions::parse(&call.ask.query, "CreateOptions")?;
    let object = decode::object(call, &body, options.field_validation)?;
    let shown = create_object(call, Edited::new(object), &options).await?;
    call.present(StatusCode::CREATED, shown).await
}

/// Creates a decoded object; also the way of an apply or update that finds nothing.
pub(super) async fn create_object(
    call: &Call,
    edited: Edited,
    options: &WriteOptions,
) -> Result<Shown, Status> {
    let object = &edited.object;
    if !object.name().is_empty() || object.meta_str("generateName").is_empty() {
        let name = object.name().to_owned();
        let (mut next, mut tries) = (edited, 0);
        return loop {
            tries += 1;
            let companions = call.served.kind.strategy.companions(&next.object);
            let spare = (!companions.is_empty()).then(|| next.clone());
            match (attempt(call, next, options).await?, spare) {
                // Not the object itself, for it is new: something that is to stand beside it changed meanwhile.
                (Err(CommitError::Conflict { .. }), Some(again)) if tries < TRIES => next = again,
                (created, _) => break created.map_err(|error| commit_error(call, &name, error)),
            }
        };
    }
    let mut tries = 0;
    loop {
        tries += 1;
        let mut draft = edited.clone();
        let name = generate_name(draft.object.meta_str("generateName"));
        draft.object.set_meta("name", Value::string(&name));
        match attempt(call, draft, options).await? {
            Ok(shown) => return Ok(shown),
            Err(CommitError::AlreadyExists { .. } | CommitError::Conflict { .. })
                if tries < TRIES => {}
            Err(error @ CommitError::AlreadyExists { .. }) => {
                let mut status = commit_error(call, &name, error).retry_after(1);
                status
                    .message
                    .push_str("; the server was not able to generate a unique name for the object");
                return Err(status);
            }
            Err(error) => return Err(commit_error(call, &name, error)),
        }
    }
}

/// Takes a named object all the way into the store.
async fn attempt(
    call: &Call,
    edited: Edited,
    options: &WriteOptions,
) -> Result<Result<Shown, CommitError>, Status> {
    let manager = call.ask.manager(options.field_manager.as_deref());
    let pipeline = Pipeline::new(call, options.dry_run);
    let Edited {
        mut object,
        managed: has_managers,
    } = edited;
    let turn = call.served.turn(&object).await;
    if !has_managers {
        object = managed::on_create(call, object, manager, &pipeline.now).await?;
    }
    let mut ready = pipeline.create(object).await?;
    ready.held.append(turn);
    store(&pipeline, ready, has_managers).await
}

async fn store(
    pipeline: &Pipeline<'_>,
    Ready { object, held }: Ready,
    applied: bool,
) -> Result<Result<Shown, CommitError>, Status> {
    let call = pipeline.call;
    let key = call.served.key(object.namespace(), object.name());
    let mut kept = pipeline.dry_run.then(|| object.clone());
    let (mut stored, shape) = call.served.to_stored(object, None).await?;
    let mut bytes = bareboat_wire::encode::stored(stored.value());
    if !applied
        && shed_managed_fields(call, &mut stored, &mut bytes)
        && let Some(kept) = &mut kept
    {
        kept.remove_meta("managedFields");
    }
    let write = Write::create(call.served.resource(), key, bytes).shaped(shape);
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
