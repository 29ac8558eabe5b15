//! The log of a store, as the checker reads it.

use bareboat::storage::{Backend, PageLimit, Record, Stop};
use bareboat_rig::history::{Epoch, Row};

/// Reads all records after a revision.
pub(crate) fn read(url: &str, after: u64) -> Vec<Row> {
    let backend = bareboat::open_backend_to_read(url).unwrap();
    let last = backend.mark().unwrap().last;
    let rows = rows(&*backend, after, last);
    backend.close().unwrap();
    rows
}

fn rows(backend: &dyn Backend, after: u64, last: u64) -> Vec<Row> {
    let limit = PageLimit {
        changes: 5000,
        bytes: 16 << 20,
    };
    let mut rows = Vec::new();
    let mut from = after;
    while from < last {
        let page = backend.read_since(None, from, last, limit, &Stop::default());
        let page = page.unwrap();
        from = page.complete_to.max(from + 1);
        rows.extend(page.changes.into_iter().map(|change| row(&change.record)));
        if page.complete_to >= last {
            break;
        }
    }
    rows
}

fn row(record: &Record) -> Row {
    let value = record.value.as_ref().map(|value| value.to_bytes());
    made(
        record.revision,
        record.prev,
        format!("{}/{}", record.resource, record.key),
        value.as_deref(),
    )
}

/// Makes a row of the parts of a record.
pub(crate) fn made(revision: u64, prev: u64, key: String, value: Option<&[u8]>) -> Row {
    let content = value.map(|value| {
        let object: serde_json::Value = serde_json::from_slice(value).unwrap_or_default();
        // Other programs write objects too. Their contents need not be known, but are different.
        match object["data"]["n"].as_str() {
            Some(content) => content.to_owned(),
            None => format!("#{revision}"),
        }
    });
    Row {
        revision,
        prev,
        key,
        content,
    }
}

/// Returns the epoch that a record begins, if it does.
pub(crate) fn epoch(row: &Row, value: &[u8]) -> Option<Epoch> {
    let record: serde_json::Value = serde_json::from_slice(value).ok()?;
    Some(Epoch {
        at: row.revision,
        from: record["from"].as_u64()?,
    })
}
