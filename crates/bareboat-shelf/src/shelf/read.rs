//! Reading: pages of a search, single objects, counts.

use super::{Shelf, ShelfError};
use crate::cursor::Cursor;
use crate::plan::{self, Condition, Planner};
use crate::predicate::Truth;
use crate::query::{Item, Page, Query};
use crate::row::{Directory, KindId, MemberId, Narrow, Row};
use bytes::Bytes;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, params, params_from_iter};
use std::time::Instant;

/// The columns of a narrow row, in the order that [`narrow`] reads them.
pub(super) const COLUMNS: &str = "o.id, o.member, o.kind, o.version, o.ns, o.name, o.uid, o.owner, o.created, o.deleting, \
     o.synced, o.rv, o.born, o.rev, o.gone, o.labels, o.fields";
/// The number of those columns.
const WIDTH: usize = 17;

/// Reads a narrow row.
pub(super) fn narrow(row: &rusqlite::Row<'_>) -> rusqlite::Result<Narrow> {
    Ok(Narrow {
        id: row.get(0)?,
        member: row.get(1)?,
        kind: row.get(2)?,
        version: row.get(3)?,
        namespace: row.get(4)?,
        name: row.get(5)?,
        uid: row.get(6)?,
        owner: row.get(7)?,
        created: row.get(8)?,
        deleting: row.get(9)?,
        synced: row.get(10)?,
        member_version: row.get(11)?,
        born: row.get(12)?,
        rev: row.get(13)?,
        gone: row.get::<_, Option<i64>>(14)?.is_some(),
        labels: row.get(15)?,
        fields: row.get(16)?,
    })
}

/// Returns where the resourceVersion belongs in a body of the shelf.
pub(super) fn splice_of(body: &[u8]) -> usize {
    const START: &[u8] = b"\"metadata\":{";
    memchr::memmem::find(body, START).map_or(0, |at| at + START.len())
}

/// A search, ready to run.
pub(super) struct Prepared {
    pub(super) condition: Condition,
    keys: Vec<(String, bool)>,
    pub(super) directory: std::sync::Arc<Directory>,
}

/// Counts what a search costs.
pub(super) struct Meter<'q> {
    query: &'q Query,
    started: Instant,
    rows: usize,
    bytes: usize,
}

impl Meter<'_> {
    pub(super) fn new(query: &Query) -> Meter<'_> {
        Meter {
            query,
            started: Instant::now(),
            rows: 0,
            bytes: 0,
        }
    }

    /// Counts a row that was looked at.
    pub(super) fn row(&mut self, bytes: usize, directory: &Directory) -> Result<(), ShelfError> {
        self.rows += 1;
        self.bytes += bytes;
        let bounds = self.query.bounds;
        let look = self.rows.is_multiple_of(256);
        if look && bareboat_api::interrupt::requested() {
            return Err(ShelfError::Interrupted);
        }
        let late = look && self.started.elapsed() > bounds.time;
        if !late && self.bytes <= bounds.bytes {
            return Ok(());
        }
        let declared = |path: &crate::Path| {
            self.query
                .kinds
                .iter()
                .all(|kind| directory.declares(*kind, path))
        };
        let fields = self.query.filter.undeclared(&declared);
        let hint = match fields.as_slice() {
            [] => {
                "; narrow it down to clusters or namespaces, or ask for pages with limit".to_owned()
            }
            fields => format!(
                "; add {} to the field index of the annotation fleet.bareboat.dev/sync, or narrow the search down",
                fields.join(", ")
            ),
        };
        Err(ShelfError::TooLong { hint })
    }
}

impl Shelf {
    /// Translates a search.
    pub(super) fn prepare(&self, query: &Query) -> Result<Prepared, ShelfError> {
        let directory = self.directory();
        let indexes = self.indexes.read().clone();
        let find = |indexed: &plan::Indexed| indexes.column(indexed);
        let keys = Planner::new(&directory, &find, &query.kinds).order(&query.order);
        let keys = keys.map_err(ShelfError::Query)?;
        let planner = Planner::new(&directory, &find, &query.kinds);
        let condition = planner.condition([&query.scope, &query.filter]);
        self.uses.lock().count(&indexes, &condition.labels);
        Ok(Prepared {
            condition,
            keys,
            directory,
        })
    }

    /// Returns at most so many objects of a search, from its cursor on.
    pub fn page(&self, query: &Query, most: usize) -> Result<Page, ShelfError> {
        let Prepared {
            condition,
            keys,
            directory,
        } = self.prepare(query)?;
        self.reading(|connection| {
            // The first read of the transaction fixes what it sees.
            let visible = last_rev(connection)?.min(self.visible());
            let mut parameters = condition.parameters.clone();
            let mut sql = condition.sql.clone();
            if let Some(after) = &query.after {
                if after.place.len() != keys.len() {
                    return Err(ShelfError::Query(
                        "the continue token is of another search".to_owned(),
                    ));
                }
                let (more, values) = plan::after(&keys, &after.place);
                sql = format!("{sql} AND {more}");
                parameters.extend(values);
            }
            let order: Vec<&str> = keys.iter().map(|(column, _)| column.as_str()).collect();
            let mut sql = format!(
                "SELECT {COLUMNS}, {} FROM object o WHERE {sql} ORDER BY {}",
                order.join(", "),
                plan::order_by(&keys)
            );
            let exact = condition.residual.is_none();
            if exact {
                sql.push_str(&format!(
                    " LIMIT {} OFFSET {}",
                    most.saturating_add(1).min(1 << 40),
                    query.offset
                ));
            }
            let mut page = Page {
                rev: query.after.as_ref().map_or(visible, |after| after.rev),
                ..Page::default()
            };
            let mut skip = if exact { 0 } else { query.offset };
            let mut meter = Meter::new(query);
            let mut place: Vec<Value> = Vec::new();
            let mut statement = connection.prepare_cached(&sql)?;
            let mut rows = statement.query(params_from_iter(parameters))?;
            while let Some(row) = rows.next()? {
                let narrow = narrow(row)?;
                let Some(item) =
                    self.judge(connection, &condition, narrow, &directory, &mut meter)?
                else {
                    continue;
                };
                if skip > 0 {
                    skip -= 1;
                    continue;
                }
                if page.items.len() == most {
                    page.next = Some(Cursor {
                        rev: page.rev,
                        place,
                    });
                    break;
                }
                if page.items.len() + 1 == most {
                    place = (0..keys.len())
                        .map(|key| row.get(WIDTH + key))
                        .collect::<Result<_, _>>()?;
                }
                page.items.push(item);
            }
            Ok(page)
        })
    }

    /// Judges a row, and reads its body.
    fn judge(
        &self,
        connection: &Connection,
        condition: &Condition,
        narrow: Narrow,
        directory: &Directory,
        meter: &mut Meter<'_>,
    ) -> Result<Option<Item>, ShelfError> {
        let mut truth = Truth::True;
        if let Some(residual) = &condition.residual {
            let row = Row {
                narrow: &narrow,
                body: None,
                directory,
            };
            truth = residual.test(&row).map_err(ShelfError::Query)?;
        }
        if !matches!(truth, Truth::True | Truth::Later) {
            meter.row(0, directory)?;
            return Ok(None);
        }
        let Some((body, splice)) = body(connection, narrow.id)? else {
            return Ok(None);
        };
        if let (Truth::Later, Some(residual)) = (truth, &condition.residual) {
            meter.row(body.len(), directory)?;
            let row = Row {
                narrow: &narrow,
                body: Some(&body),
                directory,
            };
            if residual.test(&row).map_err(ShelfError::Query)? != Truth::True {
                return Ok(None);
            }
        }
        Ok(Some(Item {
            narrow,
            body,
            splice,
        }))
    }

    /// Returns an object by its place.
    pub fn get(
        &self,
        member: MemberId,
        kind: KindId,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Item>, ShelfError> {
        self.reading(|connection| {
            let sql = format!(
                "SELECT {COLUMNS} FROM object o WHERE member = ? AND kind = ? AND ns = ? AND name = ? AND gone IS NULL"
            );
            let mut statement = connection.prepare_cached(&sql)?;
            let found = statement.query_row(params![member.0, kind.0, namespace, name], narrow);
            let Some(narrow) = found.optional()? else {
                return Ok(None);
            };
            let body = body(connection, narrow.id)?;
            Ok(body.map(|(body, splice)| Item {
                narrow,
                body,
                splice,
            }))
        })
    }
}

/// Reads a body, and where its resourceVersion belongs.
pub(super) fn body(connection: &Connection, id: i64) -> Result<Option<(Bytes, usize)>, ShelfError> {
    let mut statement = connection.prepare_cached("SELECT json, splice FROM body WHERE id = ?")?;
    let found = statement.query_row([id], |row| {
        let splice: i64 = row.get(1)?;
        Ok((row.get::<_, Vec<u8>>(0)?, splice))
    });
    let found = found.optional()?;
    Ok(found.map(|(json, splice)| (json.into(), usize::try_from(splice).unwrap_or(0))))
}

/// Returns the last version that this transaction sees.
pub(super) fn last_rev(connection: &Connection) -> Result<i64, ShelfError> {
    let mut statement =
        connection.prepare_cached("SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'rev'")?;
    Ok(statement.query_row([], |row| row.get(0))?)
}
