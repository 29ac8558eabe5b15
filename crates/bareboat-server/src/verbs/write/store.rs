//! Converts errors of the store into Statuses.

use crate::verbs::kind_request::KindRequest;
use bareboat_api::status::MODIFIED;
use bareboat_api::{Object, Status};
use bareboat_storage::CommitError;
use bytes::Bytes;

/// Why nothing is created of a kind whose definition is being deleted.
pub(super) const ENDING: &str =
    "create not allowed while custom resource definition is terminating";

/// Drops the managed fields of an object that is too large to store with them; returns whether it did.
///
/// They can be large, and storing an object without them is better than refusing it. An apply keeps them: without them
/// it would lose what it applied.
// Upstream: endpoints/handlers/create.go, update.go and patch.go, isTooLargeError.
pub(crate) fn shed_managed_fields(
    call: &KindRequest,
    object: &mut Object,
    bytes: &mut Bytes,
) -> bool {
    let too_large = bytes.len() > call.served.store().max_value_bytes();
    if !too_large || object.remove_meta("managedFields").is_none() {
        return false;
    }
    *bytes = bareboat_wire::encode::persisted(object.value());
    true
}

/// Converts a failed commit into a Status.
pub(crate) fn commit_error(call: &KindRequest, name: &str, error: CommitError) -> Status {
    let what = call.served.kind.group_resource();
    let status = match &error {
        CommitError::AlreadyExists { found } => {
            let mut status = Status::already_exists(what, name);
            if found.facets().deletion_timestamp.is_some() {
                status.message = format!("object is being deleted: {}", status.message);
            }
            status
        }
        CommitError::Conflict { .. } => Status::conflict(what, name, MODIFIED),
        CommitError::NotFound => Status::not_found(what, name),
        CommitError::Outdated => Status::conflict(
            what,
            name,
            "another server changed what this write depends on; try again",
        ),
        CommitError::Ending => Status::forbidden(what, name, ENDING),
        CommitError::TooLarge { max, .. } => Status::too_large(*max),
        CommitError::TooMany { .. } => Status::new(413, "RequestEntityTooLarge", error.to_string()),
        CommitError::Full => {
            let why = "no space is left for the log of the store; reads go on, free some space to write again";
            Status::new(507, "InternalError", why)
        }
        CommitError::ReadOnly => Status::unavailable(
            "nothing was written: the disk or the database of the store refuses writes; reads go on",
        ),
        CommitError::Busy => Status::unavailable(
            "nothing was written: another program holds a lock on the store; try again later",
        ),
        CommitError::Unreachable => {
            Status::unavailable("nothing was written: the store cannot be reached; try again later")
        }
        // 500 without a retry hint: clients that retry writes automatically must not repeat this one.
        CommitError::Unknown(_) => Status::new(
            500,
            "InternalError",
            "the outcome of this write is not known: the log of the store failed while it was written, and the server is \
             about to stop; look at the object before you write it again",
        ),
        CommitError::Poisoned(_) | CommitError::Closed => Status::unavailable(
            "nothing was written: the store takes no writes, and the server is about to stop",
        ),
        other => Status::internal(other),
    };
    // The store explains its own failures; the rest is what the client did.
    match status.code {
        500.. => status.caused_by(error),
        _ => status,
    }
}
