//! Looks for keys that other programs changed. The log is read as it was written, so such changes are not part of it; they
//! would become the state when the history before them is compacted.

use bareboat_storage::examine::Setting;

use crate::channel::Channel;
use crate::engine::{Inner, RECORDS};
use crate::error::CallError;
use crate::fetch::Stored;
use crate::layout;
use crate::messages::{Found, Range, changed_keys, count_keys, method};
use crate::session::ReadError;

impl Inner {
    /// Compares the objects as they are now with those after the last batch, and the end of the log with that batch.
    pub(crate) async fn foreign(&self, channel: &Channel) -> Result<Setting, ReadError> {
        let (mark, _, _) = self.end(channel).await?;
        let rows = Range {
            limit: 0,
            ..self.rows_after(mark.last.saturating_sub(RECORDS), 0)
        };
        let found = channel.range(&rows).await?;
        // Servers may go on: everything else is read at the same revision of etcd.
        let now = found.header.revision;
        let last = found.all.last().map(Stored::parse).transpose()?;
        let Some(last) = last else {
            return Ok(judged("the log has no batch", false));
        };
        let tail = Range {
            revision: now,
            ..Range::one(self.keys.tail())
        };
        let tail = channel.range(&tail).await?;
        let end = tail.first().and_then(|pair| layout::mark(&pair.value));
        if end.is_none_or(|end| end.last != last.row.last) {
            return Ok(judged(
                "the end of the log is not that of the last batch",
                false,
            ));
        }
        let (mut changed, mut before, mut after) = (0, 0, 0);
        for (from, to) in [("o/", "o0"), ("c/", "c0")] {
            let at = |revision: u64| Range {
                key: self.keys.at(from),
                end: self.keys.at(to),
                limit: 0,
                revision,
            };
            let since = changed_keys(&at(now), last.written + 1);
            changed += ask(channel, since).await?.all.len() as u64;
            before += ask(channel, count_keys(&at(last.written))).await?.count;
            after += ask(channel, count_keys(&at(now))).await?.count;
        }
        Ok(match (changed, before.abs_diff(after)) {
            (0, 0) => judged("none", true),
            (0, gone) => judged(&format!("objects deleted: {gone}"), false),
            (changed, _) => judged(&format!("objects changed: {changed}"), false),
        })
    }
}

async fn ask(channel: &Channel, request: Vec<u8>) -> Result<Found, CallError> {
    let answer = channel.call(method::RANGE, request).await?;
    Found::decode(&answer).ok_or(CallError::Unreadable("keys and values"))
}

fn judged(found: &str, good: bool) -> Setting {
    let advice = "another program has written to the keys of this store: restore a backup, and give the store an etcd or a user of its own";
    Setting::judged("changes by other programs", found, good, advice)
}
