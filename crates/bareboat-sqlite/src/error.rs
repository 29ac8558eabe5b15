//! Converts SQLite's errors to errors of this crate: full, busy, failed, or not openable.

use std::path::PathBuf;

use bareboat_storage::BackendError;
use rusqlite::{ErrorCode, ffi};

/// The error of opening a database file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SqliteError {
    /// Another process has locked the database.
    #[error("{} is in use by another server", path.display())]
    InUse {
        /// The path of the database.
        path: PathBuf,
    },
    /// Another program reads the database and does not finish.
    #[error("{} is being read by another program; end it and try again", path.display())]
    Busy {
        /// The path of the database.
        path: PathBuf,
    },
    /// The lock file of the database cannot be locked.
    #[error("the lock file {} cannot be locked", path.display())]
    Lock {
        /// The path of the lock file.
        path: PathBuf,
        /// The I/O error.
        #[source]
        source: std::io::Error,
    },
    /// The database was written by a newer version of this program.
    #[error(
        "{} has format {found}, this program knows formats up to {known}; use the newer program that wrote it, \
         or restore a backup",
        path.display()
    )]
    Newer {
        /// The path of the database.
        path: PathBuf,
        /// The format of the file.
        found: i64,
        /// The newest supported format.
        known: i64,
    },
    /// The file has an older format, and was opened for reading only.
    #[error(
        "{} has format {found}; start a server with it once, which brings it to the current format",
        path.display()
    )]
    Older {
        /// The path of the database.
        path: PathBuf,
        /// The format of the file.
        found: i64,
    },
    /// Before an upgrade, the file could not be copied.
    #[error("the copy {} cannot be made, and the file is not upgraded without one", path.display())]
    Copy {
        /// The path of the copy.
        path: PathBuf,
        /// The I/O error.
        #[source]
        source: std::io::Error,
    },
    /// The file is an SQLite database of another program.
    #[error("{} is a database of another program", path.display())]
    Foreign {
        /// The path of the database.
        path: PathBuf,
    },
    /// The file is damaged, or is not an SQLite database.
    #[error("{} is damaged or not a database; restore it from a backup", path.display())]
    Damaged {
        /// The path of the database.
        path: PathBuf,
        /// SQLite's error.
        #[source]
        source: rusqlite::Error,
    },
    /// Revisions are missing from the history.
    #[error("{} lost revisions between {first} and {last}; restore it from a backup", path.display())]
    Gap {
        /// The path of the database.
        path: PathBuf,
        /// The first revision of the range in which revisions are missing.
        first: i64,
        /// The last revision of that range.
        last: i64,
    },
    /// Any other SQLite error while the database is opened.
    #[error("the database cannot be opened")]
    Database(#[from] rusqlite::Error),
}

impl SqliteError {
    pub(crate) fn at(path: &std::path::Path, source: rusqlite::Error) -> Self {
        match source.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged {
                path: path.to_owned(),
                source,
            },
            _ => Self::Database(source),
        }
    }

    /// Returns whether there was not enough space to open the file.
    pub(crate) fn is_full(&self) -> bool {
        match self {
            Self::Database(error) => is_full(error) || code(error) == ffi::SQLITE_IOERR_WRITE,
            _ => false,
        }
    }
}

/// Returns SQLite's extended result code; 0 if the error has no code.
pub(crate) fn code(error: &rusqlite::Error) -> i32 {
    error.sqlite_error().map_or(0, |error| error.extended_code)
}

/// Returns whether there was no space in the file, in the write-ahead log or in its index.
pub(crate) fn is_full(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DiskFull)
        || code(error) == ffi::SQLITE_IOERR_SHMSIZE
}

/// Returns whether another program holds a lock.
pub(crate) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    )
}

/// Returns whether the disk or the file is read-only. A file that was moved away is another case: SQLite reports it with
/// an extended code.
fn is_read_only(error: &rusqlite::Error) -> bool {
    matches!(
        code(error),
        ffi::SQLITE_READONLY | ffi::SQLITE_READONLY_DIRECTORY | ffi::SQLITE_READONLY_CANTINIT
    )
}

/// Converts an error of a running store.
pub(crate) fn failed(error: rusqlite::Error) -> BackendError {
    if is_full(&error) {
        return BackendError::Full(Box::new(error));
    }
    if is_read_only(&error) {
        return BackendError::ReadOnly(Box::new(error));
    }
    if is_busy(&error) {
        return BackendError::Busy(Box::new(error));
    }
    BackendError::Failed(Box::new(error))
}

/// Returns the error of a closed store.
pub(crate) fn closed() -> BackendError {
    BackendError::Failed("the database is closed".into())
}
