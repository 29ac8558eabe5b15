//! Parses requests: target, options, media types, body.

pub mod ask;
pub mod body;
pub mod duration;
pub mod info;
pub mod negotiate;
pub mod options;
pub(crate) mod parse;
pub mod query;
