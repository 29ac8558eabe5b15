//! Old files of a log: `audit.log` becomes `audit-2026-01-31T23-59-59.999.log`.

use crate::audit::arrival::before_now;
use bareboat_api::time::Timestamp;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// When a file is renamed, and which old ones are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// The file is renamed before it becomes larger than this.
    pub max_bytes: u64,
    /// Old files are deleted after this time, if it is set.
    pub max_age: Option<Duration>,
    /// How many old files are kept, if it is set.
    pub max_backups: Option<usize>,
}

impl Default for Rotation {
    fn default() -> Rotation {
        Rotation {
            max_bytes: 100 << 20,
            max_age: None,
            max_backups: None,
        }
    }
}

impl Rotation {
    /// Renames a file and deletes those that are too old or too many.
    pub(super) fn rotate(&self, path: &Path) -> io::Result<()> {
        let names = Names::of(path);
        let mut time = before_now(Duration::ZERO);
        let mut to = names.backup(time);
        while to.exists() {
            time.nanos += 1_000_000;
            if time.nanos >= 1_000_000_000 {
                (time.seconds, time.nanos) = (time.seconds + 1, 0);
            }
            to = names.backup(time);
        }
        fs::rename(path, to)?;
        self.prune(&names)
    }

    fn prune(&self, names: &Names) -> io::Result<()> {
        if self.max_age.is_none() && self.max_backups.is_none() {
            return Ok(());
        }
        let mut backups = names.backups()?;
        // The newest first.
        backups.sort_by(|a, b| b.cmp(a));
        let oldest = self.max_age.map(|age| stamp(before_now(age)));
        for (at, (time, path)) in backups.iter().enumerate() {
            let is_surplus = self.max_backups.is_some_and(|most| at >= most);
            let is_old = oldest.as_ref().is_some_and(|oldest| time < oldest);
            if is_surplus || is_old {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }
}

/// The naming scheme of a log's files.
struct Names {
    directory: PathBuf,
    prefix: String,
    suffix: String,
}

impl Names {
    fn of(path: &Path) -> Names {
        let text = |part: Option<&std::ffi::OsStr>| {
            part.map_or_else(String::new, |part| part.to_string_lossy().into_owned())
        };
        let extension = text(path.extension());
        Names {
            directory: path.parent().map_or_else(PathBuf::new, Path::to_owned),
            prefix: format!("{}-", text(path.file_stem())),
            suffix: match extension.is_empty() {
                true => String::new(),
                false => format!(".{extension}"),
            },
        }
    }

    fn backup(&self, time: Timestamp) -> PathBuf {
        let name = format!("{}{}{}", self.prefix, stamp(time), self.suffix);
        self.directory.join(name)
    }

    /// Returns the old files, with the times in their names. Other files are ignored.
    fn backups(&self) -> io::Result<Vec<(String, PathBuf)>> {
        let directory = match self.directory.as_os_str().is_empty() {
            true => Path::new("."),
            false => &self.directory,
        };
        let mut found = Vec::new();
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            let time =
                name.and_then(|name| name.strip_prefix(&self.prefix)?.strip_suffix(&self.suffix));
            if let Some(time) = time.filter(|time| is_stamp(time)) {
                found.push((time.to_owned(), path.clone()));
            }
        }
        Ok(found)
    }
}

/// Formats a time for a file name; names sort by time.
fn stamp(time: Timestamp) -> String {
    // 2026-01-31T23:59:59.123456Z
    let text = time.print_micros().replace(':', "-");
    text[..text.len() - 4].to_owned()
}

fn is_stamp(text: &str) -> bool {
    let form = b"0000-00-00T00-00-00.000";
    text.len() == form.len()
        && text.bytes().zip(form).all(|(found, wanted)| match wanted {
            b'0' => found.is_ascii_digit(),
            other => found == *other,
        })
}
