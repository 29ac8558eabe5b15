//! The whole server, one module a feature: mostly in-process, over sockets where sockets matter.
#![allow(missing_docs, clippy::unwrap_used)]

mod actions;
mod auth;
mod bad_input;
mod conversion;
mod custom;
mod definitions;
mod discovery;
mod errors;
mod flow;
mod limits;
mod lists;
mod many_definitions;
mod memory;
mod openapi;
mod profiles;
mod resets;
mod scales;
mod services;
mod socket;
mod subresources;
mod support;
mod transcripts;
mod vectors;
mod watches;
mod writes;
