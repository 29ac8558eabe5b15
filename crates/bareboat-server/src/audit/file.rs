//! Writes events to a file, one JSON object per line. The file is renamed when it becomes too large, and old ones are
//! deleted.

mod rotation;

pub use rotation::Rotation;

use super::sink::Writer;
use bareboat_api::kind::BoxFuture;
use bareboat_audit::Event;
use parking_lot::Mutex;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file of events, or standard output.
pub struct AuditLog(Arc<Mutex<Destination>>);

bareboat_api::opaque_debug!(AuditLog);

enum Destination {
    Stdout,
    File(LogFile),
}

struct LogFile {
    path: PathBuf,
    rotation: Rotation,
    /// `None` after a failure, until it can be opened again.
    file: Option<File>,
    size: u64,
}

/// An error while opening a file of events.
#[derive(Debug)]
pub struct AuditLogError {
    path: PathBuf,
    source: io::Error,
}

impl fmt::Display for AuditLogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the audit log {} cannot be opened", self.path.display())
    }
}

impl std::error::Error for AuditLogError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

impl AuditLog {
    /// Opens a file to append to, and rotates it by `rotation`. Only its owner can read a new file; an existing one keeps
    /// its permissions.
    pub fn open(path: &Path, rotation: Rotation) -> Result<AuditLog, AuditLogError> {
        let mut file = LogFile {
            path: path.to_owned(),
            rotation,
            file: None,
            size: 0,
        };
        file.open().map_err(|source| AuditLogError {
            path: path.to_owned(),
            source,
        })?;
        Ok(AuditLog(Arc::new(Mutex::new(Destination::File(file)))))
    }

    /// Writes to standard output.
    pub fn stdout() -> AuditLog {
        AuditLog(Arc::new(Mutex::new(Destination::Stdout)))
    }
}

impl LogFile {
    fn open(&mut self) -> io::Result<&mut File> {
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(&self.path)?;
        self.size = file.metadata()?.len();
        Ok(self.file.insert(file))
    }

    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        let more = lines.len() as u64;
        if self.file.is_some() && self.size > 0 && self.size + more > self.rotation.max_bytes {
            self.file = None;
            // A file that cannot be renamed keeps growing: events are more important than its size.
            if let Err(error) = self.rotation.rotate(&self.path) {
                tracing::error!(%error, "the audit log cannot be rotated");
            }
        }
        let file = match &mut self.file {
            Some(file) => file,
            None => self.open()?,
        };
        if let Err(error) = file.write_all(lines) {
            self.file = None;
            return Err(error);
        }
        self.size += more;
        Ok(())
    }
}

impl Destination {
    /// Writes events; a batch larger than the maximum size of a file is split.
    fn write(&mut self, events: &[Arc<Event>]) -> io::Result<()> {
        let largest = match self {
            Destination::Stdout => u64::MAX,
            Destination::File(file) => file.rotation.max_bytes,
        };
        let mut lines = Vec::new();
        for event in events {
            let before = lines.len();
            event.to_value().write_json(&mut lines);
            lines.push(b'\n');
            if before > 0 && lines.len() as u64 > largest {
                self.append(&lines[..before])?;
                lines.drain(..before);
            }
        }
        self.append(&lines)
    }

    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        match self {
            Destination::Stdout => io::stdout().lock().write_all(lines),
            Destination::File(file) => file.write(lines),
        }
    }
}

impl Writer for AuditLog {
    fn write(&self, events: Vec<Arc<Event>>) -> BoxFuture<'_, Result<(), String>> {
        let place = self.0.clone();
        Box::pin(async move {
            let writing = tokio::task::spawn_blocking(move || place.lock().write(&events));
            match writing.await {
                Ok(written) => written.map_err(|error| error.to_string()),
                Err(error) => Err(error.to_string()),
            }
        })
    }
}

#[cfg(test)]
pub(super) mod tests;
