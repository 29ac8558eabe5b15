//! Errors: why a database cannot be used, and what an error of a running store means.

use bareboat_storage::BackendError;

use crate::address::AddressError;

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SqlError {
    /// The address cannot be understood.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The certificates cannot be used.
    #[error("{what} cannot be used")]
    Certificate {
        /// The file, or what it is for.
        what: String,
        /// The reason.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The database answered with an error, or not at all.
    #[error("the database cannot be used")]
    Database(#[source] DatabaseError),
    /// A setting of the database makes it unsafe.
    #[error("{0}")]
    Unsafe(String),
    /// The tables are of a newer program.
    #[error("the tables have format {found}, this program knows formats up to {known}")]
    Newer {
        /// The format of the tables.
        found: i32,
        /// The newest known format.
        known: i32,
    },
    /// The runtime for connections cannot be started.
    #[error("cannot start threads for the database")]
    Runtime(#[source] std::io::Error),
}

/// An error of a connection, or of the server.
#[derive(Debug)]
pub struct DatabaseError {
    error: Box<dyn std::error::Error + Send + Sync>,
    meaning: Meaning,
}

impl std::fmt::Display for DatabaseError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for DatabaseError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.error.source()
    }
}

/// What an error means for the statement that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// The connection is gone; the statement may or may not have been executed.
    Lost,
    /// It was rolled back, and may be repeated at once.
    Again,
    /// It was rolled back for lack of space.
    Full,
    /// It was rolled back, because something else had a lock, or there were too many connections.
    Busy,
    /// A row exists already, although the lock was held.
    Exists,
    /// The database is damaged, or not as it should be.
    Failed,
}

/// An error of a client library.
pub(crate) trait Failure: std::error::Error + Send + Sync + Sized + 'static {
    fn meaning(&self) -> Meaning;
}

impl<E: Failure> From<E> for SqlError {
    fn from(error: E) -> Self {
        Self::Database(DatabaseError {
            meaning: error.meaning(),
            error: Box::new(error),
        })
    }
}

/// Converts an error of a read.
pub(crate) fn read_failed<E: Failure>(error: E) -> BackendError {
    match error.meaning() {
        Meaning::Failed | Meaning::Exists => BackendError::Failed(Box::new(error)),
        _ => BackendError::Unreachable(Box::new(error)),
    }
}

/// Converts an error of compaction.
pub(crate) fn sweep_failed<E: Failure>(error: E) -> BackendError {
    match error.meaning() {
        Meaning::Full => BackendError::Full(Box::new(error)),
        Meaning::Failed => BackendError::Failed(Box::new(error)),
        _ => BackendError::Busy(Box::new(error)),
    }
}

pub(crate) fn unreachable(error: SqlError) -> BackendError {
    match &error {
        SqlError::Database(inner) if inner.meaning == Meaning::Failed => {
            BackendError::Failed(Box::new(error))
        }
        _ => BackendError::Unreachable(Box::new(error)),
    }
}
