//! The store of compiled patterns, shared by all users, with one limit in bytes.

use super::compiled::Compiled;
use super::parse::parse;
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock};

/// The maximum memory of all compiled patterns together.
const LIMIT: usize = 32 << 20;

static STORE: LazyLock<Mutex<Store>> = LazyLock::new(|| Mutex::new(Store::new(LIMIT)));

/// Returns the compiled form of a Go pattern, from the store if present.
pub(crate) fn shared(pattern: &str) -> Result<Arc<Compiled>, String> {
    if let Some(known) = known(pattern) {
        return Ok(known);
    }
    let compiled = Arc::new(Compiled::new(pattern, &parse(pattern)?));
    Ok(STORE.lock().put(compiled))
}

/// Returns the compiled form of a Go pattern if the store has it.
pub(crate) fn known(pattern: &str) -> Option<Arc<Compiled>> {
    STORE.lock().get(pattern)
}

/// Drops patterns that were not used since the last call.
pub fn forget_idle_patterns() {
    STORE.lock().forget_idle();
}

/// Counts the growth of a pattern.
pub(super) fn grown(compiled: &Compiled, bytes: usize) {
    let mut store = STORE.lock();
    if let Some((_, counted)) = store.by_source.get_mut(&compiled.source) {
        *counted += bytes;
        store.bytes += bytes;
        store.shrink();
    }
}

pub(super) struct Store {
    limit: usize,
    bytes: usize,
    /// Patterns, and the bytes counted for each.
    by_source: HashMap<Arc<str>, (Arc<Compiled>, usize)>,
    /// The order in which patterns are checked when room is needed.
    order: VecDeque<Arc<str>>,
}

impl Store {
    pub(super) fn new(limit: usize) -> Store {
        Store {
            limit,
            bytes: 0,
            by_source: HashMap::new(),
            order: VecDeque::new(),
        }
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn get(&self, pattern: &str) -> Option<Arc<Compiled>> {
        let (known, _) = self.by_source.get(pattern)?;
        known.used.store(true, Ordering::Relaxed);
        Some(known.clone())
    }

    /// Stores a pattern, unless another thread stored it first.
    pub(super) fn put(&mut self, compiled: Arc<Compiled>) -> Arc<Compiled> {
        if let Some(known) = self.get(&compiled.source) {
            return known;
        }
        let bytes = compiled.bytes();
        self.bytes += bytes;
        self.order.push_back(compiled.source.clone());
        let source = compiled.source.clone();
        self.by_source.insert(source, (compiled.clone(), bytes));
        self.shrink();
        compiled
    }

    /// Drops patterns that were not used since the last call.
    pub(super) fn forget_idle(&mut self) {
        let mut bytes = 0;
        self.by_source.retain(|_, (compiled, counted)| {
            let used = compiled.used.swap(false, Ordering::Relaxed);
            bytes += if used { *counted } else { 0 };
            used
        });
        self.bytes = bytes;
        let kept = &self.by_source;
        self.order.retain(|source| kept.contains_key(source));
        self.by_source.shrink_to_fit();
    }

    /// Drops patterns that were not used since their last check, until there is room.
    fn shrink(&mut self) {
        while self.bytes > self.limit
            && let Some(oldest) = self.order.pop_front()
        {
            let Some((compiled, bytes)) = self.by_source.get(&oldest) else {
                continue;
            };
            if compiled.used.swap(false, Ordering::Relaxed) {
                self.order.push_back(oldest);
                continue;
            }
            self.bytes -= bytes;
            self.by_source.remove(&oldest);
        }
    }
}
