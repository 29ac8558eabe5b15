//! Audit without I/O: policies, events, and what must be left out of them.
//!
//! Where events are written, and when, is left to the server.

mod confidential;
pub mod event;
mod level;
mod payload;
pub mod policy;
mod redact;

pub use confidential::is_confidential;
pub use event::Event;
pub use level::{Level, Stage, Stages};
pub use payload::{Messages, Payload};
pub use policy::{Policy, PolicyError};
