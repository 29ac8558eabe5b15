//! The steps that replace the content of a log by that of another log, with its revisions.

use crate::backend::Record;
use crate::batch::Mark;

/// A step of filling a log with the content of another log. The steps come in this order; only `State` may be repeated.
#[derive(Clone, Copy, Debug)]
pub enum Refill<'a> {
    /// Deletes everything. From now on the log is incomplete: no store opens it.
    Begin,
    /// Adds records of the state at the floor, in any order, with their own revisions.
    State(&'a [Record]),
    /// Ends the state. The given mark is the end and the floor of the log; later batches are appended as usual. The
    /// mark's epoch is not below that of the log, and its digest is zero.
    Start(Mark),
    /// Marks the log as complete.
    Finish,
}
