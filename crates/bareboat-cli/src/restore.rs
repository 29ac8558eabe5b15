//! `bareboat restore`: restores a backup, and makes clients list again.
//!
//! A client may have seen revisions that the backup lacks. If the counter continued from the backup, such a client
//! would take the new history for the one it knows. So the counter and the floor (the compacted revision) are raised above every
//! revision that was returned, and such a client must list again.

use crate::args::RestoreFlags;
use anyhow::{Context, Result, bail};
use bareboat::sqlite;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Restores a backup and prints the result.
pub(crate) fn run(flags: &RestoreFlags) -> Result<()> {
    let dir = &flags.data_dir;
    let _alone = crate::serve::lock(dir)?;
    let state = dir.join("state.db");
    let beyond = flags.beyond.unwrap_or(0);
    let Some(backup) = &flags.backup else {
        if !state.exists() {
            bail!(
                "there is no {}; name the backup to restore",
                state.display()
            );
        }
        let restored = sqlite::raise(&state, beyond)
            .with_context(|| format!("{} cannot be used", state.display()))?;
        say(&state, restored);
        return Ok(());
    };
    // The replaced state may know revisions that the backup does not.
    let replaced = match state.exists() {
        true => sqlite::last_revision(&state).ok(),
        false => None,
    };
    let incoming = dir.join("state.db.restoring");
    let restored = fetch(backup, &incoming)
        .and_then(|()| {
            sqlite::raise(&incoming, beyond.max(replaced.unwrap_or(0)))
                .with_context(|| format!("{} cannot be restored", backup.display()))
        })
        .inspect_err(|_| remove(&incoming))?;
    let kept = dir.join("state.db.before-restore");
    set_aside(&state, &kept)?;
    fs::rename(&incoming, &state)
        .with_context(|| format!("{} cannot be put in place", state.display()))?;
    remove(&incoming);
    say(backup, restored);
    if kept.exists() {
        println!("  what was there before is in {}", kept.display());
        if replaced.is_none() {
            println!(
                "  it could not be read; if versions were given out that neither knows, repeat with --beyond VERSION"
            );
        }
    }
    Ok(())
}

/// Copies the backup into the data directory.
fn fetch(backup: &Path, incoming: &Path) -> Result<()> {
    remove(incoming);
    // A database in use has a part of its data in another file.
    if beside(backup, "-wal")
        .metadata()
        .is_ok_and(|data| data.len() > 0)
    {
        bail!(
            "{0} has a write-ahead log, so it is in use or was copied from a running server; make a backup with: sqlite3 {0} \
             \".backup FILE\"",
            backup.display()
        );
    }
    fs::copy(backup, incoming)
        .and_then(|_| fs::File::open(incoming)?.sync_all())
        .with_context(|| format!("{} cannot be copied", backup.display()))?;
    private(incoming)
}

/// Makes the file readable by its owner only, because it contains secrets.
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
    for end in ["", "-wal", "-shm", ".lock"] {
        let _ = fs::remove_file(beside(path, end));
    }
}

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

fn say(path: &Path, restored: sqlite::Restored) {
    println!(
        "{} is restored: its last version is {}, the next will be above {}",
        path.display(),
        restored.last,
        restored.raised
    );
}
