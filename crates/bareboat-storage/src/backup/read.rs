//! Reads a backup: verifies its checksum first, then reads line by line.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};

use flate2::bufread::GzDecoder;

use super::{BackupError, Content, End, FORMAT, Header, Summary, Trailer, line, seal};
use crate::backend::Record;

/// The maximum length of a line. No object is nearly as large.
const LONGEST: u64 = 64 << 20;

/// A backup whose checksum was verified.
#[derive(Debug)]
pub struct Backup {
    file: File,
    /// The number of bytes before the seal.
    len: u64,
    header: Header,
}

impl Backup {
    /// Returns whether a file begins like a backup.
    pub fn is_backup(file: &mut File) -> std::io::Result<bool> {
        let mut start = [0; 2];
        file.rewind()?;
        let read = file.read(&mut start)?;
        file.rewind()?;
        Ok(read == 2 && start == [0x1f, 0x8b])
    }

    /// Opens a backup, and verifies its checksum.
    pub fn open(mut file: File) -> Result<Self, BackupError> {
        let len = file.seek(SeekFrom::End(0))?;
        let Some(len) = len.checked_sub(seal::LEN as u64) else {
            return Err(BackupError::NotABackup);
        };
        let mut sealed = vec![0; seal::LEN];
        file.seek(SeekFrom::Start(len))?;
        file.read_exact(&mut sealed)?;
        let is_backup = Self::is_backup(&mut file)?;
        let mut content = BufReader::new(&file).take(len);
        if !seal::fits(&mut content, &sealed)? {
            return Err(match is_backup && seal::is_seal(&sealed) {
                true => BackupError::Damaged,
                false => BackupError::NotABackup,
            });
        }
        let mut lines = Lines::new(&file, len)?;
        let header = lines.next()?.ok_or(BackupError::NotABackup)?;
        let header: Header = serde_json::from_slice(header).map_err(|_| BackupError::NotABackup)?;
        if header.bareboat != "backup" {
            return Err(BackupError::NotABackup);
        }
        if header.format > FORMAT {
            return Err(BackupError::Newer {
                found: header.format,
            });
        }
        Ok(Self { file, len, header })
    }

    /// Returns the revision of the backup's state, and the epoch. The backup contains every later record.
    pub(super) fn start(&self) -> (u64, u64) {
        (self.header.floor, self.header.epoch)
    }

    /// Opens the same file again.
    #[cfg(feature = "conformance")]
    pub(crate) fn reopened(&self) -> std::io::Result<Self> {
        Ok(Self {
            file: self.file.try_clone()?,
            len: self.len,
            header: self.header.clone(),
        })
    }

    /// Returns the time when the backup was made, in milliseconds since 1970.
    pub fn time(&self) -> u64 {
        self.header.time
    }

    /// Returns whether the backup contains only what follows an earlier one.
    pub fn continues(&self) -> bool {
        self.header.after.is_some()
    }

    /// Returns the end of the backup that this one continues.
    pub(super) fn after(&self) -> Option<&End> {
        self.header.after.as_ref()
    }

    /// Returns the end of the backup; `None` if an older program wrote it.
    pub(super) fn end(&self) -> Result<Option<End>, BackupError> {
        self.scan(&mut |_| Ok(())).map(|trailer| trailer.end)
    }

    /// Passes all records to `visit`, and returns the summary that the backup contains.
    pub fn read(
        &self,
        visit: &mut dyn FnMut(Record) -> Result<(), BackupError>,
    ) -> Result<Summary, BackupError> {
        self.scan(visit).map(|trailer| trailer.summary)
    }

    pub(super) fn scan(
        &self,
        visit: &mut dyn FnMut(Record) -> Result<(), BackupError>,
    ) -> Result<Trailer, BackupError> {
        let mut lines = Lines::new(&self.file, self.len)?;
        lines.next()?;
        let mut content = Content::default();
        loop {
            let number = lines.number + 1;
            let wrong = || BackupError::Line { line: number };
            let text = lines.next()?.ok_or(BackupError::NotABackup)?;
            if let Some(record) = line::decode(text) {
                match record.revision <= self.header.floor {
                    true => content.add_live(&record),
                    false => content.add(&record),
                }
                visit(record)?;
                continue;
            }
            let trailer: Trailer = serde_json::from_slice(text).map_err(|_| wrong())?;
            let last = trailer.summary.last;
            let own = match self.continues() {
                true => content.summary_of_changes(last),
                false => content.summary(last),
            };
            return match own == trailer.summary && lines.next()?.is_none() {
                true => Ok(trailer),
                false => Err(BackupError::Damaged),
            };
        }
    }
}

/// The lines of a file.
struct Lines<'a> {
    text: std::io::Take<BufReader<GzDecoder<BufReader<std::io::Take<&'a File>>>>>,
    line: Vec<u8>,
    number: u64,
}

impl<'a> Lines<'a> {
    fn new(mut file: &'a File, len: u64) -> Result<Self, BackupError> {
        file.rewind()?;
        let text = GzDecoder::new(BufReader::new(file.take(len)));
        Ok(Self {
            text: BufReader::new(text).take(0),
            line: Vec::new(),
            number: 0,
        })
    }

    /// Returns the next line without its newline.
    fn next(&mut self) -> Result<Option<&[u8]>, BackupError> {
        self.line.clear();
        self.text.set_limit(LONGEST);
        self.number += 1;
        let read = self.text.read_until(b'\n', &mut self.line)?;
        match self.line.strip_suffix(b"\n") {
            Some(line) => Ok(Some(line)),
            None if read == 0 => Ok(None),
            None => Err(BackupError::Line { line: self.number }),
        }
    }
}
