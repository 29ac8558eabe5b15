//! Controllers against a whole server in memory, one module each.
#![allow(clippy::unwrap_used)]

mod definitions;
mod expiry;
mod garbage;
mod namespaces;
mod pods;
mod residents;
mod start;
mod world;
