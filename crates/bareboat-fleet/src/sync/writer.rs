//! The one writer of the shelf: a bounded queue over the whole fleet, whose jobs are carried out in order.
//!
//! If the queue is full, tasks wait, and so their sockets are not read. Batches that wait are written in one transaction.

use bareboat_shelf::{Applied, Batch, KindId, MemberId, Progress, Seen, Shelf, ShelfError};
use std::collections::HashSet;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// How many jobs may wait.
const WAITING: usize = 64;
/// How many changes one transaction has, about.
const TOGETHER: usize = 2000;

/// Returns the time in milliseconds since 1970.
pub(crate) type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// Why a write failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WriteError {
    /// The member has too many rows.
    #[error("{0}")]
    Quota(String),
    /// The disk is full.
    #[error("{0}")]
    Full(String),
    /// The shelf failed.
    #[error("{0}")]
    Failed(String),
    /// The fleet ends.
    #[error("the fleet is shutting down")]
    Closed,
}

impl From<ShelfError> for WriteError {
    fn from(error: ShelfError) -> WriteError {
        let full = error.is_full();
        match error {
            ShelfError::Quota(_) => WriteError::Quota(error.to_string()),
            _ if full => WriteError::Full("the disk of the shelf is full".to_owned()),
            other => {
                tracing::warn!(error = %other, cause = ?std::error::Error::source(&other), "the shelf cannot be written");
                WriteError::Failed(other.to_string())
            }
        }
    }
}

type Reply<T> = oneshot::Sender<Result<T, WriteError>>;

/// A function that writes; it gets the time as well.
type Call = Box<dyn FnOnce(&Shelf, i64) + Send>;

enum Job {
    Apply(Batch, Reply<Applied>),
    /// Anything else that writes.
    Call(Call),
}

/// Hands jobs to the writer.
#[derive(Clone)]
pub(crate) struct Writer {
    jobs: mpsc::Sender<Job>,
}

impl Writer {
    /// Returns a writer, and the task that does the work. It ends when the last writer is dropped.
    pub(crate) fn new(shelf: Arc<Shelf>, clock: Clock) -> (Writer, impl Future<Output = ()>) {
        let (jobs, waiting) = mpsc::channel(WAITING);
        (Writer { jobs }, work(shelf, clock, waiting))
    }

    /// Writes a batch.
    pub(crate) async fn apply(&self, batch: Batch) -> Result<Applied, WriteError> {
        let (reply, answer) = oneshot::channel();
        let sent = self.jobs.send(Job::Apply(batch, reply)).await;
        sent.map_err(|_| WriteError::Closed)?;
        answer.await.unwrap_or(Err(WriteError::Closed))
    }

    /// Completes a list: removes the rows it did not have, then notes the version.
    pub(crate) async fn complete(
        &self,
        member: MemberId,
        kind: KindId,
        seen: Seen,
        progress: Progress,
    ) -> Result<usize, WriteError> {
        self.call(move |shelf, now| shelf.complete(member, kind, &seen, progress, now))
            .await
    }

    /// Runs any function on the shelf, after all jobs before it.
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Shelf, i64) -> Result<T, ShelfError> + Send + 'static,
    ) -> Result<T, WriteError> {
        let (reply, answer) = oneshot::channel();
        let job = move |shelf: &Shelf, now: i64| {
            // The task that asked may be gone.
            let _ = reply.send(job(shelf, now).map_err(WriteError::from));
        };
        let sent = self.jobs.send(Job::Call(Box::new(job))).await;
        sent.map_err(|_| WriteError::Closed)?;
        answer.await.unwrap_or(Err(WriteError::Closed))
    }
}

async fn work(shelf: Arc<Shelf>, clock: Clock, mut waiting: mpsc::Receiver<Job>) {
    let mut next = None;
    // Members with a write that failed: theirs are not joined with others, so that the fault of one is not that of all.
    let mut suspects: HashSet<MemberId> = HashSet::new();
    loop {
        let job = match next.take() {
            Some(job) => job,
            None => match waiting.recv().await {
                Some(job) => job,
                None => return,
            },
        };
        let (batch, reply) = match job {
            Job::Apply(batch, reply) => (batch, reply),
            Job::Call(call) => {
                let (shelf, now) = (shelf.clone(), clock());
                let _ = tokio::task::spawn_blocking(move || call(&shelf, now)).await;
                continue;
            }
        };
        let mut size = match suspects.contains(&batch.member) {
            true => TOGETHER,
            false => batch.changes.len(),
        };
        let (mut batches, mut replies) = (vec![batch], vec![reply]);
        while size < TOGETHER {
            match waiting.try_recv() {
                Ok(Job::Apply(batch, reply)) if !suspects.contains(&batch.member) => {
                    size += batch.changes.len();
                    batches.push(batch);
                    replies.push(reply);
                }
                Ok(other) => {
                    next = Some(other);
                    break;
                }
                Err(_) => break,
            }
        }
        let members: HashSet<MemberId> = batches.iter().map(|batch| batch.member).collect();
        let (shelf, now) = (shelf.clone(), clock());
        let written = tokio::task::spawn_blocking(move || shelf.apply(batches, now)).await;
        match written {
            Ok(Ok(applied)) => {
                suspects.retain(|member| !members.contains(member));
                for (reply, applied) in replies.into_iter().zip(applied) {
                    let _ = reply.send(Ok(applied));
                }
            }
            Ok(Err(error)) => {
                suspects.extend(members);
                let error = WriteError::from(error);
                for reply in replies {
                    let _ = reply.send(Err(error.clone()));
                }
            }
            // The replies are dropped, and the tasks see that.
            Err(_) => {}
        }
    }
}
