//! The keys of a store, and what is stored under each key.
//!
//! Below the prefix of a store there are
//!
//! * `o/RESOURCE/KEY`: an object, a newline, and a trailer with its revision; `c/CLUSTER/RESOURCE/KEY` for objects of
//!   logical clusters other than the default one
//! * `i/REVISION`: the same for an object that was replaced within its own batch
//! * `b/FIRST`: a batch, with the keys of its records
//! * `t`: the end of the log
//! * `f`: the floor
//! * `m`: the format, and the id of the etcd cluster that the store belongs to

use std::collections::HashMap;
use std::sync::Arc;

use bareboat_storage::{Digest, Mark, Record, Value};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// The keys of a store.
#[derive(Debug)]
pub(crate) struct Keys {
    prefix: String,
}

impl Keys {
    pub(crate) fn new(prefix: &str) -> Self {
        Self {
            prefix: prefix.to_owned(),
        }
    }

    /// Returns the key at `path` below the prefix.
    pub(crate) fn at(&self, path: &str) -> Vec<u8> {
        format!("{}{path}", self.prefix).into_bytes()
    }

    pub(crate) fn tail(&self) -> Vec<u8> {
        self.at("t")
    }

    pub(crate) fn floor(&self) -> Vec<u8> {
        self.at("f")
    }

    pub(crate) fn meta(&self) -> Vec<u8> {
        self.at("m")
    }

    pub(crate) fn row(&self, first: u64) -> Vec<u8> {
        self.at(&format!("b/{first:016x}"))
    }

    /// Returns the end of the range of all batches.
    pub(crate) fn rows_end(&self) -> Vec<u8> {
        self.at("b0")
    }

    pub(crate) fn inner(&self, revision: u64) -> Vec<u8> {
        self.at(&inner(revision))
    }

    /// Returns the path of `key` below the prefix; `None` if the key does not belong to this store.
    pub(crate) fn path<'k>(&self, key: &'k [u8]) -> Option<&'k str> {
        let key = std::str::from_utf8(key).ok()?;
        key.strip_prefix(&self.prefix)
    }
}

/// Returns the path of a record that was replaced within its batch.
pub(crate) fn inner(revision: u64) -> String {
    format!("i/{revision:016x}")
}

/// Returns the path of an object.
pub(crate) fn path(cluster: &str, resource: &str, key: &str) -> String {
    match cluster.is_empty() {
        true => format!("o/{}/{key}", folder(resource)),
        false => format!("c/{}/{}/{key}", escaped(cluster), folder(resource)),
    }
}

/// Returns the path of a resource of the default cluster: always two segments.
pub(crate) fn folder(resource: &str) -> String {
    match resource.split_once('/') {
        Some((group, name)) => format!("{}/{}", escaped(group), escaped(name)),
        None => format!("%/{}", escaped(resource)),
    }
}

fn escaped(segment: &str) -> String {
    segment.replace('%', "%25").replace('/', "%2F")
}

fn plain(segment: &str) -> String {
    segment.replace("%2F", "/").replace("%25", "%")
}

/// The logical cluster, the resource and the key of an object.
pub(crate) type Place = (Arc<str>, Arc<str>, Arc<str>);

/// Parses the path of an object.
pub(crate) fn place(path: &str) -> Option<Place> {
    let (cluster, rest) = match path.strip_prefix("o/") {
        Some(rest) => (String::new(), rest),
        None => {
            let (cluster, rest) = path.strip_prefix("c/")?.split_once('/')?;
            (plain(cluster), rest)
        }
    };
    let (group, rest) = rest.split_once('/')?;
    let (name, key) = rest.split_once('/')?;
    let resource = match group {
        "%" => plain(name),
        group => format!("{}/{}", plain(group), plain(name)),
    };
    Some((cluster.into(), resource.into(), key.into()))
}

/// The trailer that follows the bytes of an object.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Trailer {
    pub(crate) rev: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) prev: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) actor: Option<String>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Returns the bytes that are stored for `value`.
pub(crate) fn stored(record: &Record, value: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len() + 64);
    value.append_to(&mut out);
    out.push(b'\n');
    let trailer = Trailer {
        rev: record.revision,
        prev: record.prev,
        actor: record.actor.as_deref().map(Into::into),
    };
    out.extend_from_slice(&json(&trailer));
    out
}

/// Splits a stored value into the bytes of the object and the trailer.
pub(crate) fn opened(stored: &Bytes) -> Option<(Bytes, Trailer)> {
    // A trailer contains no newline, but encrypted objects may.
    let at = stored.iter().rposition(|byte| *byte == b'\n')?;
    let trailer = serde_json::from_slice(&stored[at + 1..]).ok()?;
    Some((stored.slice(..at), trailer))
}

/// Returns the record of the object at `place` whose stored bytes are `stored`.
pub(crate) fn record(place: Place, stored: &Bytes) -> Option<Record> {
    let (value, trailer) = opened(stored)?;
    let (cluster, resource, key) = place;
    Some(Record {
        revision: trailer.rev,
        prev: trailer.prev,
        cluster,
        resource,
        key,
        actor: trailer.actor.map(Into::into),
        value: Some(Value::new(value)),
    })
}

/// A record in the row of its batch, without its value. The actor of a write is stored with the value; the actor of a
/// deletion is stored here.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Item {
    pub(crate) path: String,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) prev: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) deleted: bool,
    /// Whether a later record of the same batch replaces this record.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) inner: bool,
    /// The actor of a deletion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) actor: Option<String>,
}

/// A batch, without the values of its records.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Row {
    pub(crate) first: u64,
    pub(crate) last: u64,
    id: String,
    writer: String,
    pub(crate) epoch: u64,
    digest: String,
    /// The total size of keys and values.
    pub(crate) bytes: u64,
    /// The time of the write in milliseconds since 1970, by the clock of the writer.
    pub(crate) at: u64,
    /// The reason, if an epoch begins with this batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    #[serde(default)]
    pub(crate) records: Vec<Item>,
}

impl Row {
    /// Returns the row of a batch that ends at `end`.
    pub(crate) fn new(records: &[Record], id: u128, writer: u128, end: &Mark, at: u64) -> Self {
        let mut newest = HashMap::new();
        let mut items: Vec<Item> = Vec::with_capacity(records.len());
        let mut bytes = 0;
        for (index, record) in records.iter().enumerate() {
            let path = path(&record.cluster, &record.resource, &record.key);
            if let Some(replaced) = newest.insert(path.clone(), index) {
                items[replaced].inner = true;
            }
            let deleted = record.value.is_none();
            bytes += record.key.len() + record.value.as_ref().map_or(0, Value::len);
            items.push(Item {
                path,
                prev: record.prev,
                deleted,
                inner: false,
                actor: record.actor.as_deref().filter(|_| deleted).map(Into::into),
            });
        }
        Self {
            first: end.last + 1 - records.len() as u64,
            last: end.last,
            id: hex(id),
            writer: hex(writer),
            epoch: end.epoch,
            digest: hex(u128::from_be_bytes(end.digest.0)),
            bytes: bytes as u64,
            at,
            reason: None,
            records: items,
        }
    }

    /// Returns the row of an epoch, which is one revision without a record.
    pub(crate) fn epoch(end: &Mark, reason: &str, at: u64) -> Self {
        Self {
            first: end.last,
            last: end.last,
            id: hex(uuid::Uuid::new_v4().as_u128()),
            writer: hex(0),
            epoch: end.epoch,
            digest: hex(u128::from_be_bytes(end.digest.0)),
            at,
            reason: Some(reason.to_owned()),
            ..Self::default()
        }
    }

    pub(crate) fn is(&self, id: u128) -> bool {
        self.id == hex(id)
    }

    pub(crate) fn is_by(&self, writer: u128) -> bool {
        self.writer == hex(writer)
    }

    pub(crate) fn end(&self) -> Option<Mark> {
        Some(Mark {
            last: self.last,
            epoch: self.epoch,
            digest: digest(&self.digest)?,
        })
    }
}

fn hex(number: u128) -> String {
    format!("{number:032x}")
}

fn digest(text: &str) -> Option<Digest> {
    let number = u128::from_str_radix(text, 16).ok()?;
    Some(Digest(number.to_be_bytes()))
}

/// Encodes the end of the log. The condition of an append compares exactly these bytes, so they are part of the format.
pub(crate) fn mark_text(mark: &Mark) -> String {
    format!(
        r#"{{"last":{},"epoch":{},"digest":"{:?}"}}"#,
        mark.last, mark.epoch, mark.digest
    )
}

#[derive(Deserialize)]
struct StoredMark {
    last: u64,
    epoch: u64,
    digest: String,
}

/// Parses the end of the log.
pub(crate) fn mark(text: &[u8]) -> Option<Mark> {
    let stored: StoredMark = serde_json::from_slice(text).ok()?;
    Some(Mark {
        last: stored.last,
        epoch: stored.epoch,
        digest: digest(&stored.digest)?,
    })
}

/// The description of a store.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Meta {
    pub(crate) format: u32,
    /// The oldest format that a program must know to write to this store.
    pub(crate) min_writer: u32,
    /// The id of the store.
    pub(crate) store: String,
    /// The id of the etcd cluster; a restored cluster has another id.
    pub(crate) cluster: String,
}

/// Encodes `value` as JSON. It must be a value that can always be encoded.
pub(crate) fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

#[cfg(test)]
mod tests;
