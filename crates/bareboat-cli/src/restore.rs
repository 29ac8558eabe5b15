//! `bareboat restore`: puts a backup, or the content of another store, into a store.
//!
//! A client may have seen revisions that the backup lacks. If the counter continued from the backup, such a client
//! would take the new history for the one it knows. So another epoch begins: the counter and the floor (the compacted
//! revision) are raised above every revision that was returned, and such a client must list again.

mod file;
mod flags;

use crate::backup;
use crate::output::Format;
use crate::store_flags::{Place, progress};
use anyhow::{Context, Result, anyhow, bail};
use bareboat::sqlite::{self, Sqlite, SqliteError, SqliteReader};
use bareboat::storage::Backend;
use bareboat::storage::backup::{
    Backup, BackupError, Epoch, RestoreOptions, Restored, copy, restore,
};
use file::Replacement;
pub(crate) use flags::{ABOUT, AFTER, RestoreFlags};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What is restored.
enum Source {
    /// A file of `bareboat backup`, and those that continue it.
    Backups(Vec<Backup>),
    /// A copy of a `state.db`.
    Copy(PathBuf),
    /// A store.
    Store(Place),
}

impl Source {
    /// Opens all that is given: one source, or several backups.
    fn all(from: &[String]) -> Result<Source> {
        let (first, rest) = match from {
            [first, rest @ ..] => (first, rest),
            [] => bail!("name the backup with --from"),
        };
        let mut source = Source::of(first)?;
        for from in rest {
            match (&mut source, Source::of(from)?) {
                (Source::Backups(all), Source::Backups(next)) => all.extend(next),
                _ => bail!("several sources must be backups that continue each other"),
            }
        }
        Ok(source)
    }

    fn of(from: &str) -> Result<Source> {
        if from.contains("://") || from.starts_with("sqlite:") || from.starts_with("memory:") {
            return Ok(Source::Store(Place::of(from)?));
        }
        let path = PathBuf::from(from);
        let unusable = || format!("{from} cannot be restored");
        let mut file = File::open(&path).with_context(unusable)?;
        Ok(match Backup::is_backup(&mut file).with_context(unusable)? {
            true => Source::Backups(vec![Backup::open(file).with_context(unusable)?]),
            false => Source::Copy(path),
        })
    }
}

/// Restores a backup and prints the result.
pub(crate) fn run(flags: &RestoreFlags) -> Result<()> {
    let place = flags.store.place()?;
    // A server of the directory holds this one, too.
    let _alone = match (&place, &flags.store.storage) {
        (Place::File(_), None) => {
            let dir = &flags.store.data_dir;
            crate::serve::private_directory(dir)
                .with_context(|| format!("the directory {} cannot be made", dir.display()))?;
            Some(crate::serve::lock(dir)?)
        }
        _ => None,
    };
    let from = match flags.backup.is_empty() {
        true => &flags.from,
        false => &flags.backup,
    };
    if from.is_empty() {
        return raise_in_place(&place, flags);
    }
    match (Source::all(from)?, &place) {
        (Source::Copy(copied), Place::File(state)) if !flags.keep_epoch => {
            install(&copied, state, flags.beyond)
        }
        (source, Place::File(state)) => into_file(&source, state, flags),
        (source, Place::Shared(_)) => {
            let target = place.open_or_create()?;
            let restored = fill(&source, &*target, flags, 0);
            let closed = target.close();
            say(&restored?, flags)?;
            closed.context("the store was not closed cleanly")
        }
    }
}

/// Raises the counter of a file that was restored by other means.
fn raise_in_place(place: &Place, flags: &RestoreFlags) -> Result<()> {
    let Place::File(state) = place else {
        bail!("name the backup with --from; after a restore by other means, run bareboat epoch");
    };
    if !state.exists() {
        bail!(
            "there is no {}; name the backup to restore",
            state.display()
        );
    }
    let restored = sqlite::raise(state, flags.beyond)
        .with_context(|| format!("{} cannot be used", state.display()))?;
    raised(state, restored);
    Ok(())
}

/// Puts a copy of a `state.db` in place.
fn install(backup: &Path, state: &Path, beyond: u64) -> Result<()> {
    let replacement = Replacement::of(state);
    let beyond = beyond.max(replacement.replaced.unwrap_or(0));
    let restored = replacement
        .copy(backup)
        .and_then(|()| {
            sqlite::raise(&replacement.incoming, beyond)
                .with_context(|| format!("{} cannot be restored", backup.display()))
        })
        .inspect_err(|_| replacement.give_up())?;
    raised(backup, restored);
    replacement.finish()
}

fn raised(path: &Path, restored: sqlite::Restored) {
    println!(
        "{} is restored: its last version is {}, the next will be above {}",
        path.display(),
        restored.last,
        restored.raised
    );
}

/// Fills a new file, and puts it in place.
fn into_file(source: &Source, state: &Path, flags: &RestoreFlags) -> Result<()> {
    // Held until the file is ready: no server uses it meanwhile.
    let old = match state.exists() {
        false => None,
        true => match Sqlite::open(state) {
            Ok(old) => Some(old),
            Err(SqliteError::InUse { .. }) => {
                bail!("{} is in use by a server; stop it", state.display())
            }
            Err(error) if !flags.replace => {
                return Err(error)
                    .context("what is there cannot be read; add --replace to give it up");
            }
            Err(_) => None,
        },
    };
    if let Some(old) = &old
        && !flags.replace
        && !is_empty(old)?
    {
        return Err(refused(BackupError::NotEmpty, &state.display().to_string()));
    }
    let replacement = Replacement::of(state);
    let beyond = replacement.replaced.unwrap_or(0);
    let restored = replacement.create().and_then(|target| {
        let restored = fill(source, &target, flags, beyond);
        target.close().context("the file was not closed cleanly")?;
        restored
    });
    let restored = restored.inspect_err(|_| replacement.give_up())?;
    if let Some(old) = old {
        old.close().context("the old file cannot be closed")?;
    }
    say(&restored, flags)?;
    replacement.finish()
}

fn is_empty(log: &dyn Backend) -> Result<bool> {
    let mut found = false;
    let end = log.mark()?.last;
    log.dump(end, &mut |_| found = true, &Default::default())?;
    Ok(!found)
}

fn fill(
    source: &Source,
    target: &dyn Backend,
    flags: &RestoreFlags,
    beyond: u64,
) -> Result<Restored> {
    let options = RestoreOptions {
        replace: flags.replace,
        epoch: match flags.keep_epoch {
            true => Epoch::Keep,
            false => Epoch::Next {
                beyond: beyond.max(flags.beyond),
            },
        },
    };
    let mut report = progress(flags.quiet);
    let done = match source {
        Source::Backups(backups) => restore(backups, target, options, &mut report),
        Source::Copy(path) => {
            let log = SqliteReader::open(path)
                .with_context(|| format!("{} cannot be restored", path.display()))?;
            copy(&log, target, options, &mut report)
        }
        Source::Store(place) => {
            // With the same revisions nothing may be written to the source. Opening a file locks it.
            let log: Arc<dyn Backend> = match flags.keep_epoch {
                true => place.open()?,
                false => place.open_to_read()?,
            };
            let done = copy(&*log, target, options, &mut report);
            log.close().context("the source was not closed cleanly")?;
            done
        }
    };
    done.map_err(|error| refused(error, "the store"))
}

/// Adds what to do next.
fn refused(error: BackupError, name: &str) -> anyhow::Error {
    match error {
        BackupError::NotEmpty => anyhow!(
            "{name} has objects, and nothing was changed; name another store, or add --replace to give them up"
        ),
        other => anyhow::Error::new(other).context("it is not restored"),
    }
}

fn say(restored: &Restored, flags: &RestoreFlags) -> Result<()> {
    let summary = &restored.summary;
    match flags.output {
        Format::Json => crate::output::json(&backup::described(summary)),
        Format::Text if flags.quiet => Ok(()),
        Format::Text => {
            let next = match flags.keep_epoch {
                true => "resourceVersions stay valid".to_owned(),
                false => format!(
                    "the next resourceVersion will be above {}",
                    restored.end.last
                ),
            };
            let text = format!(
                "restored and read back: {}; {next}\n",
                backup::sentence(summary)
            );
            crate::print(text.as_bytes())
        }
    }
}
