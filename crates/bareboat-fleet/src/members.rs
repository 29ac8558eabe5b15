//! Members: what is known about each, and the tasks that keep it up to date.
//!
//! The controller follows PediaClusters and starts a session for each; the session probes the member, asks what it serves
//! and runs a task per type. What they find goes into a [`state::MemberState`], from which views read and the status of the
//! PediaCluster is written.

pub(crate) mod conditions;
pub(crate) mod controller;
pub(crate) mod definitions;
pub(crate) mod note;
pub(crate) mod profiles;
mod restore;
pub(crate) mod session;
mod shards;
pub(crate) mod share;
pub(crate) mod state;
pub(crate) mod status;
pub(crate) mod table;
