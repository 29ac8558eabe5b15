//! The options of a file and their defaults: caches, checkpoints and limits.

/// The options of the file.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    /// The page cache of the writer in KiB. It may be small, because the store serves reads from memory.
    pub cache_kib: u32,
    /// The size of the write-ahead log at which a checkpoint starts on a separate thread.
    pub checkpoint_bytes: u64,
    /// The size of the write-ahead log at which the writer itself stops and finishes the checkpoint.
    pub checkpoint_limit_bytes: u64,
    /// The maximum size of the file; `None` for no limit but the disk.
    pub max_bytes: Option<u64>,
    /// The bytes of disk space reserved for deletions and compaction; 0 for no reserve. The part of the write-ahead log
    /// that is not yet in the file is limited to three quarters of the reserve.
    pub reserve_bytes: u64,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            cache_kib: 1024,
            checkpoint_bytes: 8 << 20,
            checkpoint_limit_bytes: 64 << 20,
            max_bytes: None,
            reserve_bytes: 16 << 20,
        }
    }
}
