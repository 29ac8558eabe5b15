//! Writes a backup while servers use the log.

use std::fs::File;
use std::io::{BufWriter, Seek as _, Write as _};
use std::time::{SystemTime, UNIX_EPOCH};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::seal::Sealing;
use super::{
    Backup, BackupError, Content, End, FORMAT, Header, Report, Summary, Trailer, WHOLE, line,
};
use crate::backend::{Backend, BackendError, PageLimit, Record, Stop};
use crate::batch::Mark;

/// What is read at once for a backup that continues another one.
const PAGE: PageLimit = PageLimit {
    changes: 512,
    bytes: 8 << 20,
};

/// Writes the content of a log to `file`, which is emptied first. The caller makes the file durable.
///
/// The backup is the state at one revision. It contains the whole history, unless the history is compacted faster than
/// it can be read.
pub fn write(
    log: &dyn Backend,
    file: &mut File,
    report: &mut Report<'_>,
) -> Result<Summary, BackupError> {
    // History is compacted from its beginning, so each attempt begins later in the history.
    for part in [(0, 1), (1, 2), (3, 4), (1, 1)] {
        let begun = log.mark()?;
        let floor = log.compacted().min(begun.last);
        let from = floor + (begun.last - floor) / part.1 * part.0;
        match attempt(log, file, (from, begun.epoch), report) {
            Err(BackupError::Moved | BackupError::Store(BackendError::Compacted { .. })) => {}
            done => return done,
        }
    }
    Err(BackupError::Moved)
}

/// Writes the records after the backup `before` to `file`, which is emptied first. The caller makes the file durable.
pub fn write_since(
    log: &dyn Backend,
    before: &Backup,
    file: &mut File,
    report: &mut Report<'_>,
) -> Result<Summary, BackupError> {
    let base = before.end()?.ok_or(BackupError::Unrelated)?;
    let end = log.mark()?;
    let gone = |error: BackendError| match error {
        BackendError::Compacted { .. } => BackupError::Gone,
        error => error.into(),
    };
    if end.epoch != base.epoch || end.last < base.last {
        return Err(BackupError::Unrelated);
    }
    if log.compacted() > base.last {
        return Err(BackupError::Gone);
    }
    let (mut known, mut same) = (false, false);
    log.places(&mut |place| {
        known = true;
        let place = End::of(&place);
        same |= place.last == base.last && place.digest == base.digest;
    })?;
    if known && !same {
        return Err(BackupError::Unrelated);
    }
    let mut out = Output::begin(file, (base.last, base.epoch), Some(base.clone()))?;
    let (mut content, stop) = (Content::default(), Stop::default());
    let mut from = base.last;
    while from < end.last {
        let page = log
            .read_since(None, from, end.last, PAGE, &stop)
            .map_err(gone)?;
        for change in &page.changes {
            if change.record.revision != from + 1 {
                return Err(BackupError::Moved);
            }
            from = change.record.revision;
            content.add(&change.record);
            out.record(&change.record)?;
        }
        if page.changes.is_empty() {
            return Err(BackupError::Moved);
        }
        report(content.progress);
    }
    let summary = content.summary_of_changes(end.last);
    out.finish(&summary, &end)?;
    Ok(summary)
}

/// A file that is being written.
struct Output<'a> {
    out: GzEncoder<Sealing<BufWriter<&'a mut File>>>,
    text: Vec<u8>,
}

impl<'a> Output<'a> {
    /// Empties the file and writes the header.
    fn begin(
        file: &'a mut File,
        (floor, epoch): (u64, u64),
        after: Option<End>,
    ) -> Result<Self, BackupError> {
        file.set_len(0)?;
        file.rewind()?;
        let header = Header {
            bareboat: "backup".to_owned(),
            format: match after {
                Some(_) => FORMAT,
                None => WHOLE,
            },
            floor,
            epoch,
            time: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| since.as_millis() as u64),
            after,
        };
        let out = Sealing::new(BufWriter::new(file));
        let mut output = Self {
            out: GzEncoder::new(out, Compression::fast()),
            text: Vec::new(),
        };
        output.line(&header)?;
        Ok(output)
    }

    fn line(&mut self, line: &impl serde::Serialize) -> Result<(), BackupError> {
        let mut text = serde_json::to_vec(line).map_err(std::io::Error::from)?;
        text.push(b'\n');
        Ok(self.out.write_all(&text)?)
    }

    fn record(&mut self, record: &Record) -> Result<(), BackupError> {
        self.text.clear();
        line::encode(record, &mut self.text)?;
        Ok(self.out.write_all(&self.text)?)
    }

    /// Writes the trailer and the seal.
    fn finish(mut self, summary: &Summary, end: &Mark) -> Result<(), BackupError> {
        self.line(&Trailer {
            summary: summary.clone(),
            end: Some(End::of(end)),
        })?;
        let sealed = self.out.finish()?.finish()?;
        sealed.into_inner().map_err(|error| error.into_error())?;
        Ok(())
    }
}

fn attempt(
    log: &dyn Backend,
    file: &mut File,
    (floor, epoch): (u64, u64),
    report: &mut Report<'_>,
) -> Result<Summary, BackupError> {
    let mut out = Output::begin(file, (floor, epoch), None)?;
    let (stop, mut failed) = (Stop::default(), None);
    let (mut content, mut next) = (Content::default(), floor + 1);
    let end = log.dump(
        floor,
        &mut |record| {
            if failed.is_some() {
                return;
            }
            let mut take = |record: &Record| -> Result<(), BackupError> {
                match record.revision <= floor {
                    true => content.add_live(record),
                    false if record.revision == next => {
                        content.add(record);
                        next += 1;
                    }
                    false => return Err(BackupError::Moved),
                }
                out.record(record)
            };
            if let Err(error) = take(&record) {
                stop.request();
                failed = Some(error);
            } else if content.is_due() {
                report(content.progress);
            }
        },
        &stop,
    );
    if let Some(error) = failed {
        return Err(error);
    }
    let end = end?;
    if end.last + 1 != next || end.epoch != epoch {
        return Err(BackupError::Moved);
    }
    let summary = content.summary(end.last);
    out.finish(&summary, &end)?;
    report(content.progress);
    Ok(summary)
}
