//! Conversion between bytes and values: JSON, YAML and protobuf in Kubernetes' dialects.
//!
//! This crate knows no HTTP, does no I/O and validates no object. A parser returns a [`Value`] and
//! the findings for strict decoding, a writer returns bytes.
//!
//! [`Value`]: bareboat_api::Value

// Documentation names the features that items need, where it is built with a nightly compiler, as docs.rs does.
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod encode;
pub mod json;
pub mod openapi;
mod parsed;
pub mod proto;
pub mod yaml;

pub use parsed::{ParseError, Parsed};
