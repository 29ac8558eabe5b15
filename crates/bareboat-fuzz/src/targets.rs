//! The targets, one file a reader or a family of them.

pub(crate) mod cel;
pub(crate) mod definition;
pub(crate) mod http;
pub(crate) mod patch;
pub(crate) mod protobuf;
pub(crate) mod schema;
pub(crate) mod selector;
pub(crate) mod spdy;
pub(crate) mod text;
