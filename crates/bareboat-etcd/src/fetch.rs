//! Reads the records of batches: which values are needed, and at which revision of etcd they are read.

use std::collections::BTreeMap;

use bareboat_storage::{LogChange, Record};

use crate::channel::Channel;
use crate::engine::{Inner, RECORDS};
use crate::layout::{self, Row, inner, place};
use crate::messages::{Found, KeyValue, Op, Range, txn};
use crate::session::{ReadError, damaged};

/// The maximum number of operations in one reading transaction.
const PARTS: usize = 120;
/// The maximum bytes of values that one transaction reads, as far as their sizes are known in advance.
const BYTES: u64 = 4 << 20;
/// The number of keys in the first page of objects. The size of later pages depends on the size of the objects.
const FIRST_PAGE: u64 = 256;
const LARGEST_PAGE: u64 = 8192;

/// The row of a batch, and the revision of etcd that wrote it.
pub(crate) struct Stored {
    pub(crate) row: Row,
    pub(crate) written: u64,
}

impl Stored {
    pub(crate) fn parse(pair: &KeyValue) -> Result<Self, ReadError> {
        let row = serde_json::from_slice(&pair.value)
            .map_err(|_| damaged("the row of a batch cannot be read"))?;
        Ok(Self {
            row,
            written: pair.written,
        })
    }

    pub(crate) fn all(found: &Found) -> Result<Vec<Self>, ReadError> {
        found.all.iter().map(Self::parse).collect()
    }
}

/// A change without its values.
pub(crate) struct Sketch {
    record: Record,
    /// The path of the value and the revision of etcd to read it at; `None` for a deletion.
    value: Option<(String, u64)>,
    /// The path of the replaced record and the revision of etcd to read it at.
    previous: Option<(String, u64)>,
    /// The expected size of both values.
    pub(crate) bytes: u64,
}

/// Returns the changes of a row with `after < revision <= upto`.
pub(crate) fn sketches(
    stored: &Stored,
    (after, upto): (u64, u64),
    resource: Option<&str>,
    with_previous: bool,
) -> Result<Vec<Sketch>, ReadError> {
    let (row, written) = (&stored.row, stored.written);
    let each = row.bytes / (row.records.len() as u64).max(1) + 256;
    let mut out = Vec::new();
    for (revision, item) in (row.first..).zip(&row.records) {
        if revision <= after || revision > upto {
            continue;
        }
        let Some((cluster, found, key)) = place(&item.path) else {
            return Err(damaged(format!(
                "{} is not the path of an object",
                item.path
            )));
        };
        let other = |name: &str| *found != *name || !cluster.is_empty();
        if resource.is_some_and(other) {
            continue;
        }
        let value = match item.inner {
            _ if item.deleted => None,
            true => Some((inner(revision), written)),
            false => Some((item.path.clone(), written)),
        };
        let previous = match item.prev {
            0 => None,
            _ if !with_previous => None,
            prev if prev >= row.first => Some((inner(prev), written)),
            _ => Some((item.path.clone(), written - 1)),
        };
        out.push(Sketch {
            bytes: each * u64::from(value.is_some()) + each * u64::from(previous.is_some()),
            record: Record {
                revision,
                prev: item.prev,
                cluster,
                resource: found,
                key,
                actor: item.actor.as_deref().map(Into::into),
                value: None,
            },
            value,
            previous,
        });
    }
    Ok(out)
}

impl Inner {
    /// Returns the range of rows whose batch ends after `after`, in order. It contains at most `limit` rows and those
    /// of one more batch.
    pub(crate) fn rows_after(&self, after: u64, limit: u64) -> Range {
        Range {
            // A batch that begins before `after` may end after it.
            key: self.keys.row((after + 1).saturating_sub(RECORDS - 1)),
            end: self.keys.rows_end(),
            limit: limit + RECORDS,
            revision: 0,
        }
    }

    /// Reads the values of `changes`.
    pub(crate) async fn fill(
        &self,
        channel: &Channel,
        sketches: Vec<Sketch>,
    ) -> Result<Vec<LogChange>, ReadError> {
        let mut out = Vec::with_capacity(sketches.len());
        let mut sketches = sketches.into_iter().peekable();
        while sketches.peek().is_some() {
            let (mut part, mut ops, mut bytes) = (Vec::new(), Vec::new(), 0);
            while let Some(sketch) = sketches.next_if(|next| {
                ops.is_empty() || ops.len() + 2 <= PARTS && bytes + next.bytes <= BYTES
            }) {
                bytes += sketch.bytes;
                for (path, revision) in sketch.value.iter().chain(&sketch.previous) {
                    ops.push(Op::Range(Range {
                        key: self.keys.at(path),
                        revision: *revision,
                        ..Range::default()
                    }));
                }
                part.push(sketch);
            }
            let found = match ops.is_empty() {
                true => Vec::new(),
                false => channel.txn(txn(&[], &ops, &[])).await?.parts,
            };
            let mut found = found.into_iter();
            for sketch in part {
                out.push(complete(sketch, &mut found)?);
            }
        }
        Ok(out)
    }

    /// Reads the objects below a path at a revision of etcd, and passes them to `see`.
    pub(crate) async fn objects(
        &self,
        channel: &Channel,
        below: &str,
        revision: u64,
        see: &mut dyn FnMut(String, Record) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        // The range ends before the successor of the final slash.
        let end = format!("{}0", below.strip_suffix('/').unwrap_or(below));
        let mut range = Range {
            key: self.keys.at(below),
            end: self.keys.at(&end),
            limit: FIRST_PAGE,
            revision,
        };
        loop {
            let found = channel.range(&range).await?;
            let bytes: usize = found.all.iter().map(|pair| pair.value.len()).sum();
            for pair in &found.all {
                let path = self.keys.path(&pair.key);
                let record = path.and_then(|path| layout::record(place(path)?, &pair.value));
                let (Some(path), Some(record)) = (path, record) else {
                    let key = String::from_utf8_lossy(&pair.key);
                    return Err(damaged(format!("{key} is not an object of this store")));
                };
                see(path.to_owned(), record)?;
            }
            match found.all.last() {
                Some(last) if found.more => {
                    range.key = last.key.to_vec();
                    range.key.push(0);
                    let each = (bytes / found.all.len()).max(1) as u64;
                    range.limit = (BYTES / each).clamp(1, LARGEST_PAGE);
                }
                _ => return Ok(()),
            }
        }
    }

    /// Reads the state at a revision of the log, in order of paths: all objects, or the objects of one resource.
    pub(crate) async fn state(
        &self,
        channel: &Channel,
        revision: u64,
        resource: Option<&str>,
        check: &dyn Fn() -> Result<(), ReadError>,
    ) -> Result<BTreeMap<String, Record>, ReadError> {
        let mut state = BTreeMap::new();
        self.each_of_state(channel, revision, resource, &mut |path, record| {
            state.insert(path, record);
            check()
        })
        .await?;
        Ok(state)
    }

    /// Passes the state at a revision of the log to `see`, in any order.
    ///
    /// Between two batches the state is the same at every revision of etcd. The newest of these revisions is read,
    /// because it is compacted last.
    pub(crate) async fn each_of_state(
        &self,
        channel: &Channel,
        revision: u64,
        resource: Option<&str>,
        see: &mut dyn FnMut(String, Record) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        let upto = Range {
            end: self.keys.row(revision + 1),
            ..self.rows_after(revision, 0)
        };
        let next = Range {
            key: self.keys.row(revision + 1),
            end: self.keys.rows_end(),
            limit: 1,
            revision: 0,
        };
        let (mark, _, mut done) = self.ask_ranges(channel, vec![upto, next]).await?;
        let own = done.take(2).all.last().map(Stored::parse).transpose()?;
        let own = own.filter(|own| own.row.last > revision);
        let next = done.take(3).first().map(Stored::parse).transpose()?;
        let at = match (&own, &next) {
            // The revision is in the middle of a batch: read the state before the batch, and then a part of the batch.
            (Some(own), _) => own.written - 1,
            (None, Some(next)) => next.written - 1,
            (None, None) if mark.last <= revision => done.header.revision,
            (None, None) => return Err(ReadError::Compacted),
        };
        let mut part = BTreeMap::new();
        if let Some(own) = own {
            let changes = sketches(&own, (0, revision), resource, false)?;
            for LogChange { record, .. } in self.fill(channel, changes).await? {
                let path = layout::path(&record.cluster, &record.resource, &record.key);
                part.insert(path, record);
            }
        }
        let folders = match resource {
            Some(name) => vec![format!("o/{}/", layout::folder(name))],
            None => vec!["c/".to_owned(), "o/".to_owned()],
        };
        for folder in folders {
            self.objects(
                channel,
                &folder,
                at,
                &mut |path, record| match part.contains_key(&path) {
                    true => Ok(()),
                    false => see(path, record),
                },
            )
            .await?;
        }
        for (path, record) in part {
            if record.value.is_some() {
                see(path, record)?;
            }
        }
        Ok(())
    }
}

fn complete(
    sketch: Sketch,
    found: &mut impl Iterator<Item = Found>,
) -> Result<LogChange, ReadError> {
    let Sketch {
        mut record,
        value,
        previous,
        ..
    } = sketch;
    let place = || {
        let Record {
            cluster,
            resource,
            key,
            ..
        } = &record;
        (cluster.clone(), resource.clone(), key.clone())
    };
    let mut read = |revision: u64| -> Result<Record, ReadError> {
        let read = found.next().unwrap_or_default();
        let pair = read.first();
        let read = pair.and_then(|pair| layout::record(place(), &pair.value));
        read.filter(|read| read.revision == revision)
            .ok_or_else(|| damaged(format!("the log has no value of revision {revision}")))
    };
    let own = value.map(|_| read(record.revision)).transpose()?;
    let previous = previous.map(|_| read(record.prev)).transpose()?;
    if let Some(own) = own {
        record = own;
    }
    Ok(LogChange { record, previous })
}
