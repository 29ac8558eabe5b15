//! The options of a file and their defaults: caches, checkpoints and limits.

/// The options of the file.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    /// The page cache of the writer in KiB; reads come from memory above, so it may be small.
    pub cache_kib: u32,
    /// The bytes of write-ahead log at which a checkpoint starts beside the writer.
    pub checkpoint_bytes: u64,
    /// The bytes of write-ahead log at which the writer itself stops and finishes the checkpoint.
    pub checkpoint_limit_bytes: u64,
    /// The maximum size of the file; `None` for the limit of the disk.
    pub max_bytes: Option<u64>,
    /// The bytes of disk space reserved for deletions and compaction; 0 for none. Three quarters of it limit the part of
    /// the write-ahead log that is not in the file yet.
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
