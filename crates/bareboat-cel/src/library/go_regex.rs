//! Go's regular expressions: parsed by Go's rules, bounded in size, compiled at first use.
//!
//! Go's dialect and Rust's differ in many details, so patterns are parsed here (`parse`) and not by
//! the `regex` crate. A parsed pattern ([`Tree`]) becomes a small program (`program`, `search`),
//! whose size does not depend on the number of characters in a class. Small patterns that are used
//! often are also compiled by `regex-automata`, which is faster (`compiled`). One store with a
//! limit in bytes keeps the compiled patterns (`store`).

mod class;
mod compiled;
mod names;
mod parse;
mod program;
mod search;
mod store;
#[cfg(test)]
mod tests;
mod tree;

pub(crate) use compiled::Compiled;
pub(crate) use search::{Steps, TooManySteps};
pub use store::forget_idle_patterns;
pub(crate) use store::{known, shared};

use parking_lot::RwLock;
use std::sync::{Arc, Weak};

/// The work and memory needed to compile a pattern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PatternSize {
    /// The instructions of the program, with counted repetitions expanded.
    pub instructions: u64,
    /// The character ranges collected for its classes.
    pub ranges: u64,
}

/// Checks that Go accepts a pattern and that it is not too large, without compiling it.
pub fn check_pattern(pattern: &str) -> Result<PatternSize, String> {
    parse::parse(pattern).map(|tree| tree.size())
}

/// A Go pattern that is compiled at its first match. The compiled form belongs to a store that all
/// patterns share. The store may drop it at any time; the next match compiles it again.
#[derive(Debug)]
pub struct GoPattern {
    source: Box<str>,
    compiled: RwLock<Weak<Compiled>>,
}

impl GoPattern {
    /// Returns a pattern that is not compiled yet.
    pub fn new(source: &str) -> GoPattern {
        GoPattern {
            source: source.into(),
            compiled: RwLock::default(),
        }
    }

    /// Returns the source text of the pattern.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns whether some part of the text matches. The error is Go's reason for rejecting the
    /// pattern.
    pub fn matches(&self, text: &str) -> Result<bool, String> {
        let held = self.compiled.read().upgrade();
        let compiled = match held {
            Some(compiled) => compiled,
            None => {
                let compiled = shared(&self.source)?;
                *self.compiled.write() = Arc::downgrade(&compiled);
                compiled
            }
        };
        // Unlimited steps only run out when the client has disconnected.
        let found = compiled.is_match(text, &mut Steps::unlimited());
        Ok(found.unwrap_or(false))
    }
}
