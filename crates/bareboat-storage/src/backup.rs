//! Backups: writes the content of a log to a file, and fills a log from such a file or from another log.
//!
//! A backup contains the state at a floor and all later records, as they are stored: encrypted values stay encrypted. A
//! backup that continues another one contains only the records after it.
//! The file is text, compressed with gzip: a header, a line for each record, and a trailer. A seal follows: a gzip
//! member without text that contains the SHA-256 of everything before it. So `zcat` shows the records, and every
//! flipped bit is detected.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::backend::{BackendError, Record};
use crate::batch::{Chain, Digest};

mod fill;
mod line;
mod read;
mod seal;
mod write;

pub use fill::{Epoch, RestoreOptions, Restored, copy, restore};
pub use read::Backup;
pub use write::{write, write_since};

/// The format of files that this program writes.
const FORMAT: u32 = 2;
/// The format of backups that contain everything, which older programs read, too.
const WHOLE: u32 = 1;

/// The progress of a backup or a restore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The number of records so far.
    pub records: u64,
    /// The bytes of the keys and values of these records.
    pub bytes: u64,
}

/// Receives the progress after every few records.
pub type Report<'a> = dyn FnMut(Progress) + 'a;

/// The content of a backup.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Summary {
    /// The last revision.
    pub last: u64,
    /// The number of all records: the state at the floor, and later records.
    pub records: u64,
    /// The number of live objects of each resource at the end.
    pub objects: BTreeMap<String, u64>,
    /// Values that were damaged when the backup was made, as `resource key`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<String>,
    /// The digest of the content, in hexadecimal: the same for the same records on every engine.
    pub content: String,
}

/// The first line of a backup.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Header {
    bareboat: String,
    format: u32,
    floor: u64,
    epoch: u64,
    /// The time of the backup in milliseconds since 1970.
    time: u64,
    /// The end of the backup that this one continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after: Option<End>,
}

/// The end of a backup: what a later backup continues.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
struct End {
    last: u64,
    epoch: u64,
    /// The digest of the log up to here, in hexadecimal.
    digest: String,
}

impl End {
    fn of(mark: &crate::batch::Mark) -> End {
        End {
            last: mark.last,
            epoch: mark.epoch,
            digest: format!("{:?}", mark.digest),
        }
    }
}

/// The last line of a backup.
#[derive(Deserialize, Serialize)]
struct Trailer {
    #[serde(flatten)]
    summary: Summary,
    /// Missing in backups of older programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end: Option<End>,
}

/// The reason why a backup or a restore failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// The file cannot be read or written.
    #[error("the file of the backup cannot be used")]
    File(#[from] std::io::Error),
    /// The file is not a backup.
    #[error("the file is not a backup, or it was cut off")]
    NotABackup,
    /// The file was changed since it was written.
    #[error("the file is damaged: its checksum differs; use another copy, or an earlier backup")]
    Damaged,
    /// The file was written by a newer program.
    #[error(
        "the backup has format {found}, this program knows formats up to {FORMAT}; use the newer program that wrote it"
    )]
    Newer {
        /// The format of the file.
        found: u32,
    },
    /// A line is not a record.
    #[error("line {line} of the backup is not a record")]
    Line {
        /// The number of the line, starting with 1.
        line: u64,
    },
    /// The log cannot be used.
    #[error("the store cannot be used")]
    Store(#[from] BackendError),
    /// History was compacted faster than it was read, or another epoch began.
    #[error("the history of the store was compacted or replaced during the read; try again")]
    Moved,
    /// The history since an earlier backup is gone.
    #[error(
        "the history after the earlier backup is compacted: make a whole backup, and keep more history (--retain-for) or make backups more often"
    )]
    Gone,
    /// The log does not continue the earlier backup.
    #[error(
        "the store does not continue the earlier backup: it is another store, or it was restored since; make a whole backup"
    )]
    Unrelated,
    /// The backup continues another one, which is not given before it.
    #[error("the backup continues another one, which must be given before it")]
    Incomplete,
    /// The source was written to while it was copied.
    #[error(
        "the source was written to during the copy: stop all servers that use it, and try again"
    )]
    Written,
    /// The target has objects.
    #[error("the target is not empty")]
    NotEmpty,
    /// Another program writes to the target.
    #[error("another program writes to the target: stop all servers that use it, and try again")]
    Shared,
    /// An object is larger than the target accepts.
    #[error("{resource} {key} has {len} bytes, and the target accepts at most {limit}")]
    TooLarge {
        /// The resource of the object.
        resource: String,
        /// The key of the object.
        key: String,
        /// The bytes of the object.
        len: usize,
        /// The maximum bytes of an object in the target.
        limit: usize,
    },
    /// The target returned other records than were written to it.
    #[error("the target does not contain what was written to it; do not use it")]
    Unequal,
}

/// The digest of records in any order, and their counts.
#[derive(Clone, Debug, Default)]
struct Content {
    sum: u128,
    progress: Progress,
    objects: BTreeMap<std::sync::Arc<str>, i64>,
    damaged: Vec<String>,
}

impl Content {
    fn add(&mut self, record: &Record) {
        let mut chain = Chain::after(&Digest::default());
        let value = record.value.as_ref();
        let (head, tail) = value.map_or((None, &[][..]), |value| {
            let (head, tail) = value.parts();
            (Some(head), tail)
        });
        chain.add(record, head, tail);
        // A sum does not depend on the order, which differs between engines.
        self.sum = self.sum.wrapping_add(u128::from_be_bytes(chain.digest().0));
        self.progress.records += 1;
        self.progress.bytes += (record.key.len() + value.map_or(0, |value| value.len())) as u64;
        let change = match (record.prev, value) {
            (0, Some(_)) => 1,
            (0, None) | (_, Some(_)) => 0,
            (_, None) => -1,
        };
        self.count(record, change);
        if value.is_some_and(|value| value.is_damaged()) {
            let name = format!("{} {}", record.resource, record.key);
            self.damaged.push(name);
        }
    }

    /// Adds a record of the state. It is live, even if it has replaced another record.
    fn add_live(&mut self, record: &Record) {
        self.add(record);
        if record.prev != 0 {
            self.count(record, 1);
        }
    }

    fn count(&mut self, record: &Record, change: i64) {
        match self.objects.get_mut(&record.resource) {
            Some(count) => *count += change,
            None => {
                self.objects.insert(record.resource.clone(), change);
            }
        }
    }

    /// Returns the summary of a backup that continues another one. It does not know how many objects there are.
    fn summary_of_changes(&self, last: u64) -> Summary {
        Summary {
            objects: BTreeMap::new(),
            ..self.summary(last)
        }
    }

    fn summary(&self, last: u64) -> Summary {
        let live = self.objects.iter().filter(|(_, count)| **count > 0);
        Summary {
            last,
            records: self.progress.records,
            objects: live
                .map(|(resource, count)| (resource.to_string(), count.unsigned_abs()))
                .collect(),
            damaged: self.damaged.clone(),
            content: format!("{:032x}", self.sum),
        }
    }

    /// Returns whether the progress should be reported now.
    fn is_due(&self) -> bool {
        self.progress.records.is_multiple_of(256)
    }
}
