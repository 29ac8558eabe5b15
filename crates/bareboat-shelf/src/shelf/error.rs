//! Errors of the shelf.

/// An error of a database.
type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShelfError {
    /// The database failed.
    #[error("the database of the shelf failed")]
    Database(#[source] Cause),
    /// The database cannot be reached at the moment, or is busy.
    #[error("the database of the shelf cannot be reached")]
    Unreachable(#[source] Cause),
    /// The disk of the database is full.
    #[error("the disk of the shelf is full")]
    Full(#[source] Cause),
    /// The shelf has a format of another version of this program.
    #[error(
        "the shelf has format {0}, which this version does not know; delete it, it is filled again from the members"
    )]
    Format(i64),
    /// The common counter of several servers is too large.
    #[error("the shelf cannot count from term {0}, which is too large")]
    Term(u64),
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
    #[error(
        "the member has more than {0} objects; sync fewer types or namespaces, or raise the limit"
    )]
    Quota(u64),
    /// The objects of a member are too large.
    #[error(
        "the objects of the member have more than {0} bytes; sync fewer types or namespaces, trim fields, or raise the limit"
    )]
    QuotaBytes(u64),
    /// Another server syncs the member.
    #[error("another server has begun to sync the member")]
    NotHeld,
    /// Names of members or kinds have changed since they were read.
    #[error("another server has changed the names of members or kinds")]
    Renamed,
}

impl ShelfError {
    /// Returns whether the disk is full.
    pub fn is_full(&self) -> bool {
        matches!(self, ShelfError::Full(_))
    }
}
