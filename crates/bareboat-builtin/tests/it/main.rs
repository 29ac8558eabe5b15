//! Compares the built-in kinds with recorded data: golden objects and a transcript of a real server.
//!
//! The data is read in place; `bareboat_vectors` finds it.
#![allow(clippy::unwrap_used, missing_docs)]

mod vectors;

mod definitions;
mod discovery;
mod golden;
mod growth;
mod replay;
mod rules;
mod transcript;
