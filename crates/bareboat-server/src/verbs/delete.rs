//! DELETE of one object: immediately, or after its finalizers are removed.

pub(super) mod options;

use super::kind_request::KindRequest;
use super::kind_request::Shown;
use super::unstoppable::Unstoppable;
use super::visibility;
use super::write::{Pipeline, commit, durable, retry_on_conflict};
use crate::authz;
use crate::reply::Response;
use crate::request::info::RequestInfo;
use crate::work;
use bareboat_api::admission::Operation;
use bareboat_api::kind::Reservations;
use bareboat_api::status::Details;
use bareboat_api::time::Timestamp;
use bareboat_api::{Object, Status, Str, Value};
use bareboat_storage::{CommitError, Entry, Write};
use bytes::Bytes;
use http::StatusCode;
use options::{DeleteOptions, Propagation};
use std::sync::Arc;

/// The verb needed to delete an unreadable object.
const UNSAFE_DELETE: &str = "unsafe-delete-ignore-read-errors";

/// The result of a deletion.
pub(super) enum Deleted {
    /// The object is gone; this is its last state.
    Gone(Shown, String),
    /// The object stays until its finalizers are removed.
    Waiting(Shown),
    /// The object was unreadable, and is gone.
    Erased,
}

/// Deletes the object the URL names.
pub(crate) async fn delete(call: &KindRequest, body: Bytes) -> Result<Response, Status> {
    let options = DeleteOptions::read(call, &body)?;
    visibility::check_named(call).await?;
    match delete_key(call, &call.key(), &options).await? {
        Deleted::Waiting(shown) => {
            let code = if options.old_orphan == Some(false) {
                StatusCode::ACCEPTED
            } else {
                StatusCode::OK
            };
            call.present(code, shown).await
        }
        Deleted::Gone(shown, _) if call.served.kind.policy.delete_returns_object => {
            call.present(StatusCode::OK, shown).await
        }
        deleted @ (Deleted::Gone(..) | Deleted::Erased) => {
            let uid = match deleted {
                Deleted::Gone(_, uid) => uid,
                _ => String::new(),
            };
            let what = call.served.kind.group_resource();
            let details = Details {
                name: call.ask.info.name.to_string(),
                group: what.group.to_owned(),
                kind: what.resource.to_owned(),
                uid,
                ..Details::default()
            };
            let success = Status::new(200, "", "").with_details(details);
            Ok(crate::reply::status_response(
                &call.ask.headers,
                call.ask.query.get("pretty"),
                call.messages(),
                &success,
            ))
        }
    }
}

/// Deletes the object of a key, after admission.
pub(super) async fn delete_key(
    call: &KindRequest,
    key: &str,
    options: &DeleteOptions,
) -> Result<Deleted, Status> {
    delete_when(call, key, options, Asking::Admission).await
}

/// Deletes the object of a key as part of an operation that was admitted already.
pub(super) async fn delete_admitted(
    call: &KindRequest,
    key: &str,
    options: &DeleteOptions,
) -> Result<Deleted, Status> {
    delete_when(call, key, options, Asking::Nobody).await
}

/// Whether admission runs before an object is deleted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asking {
    Admission,
    Nobody,
}

async fn delete_when(
    call: &KindRequest,
    key: &str,
    options: &DeleteOptions,
    asking: Asking,
) -> Result<Deleted, Status> {
    loop {
        let Some(entry) = call.served.resource().get(key) else {
            let name = key.rsplit('/').next().unwrap_or(key);
            return Err(Status::not_found(call.served.kind.group_resource(), name));
        };
        let attempted = match entry.is_damaged() && options.erases()? {
            true => erase(call, &entry).await?,
            false => attempt(call, &entry, options, asking).await?,
        };
        match attempted {
            Ok(deleted) => return Ok(deleted),
            Err(error) => {
                retry_on_conflict(call, entry.name(), options.version.is_some(), error).await?;
            }
        }
    }
}

async fn attempt(
    call: &KindRequest,
    entry: &Arc<Entry>,
    options: &DeleteOptions,
    asking: Asking,
) -> Result<Result<Deleted, CommitError>, Status> {
    let served = &call.served;
    let kind = &served.kind;
    work::maybe_large(entry.json().len()).await;
    let live = match call.live(entry).await {
        Ok(live) => live,
        // An object that cannot be converted can still be deleted, in its storage version.
        Err(status) => match served.parse(entry) {
            Ok(stored) if stored.api_version() == served.api_version(call.version) => stored,
            _ => return Err(status),
        },
    };
    check_preconditions(call, &live, options)?;
    if let Some(why) = kind.strategy.forbid_delete(&live) {
        return Err(Status::forbidden(kind.group_resource(), live.name(), why));
    }
    let pipeline = Pipeline::deleting(call, options);
    let held = match asking {
        Asking::Admission => {
            pipeline.admit(Operation::Delete, None, Some(&live)).await?;
            pipeline.check(Operation::Delete, None, Some(&live)).await?
        }
        Asking::Nobody => Reservations::default(),
    };
    let held = held.until_done();

    let mut object = live.clone();
    set_collector_finalizers(
        &mut object,
        options.propagation,
        kind.policy.orphan_by_default,
    );
    if let (Some(text), None) = (kind.policy.orphan_warning, options.propagation) {
        call.ask.warnings.add(text);
    }
    let already = object.deletion_timestamp().is_some();
    let stays = kind.strategy.begin_delete(&mut object, &pipeline.context());
    let grace = if kind.policy.graceful_deletion {
        kind.strategy.grace_seconds(&object, options.grace_seconds)
    } else {
        0
    };
    let waits = stays || grace > 0 || object.finalizers().next().is_some();
    let shows_its_end = kind.policy.graceful_deletion || kind.strategy.shows_its_end();
    if !waits && (already || !shows_its_end) {
        return remove(call, entry, live, options.dry_run, held).await;
    }
    if !already {
        if kind.strategy.keeps_generation_on_delete() {
            object.set_meta("deletionTimestamp", Value::string(&pipeline.now));
        } else {
            begin(&mut object, &pipeline.now, grace);
        }
    } else if kind.policy.graceful_deletion {
        let current = object
            .meta("deletionGracePeriodSeconds")
            .and_then(Value::as_i64)
            .unwrap_or(0);
        // A repeated deletion may only shorten the grace period.
        if grace < current {
            object.set_meta(
                "deletionTimestamp",
                Value::from(later(&pipeline.now, grace)),
            );
            object.set_meta("deletionGracePeriodSeconds", Value::Int(grace));
        }
    }
    if options.dry_run {
        let uid = object.uid().to_owned();
        let shown = Shown::Object(object);
        return Ok(Ok(match waits {
            true => Deleted::Waiting(shown),
            false => Deleted::Gone(shown, uid),
        }));
    }
    if !waits {
        // The deletion starts and ends in one commit. Watchers see both, and the last state has a deletion timestamp.
        let (call, entry) = (call.clone(), entry.clone());
        work::wanted().await;
        return Unstoppable::new(async move {
            match begun(&call, &entry, object.clone()).await? {
                Ok(entry) => remove(&call, &entry, object, false, held).await,
                Err(error) => Ok(Err(error)),
            }
        })
        .await;
    }
    let stored = call.encode_for_storage(entry, object).await?;
    if entry.persisted_eq(&stored.bytes) {
        return Ok(Ok(Deleted::Waiting(Shown::Entry(entry.clone()))));
    }
    let write = Write::replace(served.resource(), entry, stored.bytes).shaped(stored.shape);
    let committed = durable(call, write, held).await;
    Ok(committed.map(|committed| Deleted::Waiting(Shown::Entry(committed.entry))))
}

/// Deletes an unreadable object without admission, because there is no object to admit.
async fn erase(
    call: &KindRequest,
    entry: &Arc<Entry>,
) -> Result<Result<Deleted, CommitError>, Status> {
    // Permission to delete does not include permission to delete an unreadable object.
    let blindly = RequestInfo {
        verb: Str::const_new(UNSAFE_DELETE),
        ..RequestInfo::clone(&call.ask.info)
    };
    authz::also(&*call.state.authorizer, &call.ask.user, &blindly).await?;
    tracing::warn!(key = entry.key(), "deleting an unreadable object");
    let write = Write::delete(call.served.resource(), entry);
    let committed = durable(call, write, Reservations::default()).await;
    Ok(committed.map(|_| Deleted::Erased))
}

/// Stores an object with its deletion timestamp.
async fn begun(
    call: &KindRequest,
    entry: &Arc<Entry>,
    object: Object,
) -> Result<Result<Arc<Entry>, CommitError>, Status> {
    let stored = call.encode_for_storage(entry, object).await?;
    let write = Write::replace(call.served.resource(), entry, stored.bytes).shaped(stored.shape);
    let committed = durable(call, write, Reservations::default()).await;
    Ok(committed.map(|committed| committed.entry))
}

/// Marks an object as being deleted.
pub(super) fn begin(object: &mut Object, now: &str, grace: i64) {
    object.set_meta("deletionTimestamp", Value::from(later(now, grace)));
    object.set_meta("deletionGracePeriodSeconds", Value::Int(grace));
    let generation = object.generation();
    if generation > 0 {
        object.set_meta("generation", Value::Int(generation + 1));
    }
}

async fn remove(
    call: &KindRequest,
    entry: &Arc<Entry>,
    live: Object,
    dry_run: bool,
    held: Reservations,
) -> Result<Result<Deleted, CommitError>, Status> {
    let uid = live.uid().to_owned();
    let write = Write::delete(call.served.resource(), entry);
    if dry_run {
        let rehearsed = call.served.store().rehearse(write);
        return Ok(rehearsed.map(|()| Deleted::Gone(Shown::Object(live), uid)));
    }
    let committed = commit(call, write, Some(&live), None, held).await?;
    Ok(committed.map(|committed| {
        let mut last = live;
        last.set_meta(
            "resourceVersion",
            Value::from(committed.revision.to_string()),
        );
        Deleted::Gone(Shown::Object(last), uid)
    }))
}

fn check_preconditions(
    call: &KindRequest,
    live: &Object,
    options: &DeleteOptions,
) -> Result<(), Status> {
    let what = call.served.kind.group_kind();
    if let Some(uid) = options.uid.as_deref().filter(|uid| *uid != live.uid()) {
        let why = format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been deleted and then recreated",
            live.uid()
        );
        return Err(Status::conflict(what, live.name(), why));
    }
    if let Some(version) = options
        .version
        .as_deref()
        .filter(|version| *version != live.resource_version())
    {
        let why = format!(
            "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record ({}). The object might have been modified",
            live.resource_version(),
        );
        return Err(Status::conflict(what, live.name(), why));
    }
    Ok(())
}

/// Sets the finalizers that make the garbage collector handle dependents.
fn set_collector_finalizers(
    object: &mut Object,
    propagation: Option<Propagation>,
    orphan_by_default: bool,
) {
    const ORPHAN: &str = "orphan";
    const FOREGROUND: &str = "foregroundDeletion";
    let asked_before = object
        .finalizers()
        .any(|name| name == ORPHAN || name == FOREGROUND);
    let propagation = match propagation {
        Some(propagation) => propagation,
        None if orphan_by_default && !asked_before => Propagation::Orphan,
        None => return,
    };
    let mut finalizers: Vec<Str> = object
        .finalizers()
        .filter(|name| *name != ORPHAN && *name != FOREGROUND)
        .map(Str::new)
        .collect();
    match propagation {
        Propagation::Orphan => finalizers.push(Str::const_new(ORPHAN)),
        Propagation::Foreground => finalizers.push(Str::const_new(FOREGROUND)),
        Propagation::Background => {}
    }
    object.set_finalizers(finalizers);
}

fn later(now: &str, seconds: i64) -> String {
    let later = (Timestamp::parse(now).ok()).and_then(|time| time.plus_seconds(seconds));
    later.map_or_else(|| now.to_owned(), Timestamp::print_seconds)
}
