//! The built-in kinds: facts, defaults, strategies.
//!
//! Neither HTTP nor storage: everything here is a table or a function from values to values.

mod actions;
pub mod admission;
mod columns;
mod defaults;
pub mod describe;
pub mod facts;
pub mod kinds;
pub mod quota;
mod reach;
mod resources;
pub mod services;
pub mod shape;
mod strategies;
pub mod typed;

/// The form in which an object of a built-in kind is posted to a subresource.
///
/// # Panics
///
/// If there is no such kind.
pub fn posted_form(group: &str, version: &str, kind: &str) -> bareboat_api::kind::Form {
    actions::form(group, version, kind)
}
