//! The commands of the sequencer's queue, and the callers that wait for them.

use smallvec::SmallVec;
use tokio::sync::oneshot;

use super::decide::Prepared;
use crate::write::{CommitError, Committed, TransactionError};

/// A command for the sequencer.
pub(crate) enum Command {
    /// Commits a unit of writes completely or not at all.
    Commit(Unit),
    /// Applies the batches that other stores added to the log; answers whether the log could be read.
    CatchUp(Option<std::sync::mpsc::SyncSender<bool>>),
    /// Compacts up to a revision now.
    Compact(u64, oneshot::Sender<()>),
    /// Runs the queued commands, then ends the thread.
    Close(oneshot::Sender<()>),
}

/// Writes that are committed together or not at all.
pub(crate) struct Unit {
    pub(crate) writes: SmallVec<[Prepared; 1]>,
    pub(crate) answer: Answer,
}

impl Unit {
    /// Returns the weight of the unit in the queue: a large value counts as several.
    pub(crate) fn weight(&self) -> u32 {
        const BYTES: usize = 16 << 10;
        let each = |write: &Prepared| 1 + write.len() / BYTES;
        self.writes.iter().map(each).sum::<usize>() as u32
    }

    /// Returns the bytes that the unit's records take in the log.
    pub(crate) fn bytes(&self) -> usize {
        self.writes.iter().map(Prepared::bytes).sum()
    }

    /// Returns whether both units free space, or neither does.
    pub(super) fn goes_with(&self, other: &Unit) -> bool {
        self.frees() == other.frees()
    }

    fn frees(&self) -> bool {
        self.writes.iter().all(Prepared::frees)
    }
}

/// The caller that waits for a unit.
pub(crate) enum Answer {
    One(oneshot::Sender<Result<Committed, CommitError>>),
    Many(oneshot::Sender<Result<Vec<Committed>, TransactionError>>),
}

/// The committed writes of a unit, or the index and the error of the failed write.
pub(crate) type UnitResult = Result<SmallVec<[Committed; 1]>, (usize, CommitError)>;

impl Answer {
    pub(super) fn send(self, result: UnitResult) {
        // A caller that stopped waiting needs no answer; the write is committed anyway.
        match self {
            Self::One(to) => {
                let result = result.map_err(|(_, error)| error);
                let _ = to.send(result.and_then(|mut all| all.pop().ok_or(CommitError::Closed)));
            }
            Self::Many(to) => {
                let result = result.map(|all| all.into_vec());
                let _ = to.send(result.map_err(|(index, error)| TransactionError { index, error }));
            }
        }
    }
}
