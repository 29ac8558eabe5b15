//! Reads the batches that follow a mark of the log.

use std::sync::Arc;

use bareboat_storage::{BackendError, Batch, Mark, Record, Tail};

use crate::channel::Channel;
use crate::engine::{Inner, RECORDS};
use crate::fetch::{Stored, sketches};
use crate::messages::Range;
use crate::session::{ReadError, damaged, parse_meta};

/// The maximum number of batches that are returned at once.
const BATCHES: u64 = 256;
/// The maximum number of bytes that are returned at once.
const BYTES: u64 = 8 << 20;

impl Inner {
    pub(crate) fn tail(self: &Arc<Self>, after: &Mark) -> Result<Tail, BackendError> {
        self.writer
            .call(self, async |channel| self.read_tail(channel, after).await)
    }

    /// Reads the batches that follow `after`. Rows, end and floor are read at the same revision of etcd.
    pub(crate) async fn read_tail(
        &self,
        channel: &Channel,
        after: &Mark,
    ) -> Result<Tail, ReadError> {
        let rows = Range {
            key: self.keys.row(after.last + 1),
            end: self.keys.rows_end(),
            limit: BATCHES,
            revision: 0,
        };
        let (newest, floor, mut done) = self.ask_ranges(channel, vec![rows]).await?;
        self.learn(&newest, floor)?;
        if newest.epoch != after.epoch {
            return Ok(Tail::Reload);
        }
        if newest == *after {
            self.set_known(newest);
            return Ok(Tail::empty(newest));
        }
        if newest.last <= after.last {
            return self.lost(channel, after, newest).await;
        }
        let mut batches = Vec::new();
        let (mut end, mut bytes) = (*after, 0);
        let rows = Stored::all(&done.take(2))?;
        let mut rows: &[Stored] = &rows;
        if let Some(cut) = rows.iter().position(|stored| {
            let first = bytes == 0;
            bytes += stored.row.bytes + 1;
            !first && bytes > BYTES
        }) {
            rows = &rows[..cut];
        }
        let mut part = Vec::new();
        for stored in rows {
            part.extend(sketches(stored, (0, u64::MAX), None, false)?);
        }
        let changes = match self.fill(channel, part).await {
            // The values were compacted in the meantime.
            Err(ReadError::Compacted) => return Ok(Tail::Reload),
            changes => changes?,
        };
        let mut records = changes.into_iter().map(|change| change.record);
        for Stored { row, .. } in rows {
            let own: Vec<Record> = records.by_ref().take(row.records.len()).collect();
            let batch = Batch {
                id: 0,
                writer: 0,
                records: own,
            };
            let follows = row.first == end.last + 1;
            let next = batch.end(&end);
            if !follows || row.end() != Some(next) {
                return self.differs(channel, after, newest).await;
            }
            end = next;
            batches.push(batch.records);
        }
        self.set_known(end);
        Ok(Tail::Batches {
            more: end.last < newest.last,
            batches,
            end,
        })
    }

    /// Handles a log whose next batch does not follow `after`: batches are compacted, or the log has another history.
    async fn differs(
        &self,
        channel: &Channel,
        after: &Mark,
        newest: Mark,
    ) -> Result<Tail, ReadError> {
        let range = Range {
            key: self.keys.row((after.last + 1).saturating_sub(RECORDS)),
            end: self.keys.row(after.last + 1),
            ..Range::default()
        };
        let found = channel.range(&range).await?;
        let own = found.all.last().map(Stored::parse).transpose()?;
        let own = own.filter(|own| own.row.last >= after.last);
        match own.map(|own| own.row.end()) {
            Some(end) if end != Some(*after) => self.lost(channel, after, newest).await,
            _ => Ok(Tail::Reload),
        }
    }

    /// Begins another epoch, because the last known batch is missing.
    async fn lost(&self, channel: &Channel, after: &Mark, newest: Mark) -> Result<Tail, ReadError> {
        tracing::error!(
            known = after.last,
            found = newest.last,
            "the cluster lacks writes that were acknowledged"
        );
        let meta = channel.range(&Range::one(self.keys.meta())).await?;
        let meta = meta.first().and_then(|found| parse_meta(&found.value));
        let meta = meta.ok_or_else(|| damaged("the store has no format"))?;
        self.begin_epoch(channel, newest, after.last, "lost-tail", meta)
            .await?;
        Ok(Tail::Reload)
    }
}
