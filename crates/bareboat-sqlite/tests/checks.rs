//! Checks of `bareboat-rig` that also make sense for a store that one process has open.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::{Arc, OnceLock};

use bareboat_rig::checks::Shared;
use bareboat_sqlite::Sqlite;
use bareboat_storage::Backend;

/// A folder for files. A child process that opens a file by its path makes none.
#[derive(Default)]
struct Folder(OnceLock<tempfile::TempDir>);

impl Shared for Folder {
    fn is_exclusive(&self) -> bool {
        true
    }

    /// Nothing listens.
    fn port(&self) -> u16 {
        0
    }

    fn url(&self, _port: u16, name: &str) -> String {
        let folder = self.0.get_or_init(|| tempfile::tempdir().unwrap());
        folder.path().join(name).display().to_string()
    }

    /// The file and its write-ahead log.
    fn size(&self, name: &str) -> u64 {
        let file = self.url(0, name);
        let len = |path: &str| std::fs::metadata(Path::new(path)).map_or(0, |data| data.len());
        len(&file) + len(&format!("{file}-wal"))
    }

    fn open(&self, url: &str) -> Arc<dyn Backend> {
        Arc::new(Sqlite::open(url).unwrap())
    }
}

mod checks {
    use super::Folder;

    #[test]
    fn a_day_of_updates_stays_small() {
        bareboat_rig::checks::a_day_of_updates_stays_small(&Folder::default());
    }

    #[test]
    fn a_killed_writer_leaves_whole_transactions() {
        bareboat_rig::checks::a_killed_writer_leaves_whole_transactions(&Folder::default());
    }

    #[test]
    fn child_that_writes_until_it_is_killed() {
        bareboat_rig::checks::write_until_killed(&Folder::default());
    }
}
