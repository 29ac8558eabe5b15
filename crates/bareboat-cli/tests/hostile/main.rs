//! Hostile clients against the real program over real sockets, while another client works: other clients do not wait,
//! memory stays bounded, and unauthenticated clients add no metrics.
//!
//! Every test has its own server, and they run one at a time, because each measures waits or memory.
#![allow(clippy::unwrap_used)]

mod bodies;
mod client;
mod connections;
mod converter;
mod errors;
mod floods;
mod http2;
mod memory;
mod metrics;
mod policies;
mod pulse;
mod stalls;
mod storms;
mod tokens;
mod victim;

#[allow(dead_code)]
#[path = "../e2e/process.rs"]
mod process;
#[allow(dead_code)]
#[path = "../e2e/server.rs"]
mod server;
