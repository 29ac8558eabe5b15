//! Diagnostics of requests: the stages of a request with their times, and log lines about requests that are refused,
//! fail or are slow.
//!
//! For other requests, with debug logs off, the cost is a few clock readings. Bodies, tokens and the data of secrets
//! are never logged: see [`explain`].

mod explain;
mod trace;

pub(crate) use explain::{answered, refused};
pub(crate) use trace::{Stage, Trace};

#[cfg(test)]
mod tests;
