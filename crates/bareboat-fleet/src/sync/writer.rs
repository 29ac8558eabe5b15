//! The one writer of the shelf: a bounded queue over the whole fleet, whose jobs are carried out in order.
//!
//! If the queue is full, tasks wait, and so their sockets are not read. Batches that wait are written in one transaction. Versions
//! that came without changes wait for a batch, or for their time: an idle fleet writes once a minute, however large it is.
//!
//! Pages of lists have a queue of their own, and wait for everything else: a member with an endless list must not delay the events of
//! others. While there are events, pages are written in small parts with a rest after each.

use bareboat_shelf::{Applied, Batch, KindId, MemberId, Progress, Seen, Shelf, ShelfError};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// How many jobs may wait.
const WAITING: usize = 64;
/// How many pages of lists may wait.
const PAGES: usize = 4;
/// How many changes one transaction has, about.
const TOGETHER: usize = 2000;
/// How many objects of a page are written at once while there are events.
const PART: usize = 40;
/// For how long after an event there are said to be events.
const BUSY: Duration = Duration::from_secs(1);
/// The longest rest after a part of a page.
const LONGEST_REST: Duration = Duration::from_millis(50);

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
            ShelfError::Quota(_) | ShelfError::QuotaBytes(_) => {
                WriteError::Quota(error.to_string())
            }
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
    /// Anything else that writes, such as the removal of a member. It comes after everything before it, pages too: their tasks may
    /// have ended.
    Call(Call),
    /// The end of a list. It comes after the versions before it.
    Complete(Call),
    /// The same, if it has nothing to do with versions. On a shared shelf it does not hold up the queue: an index may take long.
    Aside(Call),
}

/// Hands jobs to the writer.
#[derive(Clone)]
pub(crate) struct Writer {
    jobs: mpsc::Sender<Job>,
    pages: mpsc::Sender<(Batch, Reply<Applied>)>,
    notes: Arc<Notes>,
    /// How many transactions with versions there were.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests count them"))]
    pub(crate) transactions: Arc<AtomicU64>,
}

impl Writer {
    /// Returns a writer, and the task that does the work. It ends when the last writer is dropped. Versions without changes are
    /// written once in an interval at most.
    pub(crate) fn new(
        shelf: Arc<Shelf>,
        clock: Clock,
        interval: Duration,
    ) -> (Writer, impl Future<Output = ()>) {
        let (jobs, waiting) = mpsc::channel(WAITING);
        let (pages, filling) = mpsc::channel(PAGES);
        let transactions = Arc::<AtomicU64>::default();
        let notes = Arc::<Notes>::default();
        let work = Work {
            shelf,
            clock,
            waiting,
            filling,
            next: None,
            event: None,
            suspects: HashSet::new(),
            notes: notes.clone(),
            interval,
            noted: Instant::now(),
            transactions: transactions.clone(),
        };
        let writer = Writer {
            jobs,
            pages,
            notes,
            transactions,
        };
        (writer, work.run())
    }

    /// Notes a version that came without changes, after all that its task wrote. It is saved later, unless the process dies. Only
    /// the first one wakes the writer.
    pub(crate) fn note(&self, member: MemberId, kind: KindId, progress: Progress) {
        let mut waiting = self.notes.waiting.lock();
        if waiting.is_empty() {
            self.notes.first.notify_one();
        }
        waiting.insert((member, kind), progress);
    }

    /// Does the regular work of the shelf.
    pub(crate) async fn upkeep(&self) -> Result<(), WriteError> {
        self.aside(|shelf, now| shelf.upkeep(now)).await
    }

    /// Runs a function that has nothing to do with versions. It may take long.
    pub(crate) async fn aside<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Shelf, i64) -> Result<T, ShelfError> + Send + 'static,
    ) -> Result<T, WriteError> {
        self.job(job, Job::Aside).await
    }

    /// Writes a batch.
    pub(crate) async fn apply(&self, batch: Batch) -> Result<Applied, WriteError> {
        let (reply, answer) = oneshot::channel();
        let sent = self.jobs.send(Job::Apply(batch, reply)).await;
        sent.map_err(|_| WriteError::Closed)?;
        answer.await.unwrap_or(Err(WriteError::Closed))
    }

    /// Writes objects of a list.
    pub(crate) async fn fill(&self, batch: Batch) -> Result<Applied, WriteError> {
        let (reply, answer) = oneshot::channel();
        let sent = self.pages.send((batch, reply)).await;
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
        let complete = move |shelf: &Shelf, now| shelf.complete(member, kind, &seen, progress, now);
        self.job(complete, Job::Complete).await
    }

    /// Runs any function on the shelf, after all jobs before it.
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Shelf, i64) -> Result<T, ShelfError> + Send + 'static,
    ) -> Result<T, WriteError> {
        self.job(job, Job::Call).await
    }

    async fn job<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Shelf, i64) -> Result<T, ShelfError> + Send + 'static,
        form: fn(Call) -> Job,
    ) -> Result<T, WriteError> {
        let (reply, answer) = oneshot::channel();
        let job = move |shelf: &Shelf, now: i64| {
            // The task that asked may be gone.
            let _ = reply.send(job(shelf, now).map_err(WriteError::from));
        };
        let sent = self.jobs.send(form(Box::new(job))).await;
        sent.map_err(|_| WriteError::Closed)?;
        answer.await.unwrap_or(Err(WriteError::Closed))
    }
}

/// A type of a member.
type Place = (MemberId, KindId);

/// Versions without changes. They are written with the next batch, or now and then.
#[derive(Default)]
struct Notes {
    waiting: Mutex<HashMap<Place, Progress>>,
    /// Notified when the first of them comes.
    first: Notify,
}

/// Whether other jobs are carried out between the parts of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Others {
    MayCome,
    Wait,
}

/// The work of the writer.
struct Work {
    shelf: Arc<Shelf>,
    clock: Clock,
    waiting: mpsc::Receiver<Job>,
    /// Pages of lists.
    filling: mpsc::Receiver<(Batch, Reply<Applied>)>,
    /// When an event was last written.
    event: Option<Instant>,
    /// A job that was taken too early.
    next: Option<Job>,
    /// Members with a write that failed: theirs are not joined with others, so that the fault of one is not that of all.
    suspects: HashSet<MemberId>,
    notes: Arc<Notes>,
    interval: Duration,
    /// When versions without changes were last written.
    noted: Instant,
    transactions: Arc<AtomicU64>,
}

impl Work {
    async fn run(mut self) {
        loop {
            let job = match self.next.take() {
                Some(job) => job,
                None => tokio::select! {
                    biased;
                    job = self.waiting.recv() => match job {
                        Some(job) => job,
                        None => return self.write_notes().await,
                    },
                    Some((page, reply)) = self.filling.recv() => {
                        if self.noted.elapsed() >= self.interval {
                            self.write_notes().await;
                        }
                        self.fill(page, reply, Others::MayCome).await;
                        continue;
                    }
                    () = self.notes.first.notified() => continue,
                    () = tokio::time::sleep_until(self.noted + self.interval), if self.has_notes() => {
                        self.write_notes().await;
                        continue;
                    }
                },
            };
            if matches!(job, Job::Call(_)) {
                while let Ok((page, reply)) = self.filling.try_recv() {
                    self.fill(page, reply, Others::Wait).await;
                }
            }
            self.carry_out(job).await;
        }
    }

    fn has_notes(&self) -> bool {
        !self.notes.waiting.lock().is_empty()
    }

    async fn carry_out(&mut self, job: Job) {
        match job {
            Job::Apply(batch, reply) => {
                self.event = Some(Instant::now());
                self.apply(batch, reply).await;
            }
            Job::Aside(call) if self.shelf.is_shared() => drop(self.start(call)),
            Job::Aside(call) => self.call(call).await,
            Job::Call(call) | Job::Complete(call) => {
                // It may read versions, write or remove them: what was noted before it must not come after it.
                self.write_notes().await;
                self.call(call).await;
            }
        }
    }

    /// Returns the next job that waits, unless it must come after the page that is being written.
    fn ready(&mut self) -> Option<Job> {
        if self.next.is_none() {
            self.next = self.waiting.try_recv().ok();
        }
        self.next.take_if(|job| !matches!(job, Job::Call(_)))
    }

    /// Writes a page of a list, in parts.
    async fn fill(&mut self, page: Batch, reply: Reply<Applied>, others: Others) {
        let (member, kind) = (page.member, page.kind);
        let mut rest = page.changes;
        let mut done = Applied::default();
        while !rest.is_empty() {
            if reply.is_closed() {
                return;
            }
            let is_busy = self.event.is_some_and(|event| event.elapsed() < BUSY);
            let later = match is_busy && rest.len() > PART {
                true => rest.split_off(PART),
                false => Vec::new(),
            };
            let part = Batch {
                member,
                kind,
                changes: std::mem::replace(&mut rest, later),
                progress: None,
            };
            let begun = Instant::now();
            match self.transact(&Arc::new(vec![part]), 1).await {
                Ok(Ok(applied)) => {
                    for one in applied {
                        done.changed += one.changed;
                        done.rows.extend(one.rows);
                    }
                }
                Ok(Err(error)) => {
                    let _ = reply.send(Err(error.into()));
                    return;
                }
                // The reply is dropped, and the task sees that.
                Err(_) => return,
            }
            if others == Others::MayCome {
                let rest = is_busy.then(|| begun.elapsed());
                self.let_others_write(rest.unwrap_or_default()).await;
            }
        }
        let _ = reply.send(Ok(done));
    }

    /// Carries out the jobs that wait, and those that come in some time. In the rest of it the processor is left to others.
    async fn let_others_write(&mut self, time: Duration) {
        let until = Instant::now() + time.min(LONGEST_REST);
        loop {
            while let Some(job) = self.ready() {
                self.carry_out(job).await;
            }
            if self.next.is_some() {
                return;
            }
            match tokio::time::timeout_at(until, self.waiting.recv()).await {
                Ok(Some(job)) => self.next = Some(job),
                _ => return,
            }
        }
    }

    async fn call(&mut self, call: Call) {
        let _ = self.start(call).await;
    }

    fn start(&self, call: Call) -> JoinHandle<()> {
        let (shelf, now) = (self.shelf.clone(), (self.clock)());
        tokio::task::spawn_blocking(move || call(&shelf, now))
    }

    /// Writes a batch, and others that wait.
    async fn apply(&mut self, batch: Batch, reply: Reply<Applied>) {
        let suspect = self.suspects.contains(&batch.member);
        let mut size = match suspect {
            true => TOGETHER,
            false => batch.changes.len(),
        };
        let (mut batches, mut replies) = (vec![batch], vec![reply]);
        while size < TOGETHER {
            match self.waiting.try_recv() {
                Ok(Job::Apply(batch, reply)) if !self.suspects.contains(&batch.member) => {
                    size += batch.changes.len();
                    batches.push(batch);
                    replies.push(reply);
                }
                Ok(other) => {
                    self.next = Some(other);
                    break;
                }
                Err(_) => break,
            }
        }
        let members: HashSet<MemberId> = batches.iter().map(|batch| batch.member).collect();
        // A task that writes a version has noted older ones only.
        let carried = {
            let mut notes = self.notes.waiting.lock();
            for batch in batches.iter().filter(|batch| batch.progress.is_some()) {
                notes.remove(&(batch.member, batch.kind));
            }
            match suspect {
                true => HashMap::new(),
                false => std::mem::take(&mut *notes),
            }
        };
        batches.extend(carried.iter().map(note));
        let batches = Arc::new(batches);
        let mut written = self.transact(&batches, batches.len()).await;
        let mut kept = carried;
        if !kept.is_empty() && matches!(written, Ok(Err(_))) {
            // A version may be that of a member that another server has taken, or one that the database refuses. It is not worth
            // the batches.
            written = self.transact(&batches, replies.len()).await;
            if matches!(written, Ok(Ok(_))) {
                kept.clear();
            }
        }
        match written {
            Ok(Ok(applied)) => {
                if !suspect {
                    self.noted = Instant::now();
                }
                self.suspects.retain(|member| !members.contains(member));
                for (reply, applied) in replies.into_iter().zip(applied) {
                    let _ = reply.send(Ok(applied));
                }
            }
            Ok(Err(error)) => {
                self.suspects.extend(members);
                let mut notes = self.notes.waiting.lock();
                for (place, progress) in kept {
                    // What was noted meanwhile is newer.
                    notes.entry(place).or_insert(progress);
                }
                drop(notes);
                let error = WriteError::from(error);
                for reply in replies {
                    let _ = reply.send(Err(error.clone()));
                }
            }
            // The replies are dropped, and the tasks see that.
            Err(_) => {}
        }
    }

    /// Writes versions without changes. If that fails, the members are resumed from older ones some day.
    async fn write_notes(&mut self) {
        self.noted = Instant::now();
        let notes = std::mem::take(&mut *self.notes.waiting.lock());
        if notes.is_empty() {
            return;
        }
        let batches: Arc<Vec<Batch>> = Arc::new(notes.iter().map(note).collect());
        if let Ok(Err(error)) = self.transact(&batches, batches.len()).await {
            tracing::debug!(%error, "versions without changes cannot be saved");
        }
    }

    /// Writes the first batches in one transaction.
    async fn transact(
        &mut self,
        batches: &Arc<Vec<Batch>>,
        count: usize,
    ) -> Result<Result<Vec<Applied>, ShelfError>, tokio::task::JoinError> {
        self.transactions.fetch_add(1, Ordering::Relaxed);
        let (shelf, now) = (self.shelf.clone(), (self.clock)());
        let batches = batches.clone();
        tokio::task::spawn_blocking(move || shelf.apply(&batches[..count], now)).await
    }
}

/// Returns the batch that saves a version without changes.
fn note(((member, kind), progress): (&Place, &Progress)) -> Batch {
    Batch {
        member: *member,
        kind: *kind,
        changes: Vec::new(),
        progress: Some(progress.clone()),
    }
}
