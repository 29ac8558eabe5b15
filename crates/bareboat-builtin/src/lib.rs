//! The built-in kinds: facts, defaults, strategies.
//!
//! This crate has tables and pure functions only; HTTP and storage are elsewhere.

mod actions;
pub mod admission;
mod columns;
mod defaults;
pub mod describe;
pub mod facts;
pub mod kinds;
mod lines;
pub mod quota;
mod reach;
mod resources;
pub mod services;
pub mod shape;
mod strategies;
pub mod typed;

/// Returns the type of an object of a built-in kind that is posted to a subresource.
///
/// # Panics
///
/// If the kind does not exist.
pub fn posted_type(group: &str, version: &str, kind: &str) -> bareboat_api::kind::PostedType {
    actions::posted_type(group, version, kind)
}
