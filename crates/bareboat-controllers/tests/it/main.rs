//! Controllers against a whole server in memory, one module each.
#![allow(clippy::unwrap_used)]

mod api_services;
mod certificates;
mod definitions;
mod endpoints;
mod every_namespace;
mod expiry;
mod extension_authentication;
mod fixture;
mod garbage;
mod identities;
mod identity_lease;
mod leader_election;
mod namespaces;
mod pods;
mod quotas;
mod roles;
mod secret_tokens;
mod start;
