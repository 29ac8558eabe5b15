//! Reading a request: what it asks for, with which options, in which media type.

pub mod ask;
pub mod body;
pub mod duration;
pub mod info;
pub mod negotiate;
pub mod options;
pub(crate) mod parse;
pub mod query;
