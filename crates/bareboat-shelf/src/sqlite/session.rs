//! A transaction of SQLite, as searches use it.

use super::revisions::History;
use crate::engine::{Session, Standing, VisitBody};
use crate::param::{Cells, Param};
use crate::shelf::ShelfError;
use parking_lot::RwLock;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, Row, ToSql, params_from_iter};

/// If two ids differ by at most this much, one scan reads both bodies. To skip what is between them is faster than another lookup.
const NEAR: i64 = 4;

/// A transaction that was begun.
pub(super) struct Transaction<'c> {
    connection: &'c Connection,
    history: &'c RwLock<History>,
}

impl<'c> Transaction<'c> {
    pub(super) fn new(connection: &'c Connection, history: &'c RwLock<History>) -> Transaction<'c> {
        Transaction {
            connection,
            history,
        }
    }
}

impl ToSql for Param {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Param::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Param::Int(number) => ToSqlOutput::Owned(Value::Integer(*number)),
            Param::Real(number) => ToSqlOutput::Owned(Value::Real(*number)),
            Param::Null => ToSqlOutput::Owned(Value::Null),
        })
    }
}

impl Cells for Row<'_> {
    fn int(&self, column: usize) -> Result<Option<i64>, ShelfError> {
        self.get_ref(column)?.as_i64_or_null().map_err(from_sql)
    }

    fn text(&self, column: usize) -> Result<Option<&str>, ShelfError> {
        self.get_ref(column)?.as_str_or_null().map_err(from_sql)
    }

    fn value(&self, column: usize) -> Result<Param, ShelfError> {
        Ok(match self.get_ref(column)? {
            ValueRef::Integer(number) => Param::Int(number),
            ValueRef::Real(number) => Param::Real(number),
            ValueRef::Text(text) => Param::Text(String::from_utf8_lossy(text).into_owned()),
            ValueRef::Null | ValueRef::Blob(_) => Param::Null,
        })
    }
}

fn from_sql(error: rusqlite::types::FromSqlError) -> ShelfError {
    ShelfError::Database(Box::new(error))
}

impl Session for Transaction<'_> {
    fn rows(
        &self,
        sql: &str,
        values: &[Param],
        visit: &mut dyn FnMut(&dyn Cells) -> Result<bool, ShelfError>,
    ) -> Result<(), ShelfError> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query(params_from_iter(values))?;
        while let Some(row) = rows.next()? {
            if !visit(row)? {
                break;
            }
        }
        Ok(())
    }

    fn bodies(&self, rows: &[i64], visit: VisitBody<'_>) -> Result<(), ShelfError> {
        let mut ids = rows.to_vec();
        ids.sort_unstable();
        let sql = "SELECT id, json, splice FROM body WHERE id BETWEEN ? AND ? ORDER BY id";
        let mut statement = self.connection.prepare_cached(sql)?;
        for run in ids.chunk_by(|a, b| b - a <= NEAR) {
            let mut wanted = run.iter().copied().peekable();
            let mut found = statement.query([run[0], run[run.len() - 1]])?;
            while let Some(row) = found.next()? {
                let id: i64 = row.get(0)?;
                // A row that is wanted may have no body.
                while wanted.next_if(|next| *next < id).is_some() {}
                if wanted.next_if_eq(&id).is_some() {
                    let json = row.get_ref(1)?.as_bytes().map_err(from_sql)?;
                    let splice: i64 = row.get(2)?;
                    visit(id, json, usize::try_from(splice).unwrap_or(0))?;
                }
            }
        }
        Ok(())
    }

    fn run(&self, sql: &str, values: &[Param]) -> Result<usize, ShelfError> {
        let mut statement = self.connection.prepare_cached(sql)?;
        Ok(statement.execute(params_from_iter(values))?)
    }

    fn standing(&self) -> Result<Standing, ShelfError> {
        // The first read of the transaction fixes what it sees. The floor is read after it: it rises before rows go.
        let sql = "SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'rev'";
        let mut statement = self.connection.prepare_cached(sql)?;
        let last = statement.query_row([], |row| row.get(0))?;
        Ok(Standing {
            last,
            floor: self.history.read().floor,
            names: 0,
        })
    }

    fn renamed(&self) -> Result<(), ShelfError> {
        Ok(())
    }
}
