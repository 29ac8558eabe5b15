//! The options of a store.

use std::time::Duration;

/// The limits and intervals of a store; the defaults suit a server on a small machine.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// How long history is kept: watches can resume and lists are exact this far back.
    pub retain_for: Duration,
    /// The maximum number of revisions of history, regardless of age.
    pub retain_revisions: u64,
    /// The maximum bytes of history, regardless of age.
    pub retain_bytes: u64,
    /// The interval of compaction while there are writes; an idle store does not compact.
    pub compact_every: Duration,
    /// The number of rows that one slice of compaction visits between two batches of writes.
    pub compact_rows: usize,
    /// The maximum bytes of recent events kept in memory for all resources.
    pub ring_bytes: usize,
    /// The bytes of recent events that each resource keeps even if other resources are busy.
    pub ring_floor_bytes: usize,
    /// The number of the last revisions in the log that become events in memory when the store
    /// opens.
    pub ring_preload: u64,
    /// The maximum bytes of encoded event frames that watchers share.
    pub frame_bytes: usize,
    /// The maximum bytes of other encodings of entries.
    pub variant_bytes: usize,
    /// The maximum length of a value.
    pub max_value_bytes: usize,
    /// The maximum number of writes in one transaction.
    pub max_batch: usize,
    /// The maximum number of queued writes of up to 16 KiB (longer writes count as several). Further callers wait for
    /// room.
    pub max_queue: usize,
    /// The maximum number of snapshots that one resource pins for continue tokens.
    pub max_pins: usize,
    /// The maximum bytes that only pinned snapshots of all resources keep alive. Above this limit the oldest pins are
    /// dropped.
    pub pin_bytes: usize,
    /// The maximum bytes of entries read from the log for old watches and old lists. Above this limit lists must be
    /// retried, and watches read one change at a time.
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
