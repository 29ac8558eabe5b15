//! Bytes to values and back: JSON, YAML and protobuf as Kubernetes speaks them.
//!
//! Nothing here knows HTTP, does I/O or judges an object: a reader gives a [`Value`] and the
//! findings that strict clients want to hear about, a writer gives bytes.
//!
//! [`Value`]: bareboat_api::Value

pub mod encode;
pub mod json;
pub mod openapi;
mod parsed;
pub mod proto;
#[cfg(test)]
mod vectors;
pub mod yaml;

pub use parsed::{ParseError, Parsed};
