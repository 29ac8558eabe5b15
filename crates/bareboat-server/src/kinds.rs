//! The catalog of served kinds, and how each kind is stored, rendered or computed.

pub mod catalog;
pub mod computed;
pub mod connector;
pub mod custom;
pub mod stored_kind;

pub use custom::kind_of_definition;
