//! Keeps equal sub-schemas once, within a definition and across all of them.

use super::{Node, Schema, SchemaError, parse};
use crate::pattern::Pattern;
use bareboat_api::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Compiles schemas and lets equal parts share memory for as long as some schema uses them.
///
/// The cache holds nothing alive: dropping the last [`Schema`] frees its nodes.
#[derive(Debug, Default)]
pub struct SchemaCache {
    shelves: Mutex<Shelves>,
}

#[derive(Debug, Default)]
struct Shelves {
    nodes: HashMap<u128, Weak<Node>>,
    patterns: HashMap<Box<str>, Weak<Pattern>>,
    /// How many entries there may be before the dead ones are swept out.
    sweep_at: usize,
}

impl SchemaCache {
    /// A cache that knows nothing yet.
    pub fn new() -> SchemaCache {
        SchemaCache::default()
    }

    /// Compiles an `openAPIV3Schema`, sharing what an earlier schema already holds.
    pub fn parse(&self, schema: &Value) -> Result<Schema, SchemaError> {
        let root = parse::Parser::new(self).root(schema)?;
        self.sweep();
        Ok(Schema { root })
    }

    /// The node of that hash, made now if nobody holds one.
    pub(super) fn node(&self, id: u128, make: impl FnOnce() -> Node) -> Arc<Node> {
        if let Some(node) = self.lock().nodes.get(&id).and_then(Weak::upgrade) {
            return node;
        }
        // Making a node asks for patterns, so the lock must be free meanwhile.
        let made = Arc::new(make());
        let mut shelves = self.lock();
        if let Some(node) = shelves.nodes.get(&id).and_then(Weak::upgrade) {
            return node;
        }
        shelves.nodes.insert(id, Arc::downgrade(&made));
        made
    }

    fn lock(&self) -> MutexGuard<'_, Shelves> {
        self.shelves.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The pattern of that text; compiled when it is first matched.
    pub(super) fn pattern(&self, source: &str) -> Arc<Pattern> {
        let mut shelves = self.lock();
        if let Some(pattern) = shelves.patterns.get(source).and_then(Weak::upgrade) {
            return pattern;
        }
        let pattern = Arc::new(Pattern::new(source));
        shelves
            .patterns
            .insert(source.into(), Arc::downgrade(&pattern));
        pattern
    }

    fn sweep(&self) {
        let mut shelves = self.lock();
        let held = shelves.nodes.len() + shelves.patterns.len();
        if held < shelves.sweep_at.max(1024) {
            return;
        }
        shelves.nodes.retain(|_, node| node.strong_count() > 0);
        shelves
            .patterns
            .retain(|_, pattern| pattern.strong_count() > 0);
        shelves.sweep_at = 2 * (shelves.nodes.len() + shelves.patterns.len());
    }
}
