//! The built-in kinds against recorded truth: golden objects and a transcript of a real server.
//!
//! The data is read in place from `BAREBOAT_VECTORS`; where it is absent the tests say so and pass.
#![allow(clippy::unwrap_used, missing_docs)]

mod vectors;

mod discovery;
mod golden;
mod growth;
mod replay;
mod rules;
mod transcript;
