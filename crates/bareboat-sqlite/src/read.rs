//! Reads the log: the live state and recent history when a store opens, pages for old watches, and past states for old
//! lists.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use bareboat_storage::{BackendError, ChangePage, LogChange, Mark, PageLimit, Record, Stop, Value};
use bytes::Bytes;
use rusqlite::types::Type;
use rusqlite::{Connection, Row};

use crate::checksum::{self, Header, Verdict};
use crate::error::failed;
use crate::mark;
use crate::schema::open_reader;

const ONE: &str =
    "SELECT rev, prev, resource, key, value, sum, form, actor FROM log WHERE rev = ?1";
/// The number of rows that are read between two checks for a stop.
const ROWS_BETWEEN_STOPS: usize = 4096;

/// Logical clusters and names of resources by number, shared by their records.
pub(crate) struct Names(HashMap<i64, (Arc<str>, Arc<str>)>);

impl Names {
    pub(crate) fn read(connection: &Connection) -> rusqlite::Result<Self> {
        let mut names = connection.prepare("SELECT id, cluster, name FROM resource")?;
        let names = names.query_map([], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))?;
        Ok(Self(names.collect::<Result<_, _>>()?))
    }

    /// Returns the number of the resource `name` in the default cluster.
    fn number(&self, name: &str) -> Option<i64> {
        let mut all = self.0.iter();
        all.find(|(_, (cluster, known))| cluster.is_empty() && **known == *name)
            .map(|(id, _)| *id)
    }

    /// Reads the record in a row of `rev, prev, resource, key, value, sum, form, actor`. A damaged value becomes a
    /// placeholder; a record with a damaged key is an error.
    pub(crate) fn record(&self, row: &Row<'_>) -> rusqlite::Result<Record> {
        let (revision, prev, number): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let unreadable = |why: &str| {
            let why = format!("revision {revision} {why}; restore the file from a backup");
            rusqlite::Error::FromSqlConversionFailure(0, Type::Null, why.into())
        };
        let Some((cluster, resource)) = self.0.get(&number) else {
            return Err(unreadable("is damaged"));
        };
        if row.get::<_, i64>(6)? != 0 {
            return Err(unreadable(
                "has an encoding that this program does not support",
            ));
        }
        let header = Header {
            revision,
            prev,
            cluster,
            resource,
            key: (row.get_ref(3)?.as_str()).map_err(|_| unreadable("is damaged"))?,
            actor: (row.get_ref(7)?.as_str_or_null()).map_err(|_| unreadable("is damaged"))?,
        };
        let bytes = row.get_ref(4)?.as_blob_or_null()?;
        let value = match checksum::judge(&header, bytes, row.get(5)?) {
            Verdict::Good => bytes.map(|bytes| Value::new(Bytes::copy_from_slice(bytes))),
            Verdict::ValueDamaged => {
                let key = header.key;
                tracing::error!(revision, %resource, key, "a stored object is damaged");
                Some(Value::damaged(key))
            }
            Verdict::HeaderDamaged => return Err(unreadable("is damaged")),
        };
        Ok(Record {
            revision: revision as u64,
            prev: prev as u64,
            cluster: cluster.clone(),
            resource: resource.clone(),
            key: header.key.into(),
            actor: header.actor.map(Into::into),
            value,
        })
    }
}

/// Returns the revisions of the state at `upto`, of one resource or of all resources, in order.
///
/// Each row contains the revision that it replaced, so only one revision per live key is kept in memory, and no value
/// is read. Rows are read oldest first: this is the order of the pages in the file, which the system reads ahead.
fn live_at(
    connection: &Connection,
    resource: Option<i64>,
    upto: u64,
    stop: &Stop,
) -> Result<Vec<i64>, BackendError> {
    let mut live = HashSet::new();
    let mut rows = connection
        .prepare("SELECT rev, prev, resource, value IS NULL FROM log WHERE rev <= ?1 ORDER BY rev")
        .map_err(failed)?;
    let mut rows = rows.query([upto as i64]).map_err(failed)?;
    let mut seen = 0;
    while let Some(row) = rows.next().map_err(failed)? {
        seen += 1;
        if seen % ROWS_BETWEEN_STOPS == 0 {
            stop.check()?;
        }
        let mut look = || -> rusqlite::Result<()> {
            if let Some(resource) = resource
                && row.get::<_, i64>(2)? != resource
            {
                return Ok(());
            }
            live.remove(&row.get::<_, i64>(1)?);
            if !row.get::<_, bool>(3)? {
                live.insert(row.get(0)?);
            }
            Ok(())
        };
        look().map_err(failed)?;
    }
    let mut live: Vec<i64> = live.into_iter().collect();
    live.sort_unstable();
    Ok(live)
}

/// Visits the state as of `after`, then every later record.
pub(crate) fn load(
    connection: &Connection,
    after: u64,
    visit: &mut dyn FnMut(Record),
    stop: &Stop,
) -> Result<(), BackendError> {
    let live = live_at(connection, None, after, stop)?;
    let read = || -> rusqlite::Result<()> {
        let names = Names::read(connection)?;
        let mut one = connection.prepare(ONE)?;
        for rev in live {
            if stop.requested() {
                return Ok(());
            }
            visit(one.query_row([rev], |row| names.record(row))?);
        }
        let mut rest = connection.prepare(
            "SELECT rev, prev, resource, key, value, sum, form, actor FROM log WHERE rev > ?1 ORDER BY rev",
        )?;
        let mut rows = rest.query([after as i64])?;
        while let Some(row) = rows.next()? {
            if stop.requested() {
                return Ok(());
            }
            visit(names.record(row)?);
        }
        Ok(())
    };
    read().map_err(failed)?;
    stop.check()
}

/// Visits the same records as `load`, on a separate connection and in one transaction, so no writer waits. Returns the
/// end of the log.
pub(crate) fn dump(
    path: &Path,
    after: u64,
    visit: &mut dyn FnMut(Record),
    stop: &Stop,
) -> Result<Mark, BackendError> {
    let mut connection = open_reader(path).map_err(failed)?;
    let transaction = connection.transaction().map_err(failed)?;
    let end = mark::read(&transaction).map_err(failed)?;
    load(&transaction, after, visit, stop)?;
    Ok(end)
}

/// Returns a page of the changes with `after < rev <= upto`.
pub(crate) fn since(
    path: &Path,
    resource: Option<&str>,
    after: u64,
    upto: u64,
    limit: PageLimit,
    stop: &Stop,
) -> Result<ChangePage, BackendError> {
    let complete = |page: ChangePage| ChangePage {
        complete_to: upto.max(after),
        ..page
    };
    let mut connection = open_reader(path).map_err(failed)?;
    let transaction = connection.transaction().map_err(failed)?;
    let names = Names::read(&transaction).map_err(failed)?;
    let number = resource.map(|name| names.number(name));
    if number == Some(None) {
        return Ok(complete(ChangePage::default()));
    }
    let number = number.flatten();
    let mut rows = transaction
        .prepare(
            "SELECT rev, prev, resource, key, value, sum, form, actor FROM log
             WHERE rev > ?1 AND rev <= ?2 ORDER BY rev",
        )
        .map_err(failed)?;
    let mut before = transaction.prepare(ONE).map_err(failed)?;
    let mut rows = rows.query((after as i64, upto as i64)).map_err(failed)?;
    let mut page = ChangePage::default();
    let mut seen = 0;
    while let Some(row) = rows.next().map_err(failed)? {
        seen += 1;
        if seen % ROWS_BETWEEN_STOPS == 0 {
            stop.check()?;
        }
        let mut look = || -> rusqlite::Result<Option<LogChange>> {
            if let Some(number) = number
                && row.get::<_, i64>(2)? != number
            {
                return Ok(None);
            }
            let record = names.record(row)?;
            let previous = match record.prev {
                0 => None,
                prev => {
                    let mut rows = before.query([prev as i64])?;
                    rows.next()?.map(|row| names.record(row)).transpose()?
                }
            };
            Ok(Some(LogChange { record, previous }))
        };
        if let Some(change) = look().map_err(failed)?
            && page.push(change, limit)
        {
            return Ok(page);
        }
    }
    Ok(complete(page))
}

/// Visits the records of a resource at a revision.
pub(crate) fn at(
    path: &Path,
    resource: &str,
    revision: u64,
    visit: &mut dyn FnMut(Record),
    stop: &Stop,
) -> Result<(), BackendError> {
    let mut connection = open_reader(path).map_err(failed)?;
    let transaction = connection.transaction().map_err(failed)?;
    let names = Names::read(&transaction).map_err(failed)?;
    let Some(number) = names.number(resource) else {
        return Ok(());
    };
    let mut one = transaction.prepare(ONE).map_err(failed)?;
    for rev in live_at(&transaction, Some(number), revision, stop)? {
        stop.check()?;
        visit(
            one.query_row([rev], |row| names.record(row))
                .map_err(failed)?,
        );
    }
    Ok(())
}

/// Returns the last revision before the first batch that was not written before `time`.
pub(crate) fn before(connection: &Connection, time: SystemTime) -> rusqlite::Result<u64> {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    let since = since.map_or(0, |since| since.as_millis() as i64);
    let floor = crate::schema::floor(connection)?;
    let first = "SELECT min(rev - size) FROM log WHERE rev > ?1 AND size > 0 AND at >= ?2";
    let first: Option<i64> =
        connection.query_row(first, (floor as i64, since), |row| row.get(0))?;
    match first {
        Some(before) => Ok(floor.max(before.unsigned_abs())),
        None => crate::mark::read(connection).map(|mark| mark.last),
    }
}
