//! The lock that keeps a second server out. The kernel releases it when the process ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;

use crate::error::SqliteError;
use crate::schema::beside;

/// The lock, held while the file is open.
pub(crate) struct Lock(File);

impl Lock {
    pub(crate) fn take(database: &Path) -> Result<Self, SqliteError> {
        let path = beside(database, ".lock");
        let options = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path);
        let file = match options {
            Ok(file) => file,
            Err(source) => return Err(SqliteError::Lock { path, source }),
        };
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => Err(SqliteError::InUse {
                path: database.to_owned(),
            }),
            Err(TryLockError::Error(source)) => Err(SqliteError::Lock { path, source }),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // The file stays: removing it would race with the next server that has just opened it.
        let _ = self.0.unlock();
    }
}
