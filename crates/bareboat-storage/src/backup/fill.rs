//! Fills a log with a backup or with the content of another log, and reads the log back.

use super::{Backup, BackupError, Content, Report, Summary};
use crate::backend::{Backend, Record, Stop};
use crate::batch::{Appended, Batch, Mark};
use crate::refill::Refill;
use crate::value::Value;

/// The maximum number of records that are written at once.
const RECORDS: usize = 500;
/// The maximum number of bytes that are written at once.
const BYTES: usize = 4 << 20;

/// Whether the resourceVersions that clients know remain valid after a restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Epoch {
    /// Reads at old resourceVersions fail with 410: clients may have seen changes that the backup lacks.
    Next {
        /// A resourceVersion that clients are known to have seen; 0 if none is known. The new epoch begins above it.
        beyond: u64,
    },
    /// Old resourceVersions remain valid. This is correct only if nothing was written after the content was read.
    Keep,
}

/// The options of a restore or a copy.
#[derive(Clone, Copy, Debug)]
pub struct RestoreOptions {
    /// Whether a target with objects is emptied first. Otherwise it is refused.
    pub replace: bool,
    /// Whether resourceVersions remain valid.
    pub epoch: Epoch,
}

/// The result of a restore or a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Restored {
    /// The content that was restored.
    pub summary: Summary,
    /// The end of the log; the next revision is above it.
    pub end: Mark,
}

/// Fills `target` with a backup and those that continue it, in order.
pub fn restore(
    backups: &[Backup],
    target: &dyn Backend,
    options: RestoreOptions,
    report: &mut Report<'_>,
) -> Result<Restored, BackupError> {
    let Some(whole) = backups.first().filter(|first| !first.continues()) else {
        return Err(BackupError::Incomplete);
    };
    // All of them are checked before anything is written.
    let mut end = whole.end()?;
    for backup in &backups[1..] {
        match (backup.after(), &end) {
            (Some(after), Some(end)) if after == end => {}
            _ => return Err(BackupError::Incomplete),
        }
        end = backup.end()?;
    }
    let mut filling = Filling::begin(target, whole.start(), options, report)?;
    let mut summary = whole.read(&mut |record| filling.add(record))?;
    for backup in &backups[1..] {
        let last = backup.read(&mut |record| filling.add(record))?.last;
        summary = filling.content.summary(last);
    }
    filling.finish(summary)
}

/// Fills `target` with the content of `source`. No program may write to `source` in the meantime.
pub fn copy(
    source: &dyn Backend,
    target: &dyn Backend,
    options: RestoreOptions,
    report: &mut Report<'_>,
) -> Result<Restored, BackupError> {
    let before = source.mark()?;
    let floor = source.compacted().min(before.last);
    let mut filling = Filling::begin(target, (floor, before.epoch), options, report)?;
    let (stop, mut failed) = (Stop::default(), None);
    let dumped = source.dump(
        floor,
        &mut |record| {
            if failed.is_none()
                && let Err(error) = filling.add(record)
            {
                stop.request();
                failed = Some(error);
            }
        },
        &stop,
    );
    if let Some(error) = failed {
        return Err(error);
    }
    if dumped? != before || source.mark()? != before {
        return Err(BackupError::Written);
    }
    let summary = filling.content.summary(before.last);
    filling.finish(summary)
}

/// Returns whether a log has no objects.
fn is_empty(log: &dyn Backend) -> Result<bool, BackupError> {
    let (stop, mut found) = (Stop::default(), false);
    let read = log.dump(
        log.mark()?.last,
        &mut |_| {
            found = true;
            stop.request();
        },
        &stop,
    );
    match found {
        true => Ok(false),
        false => Ok(read.map(|_| true)?),
    }
}

struct Filling<'a, 'r> {
    target: &'a dyn Backend,
    report: &'a mut Report<'r>,
    options: RestoreOptions,
    /// The previous end of the target, which clients may know.
    replaced: Mark,
    /// The mark after the state, later the mark after the last batch.
    end: Mark,
    floor: u64,
    started: bool,
    pending: Vec<Record>,
    bytes: usize,
    writer: u128,
    content: Content,
}

impl<'a, 'r> Filling<'a, 'r> {
    fn begin(
        target: &'a dyn Backend,
        (floor, epoch): (u64, u64),
        options: RestoreOptions,
        report: &'a mut Report<'r>,
    ) -> Result<Self, BackupError> {
        // The content of an incomplete earlier restore may be overwritten.
        if target.is_complete()? && !options.replace && !is_empty(target)? {
            return Err(BackupError::NotEmpty);
        }
        let replaced = target.mark()?;
        target.refill(Refill::Begin)?;
        Ok(Self {
            target,
            report,
            options,
            replaced,
            end: Mark {
                last: floor,
                epoch: epoch.max(replaced.epoch),
                ..Mark::default()
            },
            floor,
            started: false,
            pending: Vec::new(),
            bytes: 0,
            writer: uuid::Uuid::new_v4().as_u128(),
            content: Content::default(),
        })
    }

    fn add(&mut self, record: Record) -> Result<(), BackupError> {
        let limits = self.target.limits();
        let len = record.value.as_ref().map_or(0, Value::len);
        if len > limits.value_bytes {
            return Err(BackupError::TooLarge {
                resource: record.resource.to_string(),
                key: record.key.to_string(),
                len,
                limit: limits.value_bytes,
            });
        }
        let is_state = record.revision <= self.floor;
        match is_state {
            true => self.content.add_live(&record),
            false => self.content.add(&record),
        }
        if !is_state && !self.started {
            self.start()?;
        }
        let actor = record.actor.as_ref().map_or(0, |actor| actor.len());
        let size = len + record.key.len() + record.resource.len() + actor;
        let (most, bytes) = (RECORDS.min(limits.records), BYTES.min(limits.bytes));
        if self.pending.len() >= most || self.bytes + size > bytes {
            self.flush()?;
        }
        self.bytes += size;
        self.pending.push(record);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), BackupError> {
        self.bytes = 0;
        let records = std::mem::take(&mut self.pending);
        if records.is_empty() {
            return Ok(());
        }
        if !self.started {
            self.target.refill(Refill::State(&records))?;
        } else {
            if records[0].revision != self.end.last + 1 {
                return Err(BackupError::Moved);
            }
            let batch = Batch {
                id: uuid::Uuid::new_v4().as_u128(),
                writer: self.writer,
                records,
            };
            match self.target.append(&self.end, &batch)? {
                Appended::Done(end) => self.end = end,
                Appended::Moved(_) => return Err(BackupError::Shared),
            }
        }
        (self.report)(self.content.progress);
        Ok(())
    }

    fn start(&mut self) -> Result<(), BackupError> {
        self.flush()?;
        self.target.refill(Refill::Start(self.end))?;
        self.started = true;
        Ok(())
    }

    /// Completes the log after its content was read back.
    fn finish(mut self, summary: Summary) -> Result<Restored, BackupError> {
        if !self.started {
            self.start()?;
        }
        self.flush()?;
        if self.end.last != summary.last {
            return Err(BackupError::Moved);
        }
        let (mut found, floor) = (Content::default(), self.floor);
        let end = self.target.dump(
            floor,
            &mut |record| match record.revision <= floor {
                true => found.add_live(&record),
                false => found.add(&record),
            },
            &Stop::default(),
        )?;
        if end != self.end {
            return Err(BackupError::Shared);
        }
        if found.summary(end.last) != summary {
            return Err(BackupError::Unequal);
        }
        let end = match self.options.epoch {
            Epoch::Keep => end,
            Epoch::Next { beyond } => self.target.next_epoch(beyond.max(self.replaced.last))?,
        };
        self.target.refill(Refill::Finish)?;
        Ok(Restored { summary, end })
    }
}
