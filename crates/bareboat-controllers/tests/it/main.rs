//! Controllers against a whole server in memory, one module each.
#![allow(clippy::unwrap_used)]

mod api_services;
mod definitions;
mod expiry;
mod garbage;
mod namespaces;
mod pods;
mod quotas;
mod residents;
mod roles;
mod start;
mod world;
