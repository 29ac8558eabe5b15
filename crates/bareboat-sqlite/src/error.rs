//! SQLite's errors in our words: full, busy, failed, or not fit to be opened.

use std::path::PathBuf;

use bareboat_storage::BackendError;
use rusqlite::{ErrorCode, ffi};

/// Why a file can't be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SqliteError {
    /// Another process has it.
    #[error("{} is in use by another server", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// Another program reads it and does not finish.
    #[error("{} is being read by another program; end it and try again", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// Its lock file can't be had.
    #[error("the lock file {} can't be taken", path.display())]
    Lock {
        /// The lock file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It was written by a newer version of this program.
    #[error(
        "{} has format {found}, this program knows formats up to {known}; use the newer program that wrote it, \
         or restore a backup",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// Ours.
        known: i64,
    },
    /// The copy that is kept of a file of an older format can't be made.
    #[error("the copy {} can't be made, which is kept before the file's format is changed", path.display())]
    Copy {
        /// The copy.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It belongs to another program.
    #[error("{} is a database of another program", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// It is damaged, or not a database.
    #[error("{} is damaged or not a database; restore it from a backup", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        #[source]
        source: rusqlite::Error,
    },
    /// Revisions that must be there are missing.
    #[error("{} lost revisions between {first} and {last}; restore it from a backup", path.display())]
    Gap {
        /// The file.
        path: PathBuf,
        /// The first revision of the batch.
        first: i64,
        /// The last revision of the batch.
        last: i64,
    },
    /// SQLite could not do it.
    #[error("the database can't be opened")]
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

    /// Whether there was no space to open it.
    pub(crate) fn is_full(&self) -> bool {
        match self {
            Self::Database(error) => is_full(error) || code(error) == ffi::SQLITE_IOERR_WRITE,
            _ => false,
        }
    }
}

/// The extended result code, 0 if SQLite gave none.
pub(crate) fn code(error: &rusqlite::Error) -> i32 {
    error.sqlite_error().map_or(0, |error| error.extended_code)
}

/// Whether there was no space, in the file, in the write-ahead log or in its index.
pub(crate) fn is_full(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DiskFull)
        || code(error) == ffi::SQLITE_IOERR_SHMSIZE
}

/// Whether another program holds a lock.
pub(crate) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    )
}

/// An error of a running store.
pub(crate) fn failed(error: rusqlite::Error) -> BackendError {
    if is_full(&error) {
        return BackendError::Full(Box::new(error));
    }
    if is_busy(&error) {
        return BackendError::Busy(Box::new(error));
    }
    BackendError::Failed(Box::new(error))
}

/// The store was closed before.
pub(crate) fn closed() -> BackendError {
    BackendError::Failed("the database is closed".into())
}
