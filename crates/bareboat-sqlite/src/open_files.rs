//! Checks that the open files are still the files at their paths, because writes to a removed file are lost.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::schema::beside;

/// The files that a writer has open, by path and by identity.
pub(crate) struct OpenFiles {
    files: [(PathBuf, (u64, u64)); 2],
}

impl OpenFiles {
    /// Records the identity of the files, which SQLite must have open.
    pub(crate) fn note(database: &Path) -> io::Result<Self> {
        let known = |path: PathBuf| identity(&path).map(|identity| (path, identity));
        Ok(Self {
            files: [
                known(database.to_owned())?,
                known(beside(database, "-wal"))?,
            ],
        })
    }

    /// Fails if one of the files was removed or replaced. This takes two calls of `stat`.
    pub(crate) fn check(&self) -> Result<(), String> {
        for (path, known) in &self.files {
            let why = match identity(path) {
                Ok(found) if found == *known => continue,
                Ok(_) => "was replaced while it was in use",
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    "was removed while it was in use"
                }
                Err(error) => return Err(format!("{}: {error}", path.display())),
            };
            return Err(format!("{} {why}", path.display()));
        }
        Ok(())
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::metadata(path).map(|data| (data.dev(), data.ino()))
}
