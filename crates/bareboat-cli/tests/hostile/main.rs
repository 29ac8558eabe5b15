//! Hostile clients against the real program over real sockets, while another client goes on with
//! its work: other clients do not wait, memory stays bounded, and strangers leave no trace in the metrics.
//!
//! Every test has a server of its own, and they run one at a time: each measures waits or memory.
#![allow(clippy::unwrap_used)]

mod client;
mod connections;
mod http2;
mod memory;
mod metrics;
mod pulse;
mod stalls;
mod victim;

#[allow(dead_code)]
#[path = "../e2e/process.rs"]
mod process;
#[allow(dead_code)]
#[path = "../e2e/server.rs"]
mod server;
