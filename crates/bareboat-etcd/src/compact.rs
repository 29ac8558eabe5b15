//! Compaction by this store, and the handling of compaction by other programs.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bareboat_storage::{BackendError, Sweep};
use tokio::sync::oneshot;

use crate::channel::Channel;
use crate::engine::{Inner, RECORDS, now};
use crate::error::{CallError, Meaning};
use crate::fetch::Stored;
use crate::layout::inner;
use crate::messages::{Compare, Op, Range, Watched, method, txn, watch};
use crate::session::{ReadError, damaged};

/// The minimum age in milliseconds of deleted rows, whatever the floor is. A writer that lost its connection looks for
/// its batch again, for up to 30 s, and two clocks may differ.
const KEEP: u64 = 10 * 60 * 1000;

/// How long to wait for the first answer of a watch.
const LONGEST: Duration = Duration::from_secs(10);

/// How long to wait for the answer to a compaction.
const SOON: Duration = Duration::from_millis(10);

/// What etcd is asked to compact.
#[derive(Default)]
pub(crate) struct Freeing {
    /// Whether it is at work.
    busy: bool,
    /// The revision to compact up to afterwards.
    next: Option<u64>,
}

/// Asks etcd for compactions, one after the other, until none is wanted or one fails. Answers with the outcome of the first.
async fn work_off(
    inner: Arc<Inner>,
    channel: Channel,
    answer: oneshot::Sender<Result<(), CallError>>,
) {
    let mut answer = Some(answer);
    let mut failed = false;
    loop {
        let upto = {
            let mut freeing = inner.freeing.lock();
            match freeing.next.take().filter(|_| !failed) {
                Some(upto) => upto,
                None => {
                    freeing.busy = false;
                    return;
                }
            }
        };
        let done = channel.compact(upto).await;
        // Another server may have compacted further.
        failed = matches!(&done, Err(error) if error.meaning() != Meaning::Compacted);
        match answer.take() {
            // The caller waits for `SOON` at most, so the receiver may be gone.
            Some(answer) => drop(answer.send(done)),
            None if failed => tracing::debug!(upto, "etcd does not compact"),
            None => {}
        }
    }
}

impl Inner {
    pub(crate) fn compact(self: &Arc<Self>, upto: u64, rows: usize) -> Result<Sweep, BackendError> {
        self.writer
            .call(self, async |channel| {
                let held = self.held(channel).await?.filter(|held| *held < upto);
                let swept = self.sweep(channel, held.unwrap_or(upto), rows).await?;
                Ok(match (swept, held) {
                    (Sweep::Done, Some(_)) => Sweep::Held,
                    (swept, _) => swept,
                })
            })
            .map_err(|error| match error {
                BackendError::Compacted { .. } => BackendError::Busy(Box::new(error)),
                error => error,
            })
    }

    async fn sweep(
        self: &Arc<Self>,
        channel: &Channel,
        upto: u64,
        rows: usize,
    ) -> Result<Sweep, ReadError> {
        let (mark, floor, _) = self.end(channel).await?;
        let wanted = upto.min(mark.last);
        let floor = match wanted > floor {
            true => self.raise_floor(channel, floor, wanted).await?,
            false => floor,
        };
        // The floor is durable, so etcd may compact. Nothing exists below the first revision.
        if floor > 1 {
            self.forget(channel, floor).await?;
        }
        self.drop_rows(channel, floor, rows).await
    }

    /// Raises the floor from `known` to `wanted`. Returns the resulting floor.
    async fn raise_floor(
        &self,
        channel: &Channel,
        mut known: u64,
        wanted: u64,
    ) -> Result<u64, ReadError> {
        let key = self.keys.floor();
        while known < wanted {
            let (from, to) = (known.to_string(), wanted.to_string());
            let compare = [Compare::Value(&key, from.as_bytes())];
            let put = [Op::Put(key.clone(), to.into_bytes())];
            let otherwise = [Op::Range(Range::one(key.clone()))];
            let done = channel.txn(txn(&compare, &put, &otherwise)).await;
            let mut done = done.map_err(|error| match error.meaning() {
                Meaning::Full => ReadError::Log(BackendError::Full(Box::new(error))),
                _ => error.into(),
            })?;
            known = match done.succeeded {
                true => wanted,
                false => {
                    let found = done.take(0);
                    let text = found.first().map(|pair| pair.value.clone());
                    let text = text.unwrap_or_default();
                    let text = std::str::from_utf8(&text).unwrap_or_default();
                    text.parse()
                        .map_err(|_| damaged("the floor cannot be read"))?
                }
            };
        }
        self.floor.fetch_max(known, Ordering::AcqRel);
        Ok(known)
    }

    /// Compacts the revisions of etcd that neither the state at `floor` nor later changes need.
    async fn forget(self: &Arc<Self>, channel: &Channel, floor: u64) -> Result<(), ReadError> {
        let range = Range {
            end: self.keys.row(floor + 1),
            ..self.rows_after(floor, 0)
        };
        let found = channel.range(&range).await?;
        let own = found.all.last().map(Stored::parse).transpose()?;
        let Some(own) = own.filter(|own| own.row.last >= floor) else {
            // Another server has already raised the floor further.
            return Ok(());
        };
        let upto = match own.row.last == floor {
            true => own.written,
            // The floor is in the middle of a batch: the state before this batch is needed.
            false => own.written - 1,
        };
        let test = Range {
            revision: upto - 1,
            ..Range::one(self.keys.tail())
        };
        let done = match channel.range(&test).await {
            Ok(_) => self.free(channel, upto).await,
            Err(error) => Err(error),
        };
        match done {
            Ok(_) => Ok(()),
            // This server, another server or an administrator has already compacted it.
            Err(error) if error.meaning() == Meaning::Compacted => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Lets etcd free the space of revisions, one compaction at a time: etcd looks at everything it keeps each time, and compactions that
    /// come more quickly than it works would queue up there. Does not wait for the end.
    async fn free(self: &Arc<Self>, channel: &Channel, upto: u64) -> Result<(), CallError> {
        {
            let mut freeing = self.freeing.lock();
            freeing.next = Some(upto);
            if std::mem::replace(&mut freeing.busy, true) {
                return Ok(());
            }
        }
        let (answer, answered) = oneshot::channel();
        self.spawn(work_off(self.clone(), channel.clone(), answer));
        // A refusal comes at once.
        match tokio::time::timeout(SOON, answered).await {
            Ok(Ok(first)) => first,
            _ => Ok(()),
        }
    }

    /// Deletes up to `most` rows of batches below `floor`, with the records that were replaced within these batches.
    async fn drop_rows(
        &self,
        channel: &Channel,
        floor: u64,
        most: usize,
    ) -> Result<Sweep, ReadError> {
        let range = Range {
            key: self.keys.row(0),
            // Keep the row of the batch at the floor.
            end: self.keys.row(floor),
            limit: most as u64,
            revision: 0,
        };
        let found = channel.range(&range).await?;
        let oldest = now().saturating_sub(KEEP);
        let mut next = None;
        let mut dropped = 0;
        for stored in Stored::all(&found)? {
            if stored.row.last >= floor || stored.row.at > oldest {
                break;
            }
            next = Some(stored.row.last + 1);
            dropped += 1;
        }
        let Some(next) = next else {
            return Ok(Sweep::Done);
        };
        let ops = [
            Op::DeleteRange(self.keys.row(0), self.keys.row(next)),
            Op::DeleteRange(self.keys.inner(0), self.keys.at(&inner(next))),
        ];
        let done = channel.txn(txn(&[], &ops, &[])).await;
        done.map_err(|error| match error.meaning() {
            Meaning::Full => ReadError::Log(BackendError::Full(Box::new(error))),
            _ => error.into(),
        })?;
        Ok(match dropped == most {
            true => Sweep::More,
            false => Sweep::Done,
        })
    }

    /// Returns the revision before the oldest batch that has a row, and the number of batches below the floor whose rows
    /// are old enough to be deleted.
    pub(crate) async fn swept(&self, channel: &Channel) -> Result<(u64, u64), ReadError> {
        let (_, floor, _) = self.end(channel).await?;
        let oldest = now().saturating_sub(KEEP);
        let (mut from, mut swept, mut left) = (0, None, 0);
        loop {
            let rows = self.page_of_rows(channel, from, floor).await?;
            let Some(last) = rows.last().map(|stored| stored.row.last) else {
                break;
            };
            swept.get_or_insert(rows[0].row.first.saturating_sub(1));
            let old = |stored: &&Stored| stored.row.last < floor && stored.row.at <= oldest;
            let count = rows.iter().take_while(old).count();
            left += count as u64;
            if count < rows.len() {
                break;
            }
            from = last;
        }
        Ok((swept.unwrap_or(floor), left))
    }

    /// Raises the floor if another program has compacted revisions above it.
    pub(crate) async fn learn_compaction(&self, channel: &Channel) -> Result<(), BackendError> {
        let followed = self.follow_compaction(channel).await;
        followed.map_err(|error| match error {
            ReadError::Call(error) => crate::error::read_failed(error),
            ReadError::Log(error) => error,
            ReadError::Compacted => {
                BackendError::Unreachable("the history was compacted during the read".into())
            }
        })
    }

    async fn follow_compaction(&self, channel: &Channel) -> Result<(), ReadError> {
        let (mark, known, _) = self.end(channel).await?;
        let rows = self.page_of_rows(channel, known, mark.last).await?;
        let Some(next) = rows.first() else {
            return Ok(());
        };
        // The state at the floor can be read at all revisions of etcd before the next batch. The last of them is
        // tested.
        let test = Range {
            revision: next.written - 1,
            ..Range::one(self.keys.tail())
        };
        match channel.range(&test).await.map_err(ReadError::from) {
            Ok(_) => return Ok(()),
            Err(ReadError::Compacted) => {}
            Err(error) => return Err(error),
        }
        let oldest = self.oldest(channel).await?;
        let (mut floor, mut rows) = (known, rows);
        'all: while !rows.is_empty() {
            for Stored { row, written } in rows {
                if written > oldest {
                    break 'all;
                }
                floor = row.last;
            }
            rows = self.page_of_rows(channel, floor, mark.last).await?;
        }
        if floor > known {
            tracing::warn!(
                floor,
                "another program has compacted the history: clients must list again"
            );
            self.raise_floor(channel, known, floor).await?;
        }
        Ok(())
    }

    /// Returns the oldest revision of etcd that can be read; 0 if nothing was compacted. A watch that begins at
    /// revision 1 reports it.
    async fn oldest(&self, channel: &Channel) -> Result<u64, CallError> {
        let tail = self.keys.tail();
        let mut answers = channel.stream(method::WATCH, watch(&tail, &[], 1)).await?;
        loop {
            let unreadable = CallError::Unreadable("the answer of a watch");
            let late = |_| CallError::Lost("no answer of a watch within 10 s".into());
            let answer = tokio::time::timeout(LONGEST, answers.next()).await;
            let watched = Watched::decode(&answer.map_err(late)??).ok_or(unreadable)?;
            if watched.compacted > 0 || !watched.written.is_empty() {
                return Ok(watched.compacted);
            }
        }
    }

    /// Compacts the older half of the history.
    pub(crate) async fn halve_history(
        self: &Arc<Self>,
        channel: &Channel,
    ) -> Result<(), BackendError> {
        let halved = async {
            let (mark, floor, _) = self.end(channel).await?;
            let middle = floor + (mark.last - floor) / 2;
            self.sweep(channel, middle, RECORDS as usize).await
        };
        match halved.await {
            Ok(_) => Ok(()),
            Err(ReadError::Call(error)) => Err(crate::error::read_failed(error)),
            Err(ReadError::Compacted) => Ok(()),
            Err(ReadError::Log(error)) => Err(error),
        }
    }
}
