//! A custom storage engine: the log as a text file with one line per batch.
//!
//! `Backend` needs a durable log that can be read again. This engine appends to a file, syncs it, and answers reads
//! from memory. The store handles order, conflicts, caches and watches. The file never shrinks; a production engine
//! would rewrite it when history is compacted.

use bareboat::storage::{
    Appended, Backend, BackendError, Batch, ChangePage, Mark, MemoryBackend, PageLimit, Record,
    Stop, StoredValue, Sweep,
};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// The log in a file.
#[derive(Debug)]
pub struct TextLog {
    file: Mutex<File>,
    memory: MemoryBackend,
}

impl TextLog {
    /// Opens or creates a log.
    pub fn open(path: impl AsRef<Path>) -> io::Result<TextLog> {
        let mut options = OpenOptions::new();
        let mut file = options.read(true).append(true).create(true).open(path)?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        // A line without an end is an interrupted write that was never acknowledged.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        file.set_len(whole as u64)?;
        let memory = MemoryBackend::starting_at(1);
        for line in text[..whole].lines() {
            replay(line, &memory)
                .ok_or_else(|| io::Error::other("a line of the log is damaged"))?;
        }
        let file = Mutex::new(file);
        Ok(TextLog { file, memory })
    }

    /// Returns when the line is on disk.
    fn write(&self, line: &Value) -> Result<(), BackendError> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let written = file
            .write_all(format!("{line}\n").as_bytes())
            .and_then(|()| file.sync_data());
        // After an error the content of the disk is unknown: the store stops, and the next start reads the file.
        written.map_err(|error| BackendError::Failed(error.into()))
    }
}

/// Applies a line of the log.
fn replay(line: &str, memory: &MemoryBackend) -> Option<()> {
    let line: Value = serde_json::from_str(line).ok()?;
    if let Some(floor) = line["floor"].as_u64() {
        memory.compact(floor, usize::MAX).ok()?;
        return Some(());
    }
    let records: Option<Vec<Record>> = line["batch"].as_array()?.iter().map(to_record).collect();
    let batch = Batch {
        id: 0,
        writer: 0,
        records: records?,
    };
    memory.append(&memory.mark().ok()?, &batch).ok()?;
    Some(())
}

fn to_json(record: &Record) -> Value {
    let value = record.value.as_ref();
    json!({
        "revision": record.revision,
        "prev": record.prev,
        "cluster": &*record.cluster,
        "resource": &*record.resource,
        "key": &*record.key,
        "actor": record.actor.as_deref(),
        "value": value.map(|value| BASE64_STANDARD.encode(value.to_bytes())),
    })
}

fn to_record(line: &Value) -> Option<Record> {
    let value = match line["value"].as_str() {
        Some(text) => Some(StoredValue::new(BASE64_STANDARD.decode(text).ok()?.into())),
        None => None,
    };
    Some(Record {
        revision: line["revision"].as_u64()?,
        prev: line["prev"].as_u64()?,
        cluster: line["cluster"].as_str()?.into(),
        resource: line["resource"].as_str()?.into(),
        key: line["key"].as_str()?.into(),
        actor: line["actor"].as_str().map(Into::into),
        value,
    })
}

impl Backend for TextLog {
    fn append(&self, base: &Mark, batch: &Batch) -> Result<Appended, BackendError> {
        let records: Vec<Value> = batch.records.iter().map(to_json).collect();
        self.write(&json!({ "batch": records }))?;
        self.memory.append(base, batch)
    }

    fn compact(&self, upto: u64, rows: usize) -> Result<Sweep, BackendError> {
        if upto > self.memory.compacted() {
            self.write(&json!({ "floor": upto }))?;
        }
        self.memory.compact(upto, rows)
    }

    fn load(&self, after: u64, visit: &mut dyn FnMut(Record)) -> Result<Mark, BackendError> {
        self.memory.load(after, visit)
    }

    fn read_since(
        &self,
        resource: Option<&str>,
        after: u64,
        upto: u64,
        limit: PageLimit,
        stop: &Stop,
    ) -> Result<ChangePage, BackendError> {
        self.memory.read_since(resource, after, upto, limit, stop)
    }

    fn read_at(
        &self,
        resource: &str,
        revision: u64,
        visit: &mut dyn FnMut(Record),
        stop: &Stop,
    ) -> Result<(), BackendError> {
        self.memory.read_at(resource, revision, visit, stop)
    }

    fn compacted(&self) -> u64 {
        self.memory.compacted()
    }

    fn mark(&self) -> Result<Mark, BackendError> {
        self.memory.mark()
    }
}
