//! Conversion between bytes and values: JSON, YAML and protobuf in Kubernetes' dialects.
//!
//! This crate knows no HTTP, does no I/O and validates no object. A parser returns a [`Value`] and
//! the findings for strict decoding, a writer returns bytes.
//!
//! [`Value`]: bareboat_api::Value

pub mod encode;
pub mod json;
pub mod openapi;
mod parsed;
pub mod proto;
pub mod yaml;

pub use parsed::{ParseError, Parsed};
