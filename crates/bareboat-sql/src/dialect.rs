//! What appends and sessions need to know about each kind of database.

use bareboat_storage::{BackendError, Batch, Digest, Mark, Tail};

use crate::engine::Engine;
use crate::error::{Failure, SqlError};
use crate::session::Session;

/// What a database did with an appended batch.
pub(crate) enum Answer {
    /// The batch was added.
    Done,
    /// The batch was already in the log.
    Found,
    /// The log does not end at the mark that the batch follows.
    Moved,
}

/// The reason why the tail of the log could not be read.
pub(crate) enum Trouble<E> {
    /// The connection failed.
    Link(E),
    /// The log cannot be used.
    Log(BackendError),
}

/// Returns whether the log has another history than the one that ends at `known`. `around` is the last batch that begins before or at
/// that end: its last revision and its digest. There is none if it was compacted, and that tells nothing.
pub(crate) fn is_another_history(known: &Mark, around: Option<(u64, Digest)>) -> bool {
    around.is_some_and(|found| found != (known.last, known.digest))
}

/// An open connection.
pub(crate) trait Link {
    /// Returns whether the connection can no longer be used.
    fn is_closed(&self) -> bool;
    /// Returns the epoch of the log at the time when the connection was made.
    fn epoch(&self) -> u64;
}

/// A kind of database.
pub(crate) trait Dialect {
    type Link: Link;
    type Error: Failure;

    fn engine(&self) -> &Engine;

    /// Returns the session for appends and tails.
    fn writer(&self) -> &Session<Self::Link>;

    /// Opens and configures a connection. Checks whether the address still leads to the same server.
    async fn connect(&self) -> Result<Self::Link, SqlError>;

    /// Adds `batch` to the log if the log ends at `base`. `end` is the mark after the batch. After an error no
    /// transaction is open, or the connection is closed.
    async fn append(
        &self,
        link: &mut Self::Link,
        base: &Mark,
        batch: &Batch,
        end: &Mark,
    ) -> Result<Answer, Self::Error>;

    /// Makes a batch durable whose first answer was lost. Returns the mark after the batch as it is stored, or `None`
    /// if the batch is no longer stored. The stored mark may differ: a value that is encrypted again has other bytes.
    async fn settle(
        &self,
        link: &mut Self::Link,
        base: &Mark,
        batch: &Batch,
    ) -> Result<Option<Mark>, Self::Error>;

    /// Reads the batches that follow `after`.
    async fn read_tail(
        &self,
        link: &mut Self::Link,
        after: &Mark,
    ) -> Result<Tail, Trouble<Self::Error>>;

    /// Begins a transaction that keeps other writers out.
    async fn hold(&self, link: &mut Self::Link) -> Result<(), Self::Error>;

    /// Adds `batch` within the transaction that `hold` began, and commits.
    async fn append_held(
        &self,
        link: &mut Self::Link,
        base: &Mark,
        batch: &Batch,
        end: &Mark,
    ) -> Result<Answer, Self::Error>;

    /// Ends the transaction that `hold` began.
    async fn release(&self, link: &mut Self::Link) -> Result<(), Self::Error>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_in_place_of_the_known_one_is_of_another_history() {
        let known = Mark {
            last: 7,
            epoch: 1,
            digest: Digest([1; 16]),
        };
        assert!(!is_another_history(&known, Some((7, known.digest))));
        assert!(!is_another_history(&known, None));
        assert!(is_another_history(&known, Some((7, Digest([2; 16])))));
        // The batch ends behind the known end, or the known one is missing.
        for last in [6, 8] {
            assert!(is_another_history(&known, Some((last, known.digest))));
        }
    }
}
