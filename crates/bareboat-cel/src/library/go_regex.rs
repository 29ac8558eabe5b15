//! Go's regular expressions: parsed by Go's rules, bounded in size, compiled when first used.
//!
//! Go's dialect and Rust's differ in many small things, so patterns are parsed here (`parse`) and not by
//! the `regex` crate. A parsed pattern ([`Tree`]) becomes a small program of our own (`program`, `search`),
//! whose size does not depend on how many characters a class has. Patterns that are used often and are
//! small are also compiled by `regex-automata`, which is faster (`compiled`). One store with a limit in
//! bytes keeps what was compiled (`store`).

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

/// How much work and memory a pattern takes when it is compiled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PatternSize {
    /// The instructions of the program: counted repetitions are written out.
    pub instructions: u64,
    /// The ranges of characters that were put together for its classes.
    pub ranges: u64,
}

/// Checks that Go accepts a pattern and that it is not too large. Nothing is compiled.
pub fn check_pattern(pattern: &str) -> Result<PatternSize, String> {
    parse::parse(pattern).map(|tree| tree.size())
}

/// A Go pattern that is compiled when it is first matched. The compiled form belongs to a store that all
/// patterns share; it may drop it at any time, and the next match compiles it again.
#[derive(Debug)]
pub struct GoPattern {
    source: Box<str>,
    compiled: RwLock<Weak<Compiled>>,
}

impl GoPattern {
    /// A pattern that is not compiled yet.
    pub fn new(source: &str) -> GoPattern {
        GoPattern {
            source: source.into(),
            compiled: RwLock::default(),
        }
    }

    /// The pattern as it was written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether some part of the text matches. The error says why Go refuses the pattern.
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
        // Steps without a limit run out only when the client has left.
        let found = compiled.is_match(text, &mut Steps::unlimited());
        Ok(found.unwrap_or(false))
    }
}
