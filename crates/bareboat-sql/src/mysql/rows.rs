//! Converts columns of rows to values of the log.

use std::sync::Arc;

use bareboat_storage::{Digest, Mark, Record, Value};
use mysql_async::{Row, Value as Column};

/// Returns the number in column `at`; 0 if the column has no number.
pub(super) fn number(row: &Row, at: usize) -> u64 {
    match row.as_ref(at) {
        Some(Column::UInt(number)) => *number,
        Some(Column::Int(number)) => u64::try_from(*number).unwrap_or(0),
        Some(Column::Bytes(digits)) => std::str::from_utf8(digits)
            .ok()
            .and_then(|digits| digits.parse().ok())
            .unwrap_or(0),
        _ => 0,
    }
}

pub(super) fn bytes(row: &Row, at: usize) -> Option<&[u8]> {
    match row.as_ref(at) {
        Some(Column::Bytes(bytes)) => Some(bytes),
        _ => None,
    }
}

pub(super) fn text(row: &Row, at: usize) -> String {
    match row.as_ref(at) {
        Some(Column::Bytes(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        Some(Column::Int(number)) => number.to_string(),
        Some(Column::UInt(number)) => number.to_string(),
        _ => String::new(),
    }
}

fn shared(row: &Row, at: usize) -> Option<Arc<str>> {
    bytes(row, at).map(|bytes| String::from_utf8_lossy(bytes).as_ref().into())
}

fn value(row: &mut Row, at: usize) -> Option<Value> {
    match row.take(at) {
        Some(Column::Bytes(bytes)) => Some(Value::new(bytes.into())),
        _ => None,
    }
}

pub(super) fn digest(row: &Row, at: usize) -> Digest {
    let digest = bytes(row, at).and_then(|bytes| <[u8; 16]>::try_from(bytes).ok());
    Digest(digest.unwrap_or_default())
}

/// Returns the end of the log from the columns `last, digest, epoch`.
pub(super) fn mark(row: &Row) -> Mark {
    Mark {
        last: number(row, 0),
        digest: digest(row, 1),
        epoch: number(row, 2),
    }
}

/// Returns the record in the columns `rev, prev, cluster, resource, key, actor, value`.
pub(super) fn record(row: &mut Row) -> Record {
    Record {
        revision: number(row, 0),
        prev: number(row, 1),
        cluster: shared(row, 2).unwrap_or_default(),
        resource: shared(row, 3).unwrap_or_default(),
        key: shared(row, 4).unwrap_or_default(),
        actor: shared(row, 5),
        value: value(row, 6),
    }
}

/// Returns the record that `record` replaced, from the columns `rev, prev, actor, value` that begin at column 7.
pub(super) fn previous(row: &mut Row, record: &Record) -> Option<Record> {
    let revision = number(row, 7);
    (revision != 0).then(|| Record {
        revision,
        prev: number(row, 8),
        cluster: record.cluster.clone(),
        resource: record.resource.clone(),
        key: record.key.clone(),
        actor: shared(row, 9),
        value: value(row, 10),
    })
}
