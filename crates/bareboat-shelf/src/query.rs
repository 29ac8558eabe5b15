//! Queries and their answers.

use crate::cursor::Cursor;
use crate::order::Order;
use crate::predicate::Predicate;
use crate::row::{KindId, Narrow};
use bareboat_api::Value;
use bytes::{Bytes, BytesMut};
use std::time::Duration;

/// What a query may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The time of one request.
    pub time: Duration,
    /// The bytes of bodies that one request reads, apart from those it returns and those that are out of the question at a glance.
    pub bytes: usize,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            time: Duration::from_secs(2),
            bytes: 200 << 20,
        }
    }
}

/// A search.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// The kinds; none means no rows.
    pub kinds: Vec<KindId>,
    /// What an object cannot change: member, namespace, name, uid. Watches need it apart from the rest.
    pub scope: Predicate,
    /// All other conditions.
    pub filter: Predicate,
    /// The order of rows.
    pub order: Order,
    /// The place to continue at.
    pub after: Option<Cursor>,
    /// How many rows to leave out, for clients that count.
    pub offset: usize,
    /// What the request may cost.
    pub bounds: Bounds,
}

/// An object of an answer.
#[derive(Clone, Debug)]
pub struct Item {
    /// The narrow row.
    pub narrow: Narrow,
    /// The body without resourceVersion.
    pub body: Bytes,
    /// Where the resourceVersion belongs in the body.
    pub splice: usize,
}

impl Item {
    /// Returns the body with a resourceVersion.
    pub fn with_version(&self, version: &str) -> Bytes {
        let mut out = BytesMut::new();
        self.write_with_version(version, &mut out);
        out.freeze()
    }

    /// Writes the body with a resourceVersion.
    pub fn write_with_version(&self, version: &str, out: &mut BytesMut) {
        splice(&self.body, self.splice, version, out);
    }

    /// Returns the object with a resourceVersion.
    pub fn value(&self, version: &str) -> Value {
        let parsed = bareboat_wire::json::parse(&self.body);
        let mut object = parsed.map_or(Value::Null, |parsed| parsed.value);
        if let Some(metadata) = object.at_mut(&["metadata"]).and_then(Value::as_object_mut) {
            metadata.insert("resourceVersion", Value::string(version));
        }
        object
    }
}

/// Inserts a resourceVersion into a body.
pub(crate) fn spliced(body: &Bytes, at: usize, version: &str) -> Bytes {
    let mut out = BytesMut::new();
    splice(body, at, version, &mut out);
    out.freeze()
}

fn splice(body: &[u8], at: usize, version: &str, out: &mut BytesMut) {
    out.reserve(body.len() + version.len() + 24);
    let Some((head, tail)) = body.split_at_checked(at) else {
        return out.extend_from_slice(body);
    };
    for part in [
        head,
        b"\"resourceVersion\":\"",
        version.as_bytes(),
        b"\",",
        tail,
    ] {
        out.extend_from_slice(part);
    }
}

/// A part of an answer.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The objects, in order.
    pub items: Vec<Item>,
    /// The version of the answer: that of the first page.
    pub rev: i64,
    /// Where the next page begins, if there is one.
    pub next: Option<Cursor>,
    /// What is left of the query's bounds, for the next page of the same request.
    pub left: Bounds,
}

/// Rows with equal values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The values, in the order they were asked for; `None` where a row has none.
    pub values: Vec<Option<String>>,
    /// How many rows have them.
    pub count: u64,
}

/// Counts of rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The combinations, the most frequent first.
    pub groups: Vec<Group>,
    /// The version of the answer.
    pub rev: i64,
}
