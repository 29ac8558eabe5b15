//! A compiled pattern: our own program, and a faster form for small patterns that are used often.

use super::PatternSize;
use super::program::Program;
use super::search::{Steps, TooManySteps, Want};
use super::tree::{Id, Look, Node, Tree};
use regex_automata::meta::Regex;
use regex_syntax::hir::{self, Class, Hir, Repetition};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

/// The number of uses before the faster form is built.
const OFTEN: u32 = 32;
/// The maximum estimated number of states for the faster form.
const FAST_STATES: u64 = 2000;
/// The maximum tree height for the faster form, which is built recursively.
const FAST_HEIGHT: u32 = 64;
/// The maximum memory of the automaton of the faster form.
const FAST_BYTES: usize = 256 << 10;
/// The maximum memory of the matching tables of the faster form.
const FAST_TABLES: usize = 64 << 10;
/// The maximum of text length times states for the faster form, which cannot be interrupted. Our
/// own program can.
const FAST_WORK: u64 = 16 << 20;

/// The maximum text length for finding matches with the faster form, which counts no steps.
const SHORT: usize = 1024;

/// A compiled pattern.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(super) source: Arc<str>,
    /// Set by every use, cleared by the store when it looks for unused patterns.
    pub(super) used: AtomicBool,
    uses: AtomicU32,
    size: PatternSize,
    program: Program,
    states: u64,
    fast: OnceLock<Option<Box<Regex>>>,
}

impl Compiled {
    pub(super) fn new(source: &str, tree: &Tree) -> Compiled {
        let facts = tree.fact(tree.root);
        let small = facts.states <= FAST_STATES && facts.height <= FAST_HEIGHT;
        let fast = OnceLock::new();
        if !small {
            let _ = fast.set(None);
        }
        Compiled {
            source: source.into(),
            used: AtomicBool::new(false),
            uses: AtomicU32::new(0),
            size: tree.size(),
            program: Program::new(tree),
            states: facts.states,
            fast,
        }
    }

    /// Returns the memory of the pattern, including its matching tables.
    pub(super) fn bytes(&self) -> usize {
        let fast = match self.fast.get() {
            Some(Some(regex)) => regex.memory_usage() + FAST_TABLES,
            _ => 0,
        };
        256 + self.source.len() + self.program.bytes() + fast
    }

    /// Returns the faster form, if there is one and the text is not too long for it.
    fn fast(&self, text: &str) -> Option<&Regex> {
        self.used.store(true, Ordering::Relaxed);
        if self.states.saturating_mul(text.len() as u64) > FAST_WORK {
            return None;
        }
        if let Some(fast) = self.fast.get() {
            return fast.as_deref();
        }
        if self.uses.fetch_add(1, Ordering::Relaxed) < OFTEN {
            return None;
        }
        let before = self.bytes();
        let mut made = false;
        let fast = self.fast.get_or_init(|| {
            made = true;
            let tree = super::parse::parse(&self.source).ok()?;
            build(&tree).map(Box::new)
        });
        if made {
            super::store::grown(self, self.bytes() - before);
        }
        fast.as_deref()
    }

    /// Returns the number of instructions and ranges.
    pub(crate) fn size(&self) -> PatternSize {
        self.size
    }

    /// Returns whether some part of a text matches.
    pub(crate) fn is_match(&self, text: &str, steps: &mut Steps) -> Result<bool, TooManySteps> {
        if let Some(regex) = self.fast(text) {
            return Ok(regex.is_match(text));
        }
        Ok(self.program.find(text, 0, Want::Any, steps)?.is_some())
    }

    /// Returns the first match at or after a position.
    pub(crate) fn find_at(
        &self,
        text: &str,
        from: usize,
        steps: &mut Steps,
    ) -> Result<Option<(usize, usize)>, TooManySteps> {
        // Finding one match after another can take quadratic time, which must be counted.
        if text.len() <= SHORT
            && let Some(regex) = self.fast(text)
        {
            let input = regex_automata::Input::new(text).range(from..);
            let found = regex.search(&input);
            return Ok(found.map(|found| (found.start(), found.end())));
        }
        self.program.find(text, from, Want::Place, steps)
    }
}

/// Builds the faster form; `None` if it becomes too large.
fn build(tree: &Tree) -> Option<Regex> {
    let config = Regex::config()
        .nfa_size_limit(Some(FAST_BYTES))
        .onepass_size_limit(Some(FAST_BYTES))
        .hybrid_cache_capacity(FAST_TABLES);
    let hir = translate(tree, tree.root);
    Regex::builder().configure(config).build_from_hir(&hir).ok()
}

fn translate(tree: &Tree, id: Id) -> Hir {
    let all = |parts: &[Id]| parts.iter().map(|part| translate(tree, *part)).collect();
    match tree.node(id) {
        Node::Empty => Hir::empty(),
        Node::Char(character) => Hir::literal(character.to_string().into_bytes()),
        Node::Class(class) => Hir::class(Class::Unicode(tree.classes[*class as usize].to_class())),
        Node::Look(look) => Hir::look(match look {
            Look::TextStart => hir::Look::Start,
            Look::TextEnd => hir::Look::End,
            Look::LineStart => hir::Look::StartLF,
            Look::LineEnd => hir::Look::EndLF,
            Look::WordBoundary => hir::Look::WordAscii,
            Look::NoWordBoundary => hir::Look::WordAsciiNegate,
        }),
        Node::Concat(parts) => Hir::concat(all(parts)),
        Node::Alternate(parts) => Hir::alternation(all(parts)),
        Node::Repeat {
            sub,
            min,
            max,
            greedy,
        } => Hir::repetition(Repetition {
            min: *min,
            max: *max,
            greedy: *greedy,
            sub: Box::new(translate(tree, *sub)),
        }),
    }
}
