//! Stores equal sub-schemas once, within a definition and across all definitions.

use super::{Node, Schema, SchemaError, parse};
use crate::rules::Pattern;
use bareboat_api::Value;
use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Compiles schemas; equal parts share memory while some schema uses them.
///
/// The cache holds weak references only: dropping the last [`Schema`] frees its nodes.
#[derive(Default)]
pub struct SchemaCache {
    shelves: Mutex<Shelves>,
}

#[derive(Default)]
struct Shelves {
    nodes: HashMap<u128, Weak<Node>>,
    patterns: HashMap<Box<str>, Weak<Pattern>>,
    /// What definitions keep besides schemas, such as their conversions.
    others: HashMap<u128, Weak<dyn Any + Send + Sync>>,
    /// The number of entries at which dead ones are removed.
    sweep_at: usize,
}

impl SchemaCache {
    /// Returns an empty cache.
    pub fn new() -> SchemaCache {
        SchemaCache::default()
    }

    /// Compiles an `openAPIV3Schema` and shares parts with earlier schemas.
    pub fn parse(&self, schema: &Value) -> Result<Schema, SchemaError> {
        let root = parse::Parser::new(self).root(schema)?;
        self.sweep();
        Ok(Schema { root })
    }

    /// Returns the node with that hash, and creates it if it is not in use.
    pub(super) fn node(&self, id: u128, make: impl FnOnce() -> Node) -> Arc<Node> {
        if let Some(node) = self.lock().nodes.get(&id).and_then(Weak::upgrade) {
            return node;
        }
        // Creating a node looks up patterns, so the lock must be free meanwhile.
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

    /// Returns the pattern of that text; it is compiled at its first match.
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

    /// Returns what has that hash, and creates it if it is not in use.
    #[cfg(feature = "expressions")]
    pub(crate) fn shared<T: Send + Sync + 'static>(
        &self,
        id: u128,
        make: impl FnOnce() -> T,
    ) -> Arc<T> {
        if let Some(known) = self.lock().other(id) {
            return known;
        }
        // Creating it compiles schemas, so the lock must be free meanwhile.
        let made = Arc::new(make());
        let mut shelves = self.lock();
        if let Some(known) = shelves.other(id) {
            return known;
        }
        let kept: Arc<dyn Any + Send + Sync> = made.clone();
        shelves.others.insert(id, Arc::downgrade(&kept));
        made
    }

    /// Returns the number of entries, including unused ones.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Returns whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes unused entries now.
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
    #[cfg(feature = "expressions")]
    fn other<T: Send + Sync + 'static>(&self, id: u128) -> Option<Arc<T>> {
        self.others.get(&id)?.upgrade()?.downcast().ok()
    }

    fn forget_unused(&mut self) {
        self.nodes.retain(|_, node| node.strong_count() > 0);
        self.patterns.retain(|_, held| held.strong_count() > 0);
        self.others.retain(|_, held| held.strong_count() > 0);
        self.sweep_at = 2 * self.len();
        // After many entries were in use at once, most of the remaining memory is the table itself.
        if self.nodes.capacity() > 4 * self.nodes.len() {
            self.nodes.shrink_to_fit();
            self.patterns.shrink_to_fit();
        }
    }

    fn len(&self) -> usize {
        self.nodes.len() + self.patterns.len() + self.others.len()
    }
}

impl std::fmt::Debug for SchemaCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SchemaCache({} parts)", self.lock().len())
    }
}
