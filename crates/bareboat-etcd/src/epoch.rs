//! Epochs: how the next epoch begins when the history of the log was replaced.

use bareboat_storage::{Chain, Mark, Record, Value};

use crate::channel::Channel;
use crate::engine::{Inner, now};
use crate::error::CallError;
use crate::layout::{self, Meta, Row, json, mark_text};
use crate::messages::{Compare, Op, Range, txn};
use crate::session::cluster_name;

/// How much the revision increases when an epoch begins.
const JUMP: u64 = 1 << 20;

impl Inner {
    /// Begins another epoch, above revision `beyond` and all revisions of the log, unless another server has begun it.
    /// Returns the current epoch.
    pub(crate) async fn begin_epoch(
        &self,
        channel: &Channel,
        mut found: Mark,
        beyond: u64,
        reason: &str,
        mut meta: Meta,
    ) -> Result<u64, CallError> {
        let epoch = found.epoch;
        let (tail, floor) = (self.keys.tail(), self.keys.floor());
        let own = channel.range(&Range::one(self.keys.meta())).await?;
        meta.cluster = cluster_name(own.header.cluster);
        loop {
            let last = found.last.max(beyond) + JUMP;
            let end = after(&found, last, reason);
            let row = Row::epoch(&end, reason, now());
            let expected = mark_text(&found);
            let ops = [
                Op::Put(self.keys.row(last), json(&row)),
                Op::Put(floor.clone(), last.to_string().into_bytes()),
                Op::Put(self.keys.meta(), json(&meta)),
                Op::Put(tail.clone(), mark_text(&end).into_bytes()),
            ];
            let compare = [Compare::Value(&tail, expected.as_bytes())];
            let otherwise = [Op::Range(Range::one(tail.clone()))];
            let done = channel.txn(txn(&compare, &ops, &otherwise)).await?;
            if done.succeeded {
                return Ok(end.epoch);
            }
            let now = done.parts.first().and_then(|part| part.first());
            let now = now.and_then(|pair| layout::mark(&pair.value));
            found = now.ok_or(CallError::Unreadable("the end of the log"))?;
            if found.epoch != epoch {
                return Ok(found.epoch);
            }
        }
    }
}

/// Returns the mark after the record of an epoch.
fn after(found: &Mark, last: u64, reason: &str) -> Mark {
    let epoch = found.epoch + 1;
    let value = format!(
        r#"{{"epoch":{epoch},"reason":"{reason}","from":{}}}"#,
        found.last
    );
    let record = Record {
        revision: last,
        prev: 0,
        cluster: "".into(),
        resource: "".into(),
        key: format!("epoch-{epoch}").into(),
        actor: None,
        value: Some(Value::new(value.clone().into())),
    };
    let mut chain = Chain::after(&found.digest);
    chain.add(&record, Some(value.as_bytes()), &[]);
    Mark {
        last,
        epoch,
        digest: chain.digest(),
    }
}
