//! What differs between databases, as far as appends and sessions need to know.

use bareboat_storage::{BackendError, Batch, Mark, Tail};

use crate::engine::Engine;
use crate::error::{Failure, SqlError};
use crate::session::Session;

/// What a database did with a batch.
pub(crate) enum Answer {
    /// It was added.
    Done,
    /// It was in the log already.
    Found,
    /// The log does not end where the batch begins.
    Moved,
}

/// Why what follows a place could not be read.
pub(crate) enum Trouble<E> {
    /// The connection failed.
    Link(E),
    /// The log is not usable.
    Log(BackendError),
}

/// An open connection.
pub(crate) trait Link {
    /// Whether it can no longer be used.
    fn is_closed(&self) -> bool;
    /// The epoch of the log when it was made.
    fn epoch(&self) -> u64;
}

/// A kind of database.
pub(crate) trait Dialect {
    type Link: Link;
    type Error: Failure;

    fn engine(&self) -> &Engine;

    /// The session for appends and tails.
    fn writer(&self) -> &Session<Self::Link>;

    /// Opens a session: sets it up, and looks whether the server is still the one that it was.
    async fn connect(&self) -> Result<Self::Link, SqlError>;

    /// Adds a batch to the log if that ends at `base`. `end` is the place after it. After an error no transaction is
    /// open, or the connection is closed.
    async fn append(
        &self,
        link: &mut Self::Link,
        base: &Mark,
        batch: &Batch,
        end: &Mark,
    ) -> Result<Answer, Self::Error>;

    /// Makes a batch durable whose first answer was lost. Returns the place after the batch as it is stored, if it still is: a
    /// value that is encrypted again is other bytes.
    async fn settle(
        &self,
        link: &mut Self::Link,
        base: &Mark,
        batch: &Batch,
    ) -> Result<Option<Mark>, Self::Error>;

    /// Reads what follows `after`.
    async fn read_tail(
        &self,
        link: &mut Self::Link,
        after: &Mark,
    ) -> Result<Tail, Trouble<Self::Error>>;

    /// Begins a transaction that keeps other writers out.
    async fn hold(&self, link: &mut Self::Link) -> Result<(), Self::Error>;

    /// Adds a batch within that transaction, and commits.
    async fn append_held(
        &self,
        link: &mut Self::Link,
        base: &Mark,
        batch: &Batch,
        end: &Mark,
    ) -> Result<Answer, Self::Error>;

    /// Ends that transaction.
    async fn release(&self, link: &mut Self::Link) -> Result<(), Self::Error>;
}
