//! What a server asks of the system for its own process.
//!
//! [`Polite`] threads leave the processor to others, and [`release_code`] gives back pages of code that only the start of a
//! program needs.

mod pages;
mod priority;

pub use pages::release_code;
pub use priority::Polite;
