//! Writes a backup while servers use the log.

use std::fs::File;
use std::io::{BufWriter, Seek as _, Write as _};
use std::time::{SystemTime, UNIX_EPOCH};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::seal::Sealing;
use super::{BackupError, Content, FORMAT, Header, Report, Summary, line};
use crate::backend::{Backend, BackendError, Record, Stop};

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
        file.set_len(0)?;
        file.rewind()?;
        match attempt(log, file, (from, begun.epoch), report) {
            Err(BackupError::Moved | BackupError::Store(BackendError::Compacted { .. })) => {}
            done => return done,
        }
    }
    Err(BackupError::Moved)
}

fn attempt(
    log: &dyn Backend,
    file: &mut File,
    (floor, epoch): (u64, u64),
    report: &mut Report<'_>,
) -> Result<Summary, BackupError> {
    let header = Header {
        bareboat: "backup".to_owned(),
        format: FORMAT,
        floor,
        epoch,
        time: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_millis() as u64),
    };
    let out = Sealing::new(BufWriter::new(file));
    let mut out = GzEncoder::new(out, Compression::fast());
    let mut text = serde_json::to_vec(&header).map_err(std::io::Error::from)?;
    text.push(b'\n');
    out.write_all(&text)?;
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
                text.clear();
                line::encode(record, &mut text)?;
                Ok(out.write_all(&text)?)
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
    let mut trailer = serde_json::to_vec(&summary).map_err(std::io::Error::from)?;
    trailer.push(b'\n');
    out.write_all(&trailer)?;
    let sealed = out.finish()?.finish()?;
    sealed.into_inner().map_err(|error| error.into_error())?;
    report(content.progress);
    Ok(summary)
}
