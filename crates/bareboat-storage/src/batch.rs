//! Batches, in which the log grows: their digests, and the mark after each batch.

use sha2::{Digest as _, Sha256};

use crate::backend::Record;

/// The digest of the log up to a mark: the first 16 bytes of SHA-256 over the previous mark's digest and the records of
/// one batch. Two logs with the same digest have the same history.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Digest(pub [u8; 16]);

impl std::fmt::Debug for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

/// A mark: a place between two batches of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// The last revision before the mark.
    pub last: u64,
    /// The epoch of the log. A restore, a promotion or a lost tail begins another epoch: earlier revisions are no
    /// longer served.
    pub epoch: u64,
    /// The digest of everything before the mark; zero in an engine without digests.
    pub digest: Digest,
}

/// Records that are added to the log together or not at all.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// Identifies the batch. An engine that finds this id in the log does not add the batch again, so a writer that got
    /// no answer may repeat it.
    pub id: u128,
    /// Identifies the store that wrote the batch.
    pub writer: u128,
    /// The records, with consecutive revisions that follow the last revision of the log.
    pub records: Vec<Record>,
}

impl Batch {
    /// Returns the mark after this batch, if the batch follows `base`.
    pub fn end(&self, base: &Mark) -> Mark {
        let mut chain = Chain::after(&base.digest);
        for record in &self.records {
            let (head, tail) = record.value.as_ref().map_or((None, &[][..]), |value| {
                let (head, tail) = value.parts();
                (Some(head), tail)
            });
            chain.add(record, head, tail);
        }
        Mark {
            last: base.last + self.records.len() as u64,
            epoch: base.epoch,
            digest: chain.digest(),
        }
    }
}

/// Computes the digest of one batch.
pub struct Chain(Sha256);

opaque_debug!(Chain);

/// The length that stands for an absent field: the value of a tombstone, or a missing actor.
const ABSENT: u32 = u32::MAX;

impl Chain {
    /// Starts a batch that follows the mark with `digest`.
    pub fn after(digest: &Digest) -> Self {
        Self(Sha256::new_with_prefix(digest.0))
    }

    /// Adds a record with its value in two slices, `value` and `rest`. A tombstone has no value.
    pub fn add(&mut self, record: &Record, value: Option<&[u8]>, rest: &[u8]) {
        let Self(hash) = self;
        // The numbers are joined first: one call of the hash function costs as much as hashing a few dozen bytes.
        let mut head = [0; 28];
        head[..8].copy_from_slice(&record.revision.to_be_bytes());
        head[8..16].copy_from_slice(&record.prev.to_be_bytes());
        head[16..20].copy_from_slice(&(record.cluster.len() as u32).to_be_bytes());
        head[20..24].copy_from_slice(&(record.resource.len() as u32).to_be_bytes());
        head[24..].copy_from_slice(&(record.key.len() as u32).to_be_bytes());
        hash.update(head);
        hash.update(record.cluster.as_bytes());
        hash.update(record.resource.as_bytes());
        hash.update(record.key.as_bytes());
        let len = value.map_or(ABSENT, |value| (value.len() + rest.len()) as u32);
        let actor = record.actor.as_deref();
        let mut lens = [0; 8];
        let of_actor = actor.map_or(ABSENT, |actor| actor.len() as u32);
        lens[..4].copy_from_slice(&of_actor.to_be_bytes());
        lens[4..].copy_from_slice(&len.to_be_bytes());
        hash.update(lens);
        hash.update(actor.unwrap_or_default().as_bytes());
        hash.update(value.unwrap_or_default());
        hash.update(rest);
    }

    /// Returns the digest after the records so far.
    pub fn digest(&self) -> Digest {
        let mut digest = [0; 16];
        digest.copy_from_slice(&self.0.clone().finalize()[..16]);
        Digest(digest)
    }
}

/// The result of an append.
#[derive(Clone, Debug, PartialEq)]
pub enum Appended {
    /// The batch is durable. Contains the mark after the batch.
    Done(Mark),
    /// The log does not end at the mark that the writer expected; nothing was written. Contains the batches that the
    /// writer missed. The writer must apply them, decide again and try again.
    Moved(Tail),
}

/// What follows a mark in the log.
#[derive(Clone, Debug, PartialEq)]
pub enum Tail {
    /// Whole batches follow.
    Batches {
        /// The records of each batch, in order.
        batches: Vec<Vec<Record>>,
        /// The mark after the last of these batches.
        end: Mark,
        /// Whether more batches may follow.
        more: bool,
    },
    /// The mark is not in the log, or the history after it is compacted: the state must be loaded again.
    Reload,
}

impl Tail {
    /// Returns a tail without batches, for a log that ends at `end`.
    pub fn empty(end: Mark) -> Self {
        Self::Batches {
            batches: Vec::new(),
            end,
            more: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    fn record(revision: u64, resource: &str, key: &str, value: Option<&str>) -> Record {
        Record {
            revision,
            prev: 0,
            cluster: "".into(),
            resource: resource.into(),
            key: key.into(),
            actor: None,
            value: value.map(|value| Value::new(value.to_owned().into())),
        }
    }

    fn digest(records: Vec<Record>, base: &Mark) -> Digest {
        let batch = Batch {
            id: 1,
            writer: 2,
            records,
        };
        batch.end(base).digest
    }

    #[test]
    fn every_part_of_the_history_is_in_the_digest() {
        let base = Mark::default();
        let all = [
            record(1, "core/pods", "a/b", Some("v")),
            record(2, "core/pods", "a/b", Some("v")),
            record(1, "core/podsa", "/b", Some("v")),
            record(1, "core/pods", "a/b", Some("w")),
            record(1, "core/pods", "a/b", Some("")),
            record(1, "core/pods", "a/b", None),
            Record {
                cluster: "c".into(),
                ..record(1, "core/pods", "a/b", Some("v"))
            },
            Record {
                actor: Some("{}".into()),
                ..record(1, "core/pods", "a/b", Some("v"))
            },
            Record {
                actor: Some("".into()),
                ..record(1, "core/pods", "a/b", Some("v"))
            },
        ];
        let mut seen = std::collections::HashSet::new();
        for record in all {
            assert!(seen.insert(digest(vec![record.clone()], &base)));
            let later = Mark {
                digest: Digest([7; 16]),
                ..base
            };
            assert!(seen.insert(digest(vec![record], &later)));
        }
    }

    #[test]
    fn the_digest_is_part_of_the_format() {
        let records = vec![
            record(2, "core/pods", "a/b", Some(r#"{"kind":"Pod"}"#)),
            record(3, "core/pods", "a/b", None),
        ];
        let base = Mark {
            last: 1,
            ..Mark::default()
        };
        let found = format!("{:?}", digest(records, &base));
        assert_eq!(found, "da29a66e0342130242d1c2cea1824360");
    }
}
