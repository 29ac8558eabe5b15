//! Audit without I/O: policies, events, and the redaction of confidential data.
//!
//! The server decides where and when events are written.

pub mod event;
mod level;
mod payload;
pub mod policy;
mod redact;

pub use bareboat_api::is_confidential;
pub use event::Event;
pub use level::{Level, Stage, Stages};
pub use payload::{Messages, Payload};
pub use policy::{Policy, PolicyError};
