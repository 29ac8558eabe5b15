//! Entries read from the log for old watches and old lists: shared while in use, and counted.

use std::sync::{Arc, Weak};

use ahash::AHashMap;
use parking_lot::Mutex;

use crate::entry::Entry;
use crate::layout::LayoutError;
use crate::value::Value;

/// The overhead of an entry in bytes.
const FIXED: usize = 256;

/// The old entries in memory, by revision; no two entries have the same revision.
#[derive(Default)]
pub(crate) struct OldEntries {
    table: Mutex<Table>,
    /// Locked while a whole state is read.
    pub(crate) turn: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Table {
    known: AHashMap<u64, Weak<Entry>>,
    /// The bytes of entries in use at the last check, plus those added since.
    bytes: usize,
    came: usize,
}

impl OldEntries {
    /// Returns the entry of a stored value. Other readers that still hold the same entry share it.
    pub(crate) fn entry(
        &self,
        value: &Value,
        key: &Arc<str>,
        revision: u64,
    ) -> Result<Arc<Entry>, LayoutError> {
        if let Some(entry) = value.shared_at(revision) {
            return Ok(entry);
        }
        let mut table = self.table.lock();
        if let Some(entry) = table.known.get(&revision).and_then(Weak::upgrade) {
            return Ok(entry);
        }
        let entry = value.entry(key, revision)?;
        table.known.insert(revision, Arc::downgrade(&entry));
        table.came += weight(&entry);
        if table.came > table.bytes.max(1 << 20) {
            table.count();
        }
        Ok(entry)
    }

    /// Returns the bytes of old entries in use.
    pub(crate) fn held(&self) -> usize {
        let mut table = self.table.lock();
        table.count();
        table.bytes
    }

    /// Returns whether more than `limit` bytes are in use. This is cheap unless the count is close to `limit`.
    pub(crate) fn exceeds(&self, limit: usize) -> bool {
        let mut table = self.table.lock();
        if table.bytes + table.came > limit {
            table.count();
        }
        table.bytes > limit
    }
}

impl Table {
    fn count(&mut self) {
        let mut bytes = 0;
        self.known.retain(|_, entry| match entry.upgrade() {
            Some(entry) => {
                bytes += weight(&entry);
                true
            }
            None => false,
        });
        if self.known.capacity() > 4 * self.known.len() + 64 {
            self.known.shrink_to_fit();
        }
        (self.bytes, self.came) = (bytes, 0);
    }
}

fn weight(entry: &Entry) -> usize {
    FIXED + entry.json().len()
}
