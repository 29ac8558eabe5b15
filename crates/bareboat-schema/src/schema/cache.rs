//! Keeps equal sub-schemas once, within a definition and across all of them.

use super::{Node, Schema, SchemaError, parse};
use crate::crd::Conversions;
use bareboat_api::Value;
use bareboat_cel::GoPattern;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Compiles schemas and lets equal parts share memory for as long as some schema uses them.
///
/// The cache holds nothing alive: dropping the last [`Schema`] frees its nodes.
#[derive(Default)]
pub struct SchemaCache {
    shelves: Mutex<Shelves>,
}

#[derive(Default)]
struct Shelves {
    nodes: HashMap<u128, Weak<Node>>,
    patterns: HashMap<Box<str>, Weak<GoPattern>>,
    conversions: HashMap<u128, Weak<Conversions>>,
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
    pub(super) fn pattern(&self, source: &str) -> Arc<GoPattern> {
        let mut shelves = self.lock();
        if let Some(pattern) = shelves.patterns.get(source).and_then(Weak::upgrade) {
            return pattern;
        }
        let pattern = Arc::new(GoPattern::new(source));
        shelves
            .patterns
            .insert(source.into(), Arc::downgrade(&pattern));
        pattern
    }

    /// The conversions of that hash, made now if nobody holds them.
    pub(crate) fn conversions(
        &self,
        id: u128,
        make: impl FnOnce() -> Conversions,
    ) -> Arc<Conversions> {
        if let Some(known) = self.lock().conversions.get(&id).and_then(Weak::upgrade) {
            return known;
        }
        // Making them compiles schemas, so the lock must be free meanwhile.
        let made = Arc::new(make());
        let mut shelves = self.lock();
        if let Some(known) = shelves.conversions.get(&id).and_then(Weak::upgrade) {
            return known;
        }
        shelves.conversions.insert(id, Arc::downgrade(&made));
        made
    }

    /// How many parts are known, be it that nobody uses them any more.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets what nobody uses any more, rather than when there is much of it.
    pub fn forget_unused(&self) {
        self.lock().forget_unused();
    }

    fn sweep(&self) {
        let mut shelves = self.lock();
        if shelves.len() >= shelves.sweep_at.max(1024) {
            shelves.forget_unused();
        }
    }
}

impl Shelves {
    fn forget_unused(&mut self) {
        self.nodes.retain(|_, node| node.strong_count() > 0);
        self.patterns.retain(|_, held| held.strong_count() > 0);
        self.conversions.retain(|_, held| held.strong_count() > 0);
        self.sweep_at = 2 * self.len();
        // After a great many were in use at once, the table itself is most of what is left.
        if self.nodes.capacity() > 4 * self.nodes.len() {
            self.nodes.shrink_to_fit();
            self.patterns.shrink_to_fit();
        }
    }

    fn len(&self) -> usize {
        self.nodes.len() + self.patterns.len() + self.conversions.len()
    }
}

impl std::fmt::Debug for SchemaCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SchemaCache({} parts)", self.lock().len())
    }
}
