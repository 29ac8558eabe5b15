//! Replaces the content of a store by that of another log, and begins the next epoch.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bareboat_storage::{BackendError, Mark, Record, Refill};

use crate::channel::Channel;
use crate::engine::{Inner, now};
use crate::layout::{Meta, Row, json, mark_text, path, stored};
use crate::messages::{Op, Range, txn};
use crate::session::{ReadError, damaged, parse_meta};
use crate::start::{FORMAT, INCOMPLETE};

impl Inner {
    pub(crate) fn refill(self: &Arc<Self>, step: Refill<'_>) -> Result<(), BackendError> {
        self.writer.call(self, async |channel| match step {
            Refill::Begin => {
                self.set_min_writer(channel, INCOMPLETE).await?;
                self.clear(channel).await
            }
            Refill::State(records) => self.plant(channel, records).await,
            Refill::Start(end) => self.start_at(channel, &end).await,
            Refill::Finish => self.set_min_writer(channel, FORMAT).await,
        })
    }

    pub(crate) fn is_complete(self: &Arc<Self>) -> Result<bool, BackendError> {
        self.writer.call(self, async |channel| {
            Ok(self.meta(channel).await?.min_writer != INCOMPLETE)
        })
    }

    pub(crate) fn next_epoch(self: &Arc<Self>, beyond: u64) -> Result<Mark, BackendError> {
        self.writer.call(self, async |channel| {
            let (mark, ..) = self.end(channel).await?;
            let meta = self.meta(channel).await?;
            self.begin_epoch(channel, mark, beyond, "restore", meta)
                .await?;
            let (mark, ..) = self.end(channel).await?;
            self.set_known(mark);
            Ok(mark)
        })
    }

    async fn meta(&self, channel: &Channel) -> Result<Meta, ReadError> {
        let meta = channel.range(&Range::one(self.keys.meta())).await?;
        let meta = meta.first().and_then(|found| parse_meta(&found.value));
        meta.ok_or_else(|| damaged("the store has no format"))
    }

    async fn put(&self, channel: &Channel, ops: &[Op]) -> Result<(), ReadError> {
        channel.txn(txn(&[], ops, &[])).await?;
        Ok(())
    }

    async fn set_min_writer(&self, channel: &Channel, min_writer: u32) -> Result<(), ReadError> {
        let meta = Meta {
            min_writer,
            ..self.meta(channel).await?
        };
        let ops = [Op::Put(self.keys.meta(), json(&meta))];
        self.put(channel, &ops).await
    }

    /// Deletes all objects and batches. The end of the log and the floor remain until `start_at` replaces them.
    async fn clear(&self, channel: &Channel) -> Result<(), ReadError> {
        let folder = |name: &str| {
            let end = format!("{name}0");
            Op::DeleteRange(self.keys.at(&format!("{name}/")), self.keys.at(&end))
        };
        self.put(channel, &["o", "c", "i", "b", "l"].map(folder))
            .await
    }

    async fn plant(&self, channel: &Channel, records: &[Record]) -> Result<(), ReadError> {
        let put = |record: &Record| {
            let place = path(&record.cluster, &record.resource, &record.key);
            let value = record.value.as_ref()?;
            Some(Op::Put(self.keys.at(&place), stored(record, value)))
        };
        let ops: Vec<Op> = records.iter().filter_map(put).collect();
        self.put(channel, &ops).await
    }

    /// Makes `end` the end and the floor of the log.
    async fn start_at(&self, channel: &Channel, end: &Mark) -> Result<(), ReadError> {
        let row = Row::epoch(end, "restore", now());
        let ops = [
            Op::Put(self.keys.row(end.last), json(&row)),
            Op::Put(self.keys.floor(), end.last.to_string().into_bytes()),
            Op::Put(self.keys.tail(), mark_text(end).into_bytes()),
        ];
        self.put(channel, &ops).await?;
        self.floor.store(end.last, Ordering::Release);
        self.learn(end, end.last)?;
        self.set_known(*end);
        Ok(())
    }
}
