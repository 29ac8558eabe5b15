//! Clusterpedia's URLs over the shelf: the objects of many API servers, called members, as one API.
//!
//! This crate reads the shelf and has no connections of its own. What it needs to know about members, and the requests that a
//! member must answer itself, go through [`Members`].

pub mod members;

pub use members::{Fleet, LiveRequest, Member, Members, OtherVersion, SyncedType, VersionSource};
