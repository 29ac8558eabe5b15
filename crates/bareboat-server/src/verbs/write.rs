//! The steps of a write: decode → default → admission → prepare → validate → store.
//!
//! Create, update, patch and apply all use these steps; they differ only in how the new object is made.

pub(crate) mod change;
mod commit;
mod companions;
pub(crate) mod decode;
mod metadata;
mod pipeline;
mod store;

pub(super) use commit::{
    authorize_again, check_deadline, commit, conclude, durable, retry_on_conflict,
};
pub(super) use metadata::place;
pub(super) use pipeline::{Pipeline, Ready};
pub(super) use store::{commit_error, shed_managed_fields};
