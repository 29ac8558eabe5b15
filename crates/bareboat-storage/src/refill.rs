//! The steps in which a log takes the content of another one, with its revisions.

use crate::backend::Record;
use crate::batch::Mark;

/// A step of filling a log with the content of another one. They come in this order; only `State` may be repeated.
#[derive(Clone, Copy, Debug)]
pub enum Refill<'a> {
    /// Deletes everything. From now on the log is not complete: no store opens it.
    Begin,
    /// Adds records of the state at the floor, in any order, with their own revisions.
    State(&'a [Record]),
    /// The state is there. The log ends here, and this is its floor; later batches are appended as usual. The epoch is not
    /// below the one of the log, and the digest is zero.
    Start(Mark),
    /// The log is complete.
    Finish,
}
