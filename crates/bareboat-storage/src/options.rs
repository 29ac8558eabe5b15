//! What may be set about a store.

use std::time::Duration;

/// Bounds and intervals of a store; the defaults suit a server on a small machine.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// How long history is kept: watches may resume and lists be exact this far back.
    pub retain_for: Duration,
    /// At most so many revisions of history are kept, however young.
    pub retain_revisions: u64,
    /// At most so many bytes of history are kept, however young.
    pub retain_bytes: u64,
    /// How often compaction looks for work while there are writes; never when there are none.
    pub compact_every: Duration,
    /// Rows one slice of compaction goes through between two batches of writes.
    pub compact_rows: usize,
    /// Bytes of recent events kept in memory over all resources.
    pub ring_bytes: usize,
    /// Bytes of recent events each resource keeps even if others are busy.
    pub ring_floor_bytes: usize,
    /// How many of the last revisions in the log become events in memory when the store opens.
    pub ring_preload: u64,
    /// Bytes of encoded event frames kept to be shared by watchers.
    pub frame_bytes: usize,
    /// Bytes of other encodings of entries.
    pub variant_bytes: usize,
    /// Longest value that is accepted.
    pub max_value_bytes: usize,
    /// Most writes in one transaction.
    pub max_batch: usize,
    /// How many writes of up to 16 KiB may wait (longer ones count for several); beyond it callers wait for room.
    pub max_queue: usize,
    /// Most snapshots pinned by one resource for continue tokens.
    pub max_pins: usize,
    /// Bytes that pinned snapshots of all resources may keep alive on their own; beyond it the oldest go.
    pub pin_bytes: usize,
    /// Bytes of entries read from the log for old watches and old lists. Beyond it lists are asked to come back, and
    /// watches read one change at a time.
    pub past_bytes: usize,
    /// How long a snapshot stays pinned.
    pub pin_for: Duration,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            retain_for: Duration::from_secs(10 * 60),
            retain_revisions: 1_000_000,
            retain_bytes: 1 << 30,
            compact_every: Duration::from_secs(60),
            compact_rows: 512,
            ring_bytes: 64 << 20,
            ring_floor_bytes: 16 << 10,
            ring_preload: 4096,
            frame_bytes: 4 << 20,
            variant_bytes: 32 << 20,
            max_value_bytes: 3 << 19,
            max_batch: 1024,
            max_queue: 4096,
            max_pins: 64,
            pin_bytes: 32 << 20,
            past_bytes: 64 << 20,
            pin_for: Duration::from_secs(5 * 60),
        }
    }
}
