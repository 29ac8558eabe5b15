//! The built-in kinds: facts, defaults, strategies.
//!
//! Neither HTTP nor storage: everything here is a table or a function from values to values.

mod columns;
mod defaults;
pub mod duration;
pub mod facts;
pub mod kinds;
pub mod quantity;
mod reach;
pub mod shape;
mod strategies;
pub mod time;
pub mod typed;
