//! The embedded store: the log in a SQLite file.

pub use bareboat_sqlite::{
    Restored, RewriteError, Sqlite, SqliteError, SqliteOptions, SqliteReader, inspect,
    last_revision, raise, rewrite,
};

use bareboat_storage::{OpenError, Store, StoreOptions};
use std::path::Path;
use std::sync::Arc;

/// Why the embedded store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenSqliteError {
    /// The file cannot be opened.
    #[error(transparent)]
    File(SqliteError),
    /// The content of the file cannot be read.
    #[error(transparent)]
    Content(OpenError),
}

/// Opens or creates the embedded store in a file.
pub fn open_sqlite(
    path: impl AsRef<Path>,
    options: StoreOptions,
) -> Result<Store, OpenSqliteError> {
    let backend = Sqlite::open(path).map_err(OpenSqliteError::File)?;
    Store::open(Arc::new(backend), options).map_err(OpenSqliteError::Content)
}
