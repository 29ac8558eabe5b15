//! A restore into a file of SQLite: it is made beside the old one, which is kept.

use crate::backup::beside;
use anyhow::{Context, Result, bail};
use bareboat::sqlite;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A file that will take the place of another one.
pub(super) struct Replacement {
    state: PathBuf,
    /// The new file.
    pub(super) incoming: PathBuf,
    /// The last revision of the file that is there, if it can be read.
    pub(super) replaced: Option<u64>,
}

impl Replacement {
    pub(super) fn of(state: &Path) -> Replacement {
        let incoming = beside(state, ".restoring");
        remove(&incoming);
        // The replaced state may know revisions that the backup does not.
        let replaced = match state.exists() {
            true => sqlite::last_revision(state).ok(),
            false => None,
        };
        Replacement {
            state: state.to_owned(),
            incoming,
            replaced,
        }
    }

    /// Copies a file of SQLite into place.
    pub(super) fn copy(&self, backup: &Path) -> Result<()> {
        // A database in use has a part of its data in another file.
        if beside(backup, "-wal")
            .metadata()
            .is_ok_and(|data| data.len() > 0)
        {
            bail!(
                "{0} has a write-ahead log, so it is in use or was copied from a running server; make a backup with: \
                 bareboat backup --storage sqlite:{0} FILE",
                backup.display()
            );
        }
        fs::copy(backup, &self.incoming)
            .and_then(|_| fs::File::open(&self.incoming)?.sync_all())
            .with_context(|| format!("{} cannot be copied", backup.display()))?;
        private(&self.incoming)
    }

    /// Makes the new file for its owner only, because it contains secrets.
    pub(super) fn create(&self) -> Result<sqlite::Sqlite> {
        let unusable = || format!("{} cannot be made", self.incoming.display());
        fs::File::create(&self.incoming).with_context(unusable)?;
        private(&self.incoming)?;
        sqlite::Sqlite::open(&self.incoming).with_context(unusable)
    }

    /// Keeps the old file, and puts the new one in its place.
    pub(super) fn finish(self) -> Result<()> {
        let kept = beside(&self.state, ".before-restore");
        set_aside(&self.state, &kept)?;
        fs::rename(&self.incoming, &self.state)
            .with_context(|| format!("{} cannot be put in place", self.state.display()))?;
        remove(&self.incoming);
        if kept.exists() {
            println!("  what was there before is in {}", kept.display());
            if self.replaced.is_none() {
                println!(
                    "  it could not be read; if versions were given out that neither knows, repeat with --beyond VERSION"
                );
            }
        }
        Ok(())
    }

    /// Removes the new file.
    pub(super) fn give_up(&self) {
        remove(&self.incoming);
    }
}

fn private(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))
        .with_context(|| format!("{} cannot be made private", path.display()))
}

/// Moves a database and its additional files to another name. Overwrites files of an earlier restore.
fn set_aside(from: &Path, to: &Path) -> Result<()> {
    remove(to);
    for end in ["-wal", "-shm", ""] {
        match fs::rename(beside(from, end), beside(to, end)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("{} cannot be moved", from.display()));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Removes a database and its additional files, if they exist.
fn remove(path: &Path) {
    for end in ["", "-wal", "-shm", ".lock", ".reserve"] {
        let _ = fs::remove_file(beside(path, end));
    }
}
