//! Errors: why a database cannot be used, and what an error of a running store means.

use bareboat_storage::BackendError;
use tokio_postgres::error::SqlState;

use crate::address::AddressError;

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SqlError {
    /// The address is invalid.
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
    Database(#[source] tokio_postgres::Error),
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

impl From<tokio_postgres::Error> for SqlError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error)
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
    /// It was rolled back because another session held a lock, or because there were too many connections.
    Busy,
    /// A row exists already, although the lock was held.
    Exists,
    /// The database is damaged, or its tables are not as expected.
    Failed,
}

pub(crate) fn meaning(error: &tokio_postgres::Error) -> Meaning {
    let Some(state) = error.code() else {
        return Meaning::Lost;
    };
    if *state == SqlState::DISK_FULL {
        return Meaning::Full;
    }
    if *state == SqlState::UNIQUE_VIOLATION {
        return Meaning::Exists;
    }
    if *state == SqlState::LOCK_NOT_AVAILABLE || *state == SqlState::QUERY_CANCELED {
        return Meaning::Busy;
    }
    if *state == SqlState::READ_ONLY_SQL_TRANSACTION {
        return Meaning::Lost;
    }
    match state.code().get(..2) {
        // A session that the server ended, and a server that starts or stops. Also wrong passwords, which may be
        // about to be rotated.
        Some("08" | "57" | "28") => Meaning::Lost,
        Some("40") => Meaning::Again,
        Some("53") => Meaning::Busy,
        // A session that was idle in a transaction for too long.
        Some("25") => Meaning::Lost,
        _ => Meaning::Failed,
    }
}

/// Converts an error of a read.
pub(crate) fn read_failed(error: tokio_postgres::Error) -> BackendError {
    match meaning(&error) {
        Meaning::Failed | Meaning::Exists => BackendError::Failed(Box::new(error)),
        _ => BackendError::Unreachable(Box::new(error)),
    }
}

pub(crate) fn unreachable(error: SqlError) -> BackendError {
    match &error {
        SqlError::Database(inner) if meaning(inner) == Meaning::Failed => {
            BackendError::Failed(Box::new(error))
        }
        _ => BackendError::Unreachable(Box::new(error)),
    }
}
