//! Errors of the shelf.

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShelfError {
    /// The database failed.
    #[error("the database of the shelf failed")]
    Database(#[from] rusqlite::Error),
    /// The file has a format of another version of this program.
    #[error(
        "the shelf has format {0}, which this version does not know; delete the file, it is filled again from the members"
    )]
    Format(i64),
    /// A query would take too long.
    #[error("the search reads too many objects{hint}")]
    TooLong {
        /// What to do, with a leading semicolon.
        hint: String,
    },
    /// The answer is not needed any more.
    #[error("the search was interrupted")]
    Interrupted,
    /// A query is wrong.
    #[error("{0}")]
    Query(String),
    /// A member has too many rows.
    #[error("the member has more than {0} objects")]
    Quota(u64),
}

impl ShelfError {
    /// Returns whether the disk is full.
    pub fn is_full(&self) -> bool {
        matches!(
            self,
            ShelfError::Database(rusqlite::Error::SqliteFailure(error, _))
                if error.code == rusqlite::ErrorCode::DiskFull
        )
    }
}
