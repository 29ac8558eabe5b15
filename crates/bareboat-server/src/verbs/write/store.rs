//! What the store says of a write, in the words of the API.

use crate::verbs::call::Call;
use bareboat_api::Status;
use bareboat_api::status::MODIFIED;
use bareboat_storage::CommitError;

/// A failed commit as an answer.
pub(crate) fn commit_error(call: &Call, name: &str, error: CommitError) -> Status {
    let what = call.served.kind.group_resource();
    match error {
        CommitError::AlreadyExists { found } => {
            let mut status = Status::already_exists(what, name);
            if found.facets().deletion_timestamp.is_some() {
                status.message = format!("object is being deleted: {}", status.message);
            }
            status
        }
        CommitError::Conflict { .. } => Status::conflict(what, name, MODIFIED),
        CommitError::NotFound => Status::not_found(what, name),
        CommitError::TooLarge { max, .. } => Status::too_large(max),
        CommitError::Full => {
            let why = "no space is left for the log of the store; reads go on, free some space to write again";
            Status::new(507, "InternalError", why)
        }
        CommitError::Poisoned(_) | CommitError::Closed => {
            Status::unavailable("the store takes no writes; the server is about to stop")
        }
        other => Status::internal(other),
    }
}
