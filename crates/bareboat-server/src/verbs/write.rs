//! The way of a write: decode → default → admission → prepare → validate → store.
//!
//! Create, update, every patch and apply all walk through here; they differ only in how the new
//! object comes about.

pub(crate) mod change;
mod companions;
pub(crate) mod decode;
mod metadata;
mod pipeline;
mod store;

pub(super) use companions::{commit, durable};
pub(super) use metadata::{generate_name, now, place};
pub(super) use pipeline::{Pipeline, Ready};
pub(super) use store::{commit_error, shed_managed_fields};
