//! Holds of the history: while a backup reads it, no server compacts it.
//!
//! A hold is a key `l/ID` with a revision and a time. It is renewed while the backup runs, and ends with it. The hold of
//! a program that was killed ends at its time.

use serde::{Deserialize, Serialize};

use crate::channel::Channel;
use crate::engine::{Inner, now};
use crate::layout::json;
use crate::messages::{Op, Range, txn};
use crate::session::ReadError;

/// How long a hold is valid without renewal, in milliseconds.
const VALID: u64 = 15 * 60 * 1000;

#[derive(Deserialize, Serialize)]
struct Text {
    /// History above this revision is kept.
    revision: u64,
    /// When the hold ends, in milliseconds since 1970.
    until: u64,
}

/// A hold that is renewed from time to time.
pub(crate) struct Hold {
    key: Vec<u8>,
    revision: u64,
    renewed: u64,
}

impl Inner {
    /// Keeps the history above `revision`.
    pub(crate) async fn hold(&self, channel: &Channel, revision: u64) -> Result<Hold, ReadError> {
        let id = uuid::Uuid::new_v4().simple();
        let mut hold = Hold {
            key: self.keys.at(&format!("l/{id}")),
            revision,
            renewed: 0,
        };
        self.renew(channel, &mut hold).await?;
        Ok(hold)
    }

    /// Renews a hold, if a third of its time is over.
    pub(crate) async fn renew(&self, channel: &Channel, hold: &mut Hold) -> Result<(), ReadError> {
        let now = now();
        if now.saturating_sub(hold.renewed) < VALID / 3 {
            return Ok(());
        }
        let text = Text {
            revision: hold.revision,
            until: now + VALID,
        };
        let put = [Op::Put(hold.key.clone(), json(&text))];
        channel.txn(txn(&[], &put, &[])).await?;
        hold.renewed = now;
        Ok(())
    }

    /// Ends a hold.
    pub(crate) async fn release(&self, channel: &Channel, hold: &Hold) {
        let mut end = hold.key.clone();
        end.push(0);
        let delete = [Op::DeleteRange(hold.key.clone(), end)];
        if channel.txn(txn(&[], &delete, &[])).await.is_err() {
            tracing::debug!("a hold of the history ends later, at its time");
        }
    }

    /// Returns the range of all holds.
    fn holds(&self) -> Range {
        Range {
            key: self.keys.at("l/"),
            end: self.keys.at("l0"),
            limit: 0,
            revision: 0,
        }
    }

    /// Returns the revisions that are held.
    pub(crate) async fn running(&self, channel: &Channel) -> Result<Vec<u64>, ReadError> {
        let now = now();
        let found = channel.range(&self.holds()).await?;
        let texts = found.all.iter();
        let texts = texts.filter_map(|pair| serde_json::from_slice::<Text>(&pair.value).ok());
        let texts = texts.filter(|text| text.until > now);
        Ok(texts.map(|text| text.revision).collect())
    }

    /// Returns the lowest revision that is held. Deletes holds whose time is over.
    pub(crate) async fn held(&self, channel: &Channel) -> Result<Option<u64>, ReadError> {
        let (now, mut lowest) = (now(), None::<u64>);
        for pair in &channel.range(&self.holds()).await?.all {
            let text = serde_json::from_slice::<Text>(&pair.value).ok();
            match text.filter(|text| text.until > now) {
                Some(text) => {
                    lowest = Some(lowest.map_or(text.revision, |known| known.min(text.revision)));
                }
                None => {
                    let ended = Hold {
                        key: pair.key.to_vec(),
                        revision: 0,
                        renewed: 0,
                    };
                    self.release(channel, &ended).await;
                }
            }
        }
        Ok(lowest)
    }
}
