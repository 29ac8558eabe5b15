//! Reading the log: all of it when a store opens, pages of it for old watches, a state of it for old lists.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use bareboat_storage::{LogChange, Record, Value};
use bytes::Bytes;
use rusqlite::{Connection, Row};

use crate::schema::open_reader;

/// Resource names by number, shared by the records that carry them.
struct Names(HashMap<i64, Arc<str>>);

impl Names {
    fn read(connection: &Connection) -> rusqlite::Result<Self> {
        let mut names = connection.prepare("SELECT id, name FROM resource")?;
        let names = names.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(Self(names.collect::<Result<_, _>>()?))
    }

    fn number(&self, name: &str) -> Option<i64> {
        let mut all = self.0.iter();
        all.find(|(_, known)| ***known == *name).map(|(id, _)| *id)
    }

    fn record(&self, row: &Row<'_>) -> rusqlite::Result<Record> {
        let resource = row.get(2)?;
        let resource = match self.0.get(&resource) {
            Some(name) => name.clone(),
            None => return Err(rusqlite::Error::IntegralValueOutOfRange(2, resource)),
        };
        let value = row.get_ref(4)?.as_blob_or_null()?;
        Ok(Record {
            revision: row.get::<_, i64>(0)? as u64,
            prev: row.get::<_, i64>(1)? as u64,
            resource,
            key: row.get_ref(3)?.as_str()?.into(),
            value: value.map(|bytes| Value::new(Bytes::copy_from_slice(bytes))),
        })
    }
}

/// Every record in order.
pub(crate) fn load(connection: &Connection, visit: &mut dyn FnMut(Record)) -> rusqlite::Result<()> {
    let names = Names::read(connection)?;
    let mut all =
        connection.prepare("SELECT rev, prev, resource, key, value FROM log ORDER BY rev")?;
    let mut rows = all.query([])?;
    while let Some(row) = rows.next()? {
        visit(names.record(row)?);
    }
    Ok(())
}

/// Changes with `after < rev <= upto` in order.
pub(crate) fn since(
    path: &Path,
    resource: Option<&str>,
    after: u64,
    upto: u64,
    limit: usize,
) -> rusqlite::Result<Vec<LogChange>> {
    let mut connection = open_reader(path)?;
    let transaction = connection.transaction()?;
    let names = Names::read(&transaction)?;
    let number = resource.map(|name| names.number(name));
    if number == Some(None) {
        return Ok(Vec::new());
    }
    let mut page = transaction.prepare(
        "SELECT rev, prev, resource, key, value FROM log
         WHERE rev > ?1 AND rev <= ?2 AND (?3 IS NULL OR resource = ?3) ORDER BY rev LIMIT ?4",
    )?;
    let mut before =
        transaction.prepare("SELECT rev, prev, resource, key, value FROM log WHERE rev = ?1")?;
    let range = (after as i64, upto as i64, number.flatten(), limit as i64);
    let mut rows = page.query(range)?;
    let mut changes = Vec::new();
    while let Some(row) = rows.next()? {
        let record = names.record(row)?;
        let previous = match record.prev {
            0 => None,
            prev => {
                let mut rows = before.query([prev as i64])?;
                rows.next()?.map(|row| names.record(row)).transpose()?
            }
        };
        changes.push(LogChange { record, previous });
    }
    Ok(changes)
}

/// The records that made up a resource at a revision.
pub(crate) fn at(
    path: &Path,
    resource: &str,
    revision: u64,
    visit: &mut dyn FnMut(Record),
) -> rusqlite::Result<()> {
    let mut connection = open_reader(path)?;
    let transaction = connection.transaction()?;
    let names = Names::read(&transaction)?;
    let Some(number) = names.number(resource) else {
        return Ok(());
    };
    // First who was there, by small columns alone; then their values.
    let mut live = HashMap::<Box<str>, i64>::new();
    let mut keys = transaction.prepare(
        "SELECT rev, key, value IS NULL FROM log WHERE rev <= ?1 AND resource = ?2 ORDER BY rev",
    )?;
    let mut rows = keys.query((revision as i64, number))?;
    while let Some(row) = rows.next()? {
        let key = row.get_ref(1)?.as_str()?;
        if row.get(2)? {
            live.remove(key);
        } else {
            live.insert(key.into(), row.get(0)?);
        }
    }
    let mut one =
        transaction.prepare("SELECT rev, prev, resource, key, value FROM log WHERE rev = ?1")?;
    let mut revisions: Vec<i64> = live.into_values().collect();
    revisions.sort_unstable();
    for rev in revisions {
        visit(one.query_row([rev], |row| names.record(row))?);
    }
    Ok(())
}
