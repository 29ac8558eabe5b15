//! SQLite's errors in our words: full, failed, or not fit to be opened.

use std::path::PathBuf;

use bareboat_storage::BackendError;
use rusqlite::ErrorCode;

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
    #[error("{} has format {found}, this program knows formats up to {known}", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// Ours.
        known: i64,
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
}

/// An error of a running store.
pub(crate) fn failed(error: rusqlite::Error) -> BackendError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => BackendError::Full(Box::new(error)),
        _ => BackendError::Failed(Box::new(error)),
    }
}

/// The store was closed before.
pub(crate) fn closed() -> BackendError {
    BackendError::Failed("the database is closed".into())
}
