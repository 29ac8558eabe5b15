//! Errors: why a database cannot be used, and what an error means for a running store.

use bareboat_storage::BackendError;

use crate::address::AddressError;

/// The reason why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SqlError {
    /// The address cannot be understood.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// A certificate, a key or a file with a password cannot be used.
    #[error("{what} cannot be used")]
    Certificate {
        /// The file, or its purpose.
        what: String,
        /// The reason why the file cannot be used.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The database returned an error, or did not answer.
    #[error("the database cannot be used")]
    Database(#[source] DatabaseError),
    /// A setting of the database makes it unsafe.
    #[error("{0}")]
    Unsafe(String),
    /// The tables do not exist, and were not to be created.
    #[error("there is no store in {place}; check the address")]
    Missing {
        /// The schema or database without the tables.
        place: String,
    },
    /// A newer program has written the tables.
    #[error("the tables have format {found}, this program knows formats up to {known}")]
    Newer {
        /// The format of the tables.
        found: i32,
        /// The newest format that this program knows.
        known: i32,
    },
    /// The runtime for connections cannot be started.
    #[error("cannot start threads for the database")]
    Runtime(#[source] std::io::Error),
}

/// An error of a connection or of the database server.
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
    /// The connection is lost; the statement may or may not have been executed.
    Lost,
    /// The statement was rolled back, and may be repeated at once.
    Again,
    /// The statement was rolled back for lack of space.
    Full,
    /// The statement was rolled back, because the server accepts no writes: it is read-only, or its disk has an error.
    ReadOnly,
    /// The statement was rolled back, because another session had a lock, or there were too many connections.
    Busy,
    /// A row already exists, although the lock was held.
    Exists,
    /// The database is damaged, or does not have the expected tables.
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

/// Converts `error`, which a read has caused.
pub(crate) fn read_failed<E: Failure>(error: E) -> BackendError {
    match error.meaning() {
        Meaning::Failed | Meaning::Exists => BackendError::Failed(Box::new(error)),
        _ => BackendError::Unreachable(Box::new(error)),
    }
}

/// Converts `error`, which compaction has caused.
pub(crate) fn sweep_failed<E: Failure>(error: E) -> BackendError {
    match error.meaning() {
        Meaning::Full => BackendError::Full(Box::new(error)),
        Meaning::ReadOnly => BackendError::ReadOnly(Box::new(error)),
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
