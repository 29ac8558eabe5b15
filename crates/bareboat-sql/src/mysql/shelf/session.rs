//! A transaction of MariaDB or MySQL, as searches use it.

use super::rows::{fill, part};
use crate::dialect::Link as _;
use crate::engine::Engine as Threads;
use crate::mysql::link::Connection;
use crate::shelf::{Wire, failed};
use bareboat_shelf::{Cells, Param, Session, ShelfError, Standing, VisitBody};
use mysql_async::consts::ColumnType;
use mysql_async::{Error, Params, Row, Value};
use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A connection that was not used for so long is asked whether it works.
const DOUBT: Duration = Duration::from_secs(1);

/// A connection that is kept.
pub(super) struct Link {
    connection: Connection,
    threads: Arc<Threads>,
    used: Instant,
}

impl Link {
    pub(super) fn new(connection: Connection, threads: &Arc<Threads>) -> Link {
        Link {
            connection,
            threads: threads.clone(),
            used: Instant::now(),
        }
    }

    /// Returns the connection, to be used now.
    pub(super) fn used(&mut self) -> &mut Connection {
        self.used = Instant::now();
        &mut self.connection
    }
}

impl Wire for Link {
    type Failure = Error;

    fn checked(mut self) -> Option<Link> {
        let works =
            self.used.elapsed() < DOUBT || self.threads.block(self.connection.run("DO 1")).is_ok();
        (works && !self.connection.is_closed()).then_some(self)
    }
}

/// A transaction that was begun.
pub(super) struct Transaction<'c> {
    link: RefCell<&'c mut Connection>,
    threads: &'c Threads,
}

impl<'c> Transaction<'c> {
    pub(super) fn new(link: &'c mut Connection, threads: &'c Threads) -> Transaction<'c> {
        Transaction {
            link: RefCell::new(link),
            threads,
        }
    }
}

/// Converts values for a statement.
fn bound(values: &[Param]) -> Params {
    let values = values.iter().map(|value| match value {
        Param::Text(text) => Value::Bytes(text.clone().into_bytes()),
        Param::Int(number) => Value::Int(*number),
        Param::Real(number) => Value::Double(*number),
        Param::Null => Value::NULL,
    });
    match values.len() {
        0 => Params::Empty,
        _ => Params::Positional(values.collect()),
    }
}

/// A row of an answer.
pub(super) struct Found<'r>(pub(super) &'r Row);

impl Found<'_> {
    /// Returns the bytes of a column.
    pub(super) fn bytes(&self, column: usize) -> &[u8] {
        match self.0.as_ref(column) {
            Some(Value::Bytes(bytes)) => bytes,
            _ => &[],
        }
    }
}

impl Cells for Found<'_> {
    fn int(&self, column: usize) -> Result<Option<i64>, ShelfError> {
        match self.0.as_ref(column) {
            None | Some(Value::NULL) => Ok(None),
            Some(Value::Int(number)) => Ok(Some(*number)),
            Some(Value::UInt(number)) => Ok(i64::try_from(*number).ok()),
            _ => Err(ShelfError::Database("a column is not a number".into())),
        }
    }

    fn text(&self, column: usize) -> Result<Option<&str>, ShelfError> {
        match self.0.as_ref(column) {
            None | Some(Value::NULL) => Ok(None),
            Some(Value::Bytes(bytes)) => match std::str::from_utf8(bytes) {
                Ok(text) => Ok(Some(text)),
                Err(error) => Err(ShelfError::Database(Box::new(error))),
            },
            _ => Err(ShelfError::Database("a column is not a text".into())),
        }
    }

    fn value(&self, column: usize) -> Result<Param, ShelfError> {
        Ok(match self.0.as_ref(column) {
            Some(Value::Double(number)) => Param::Real(*number),
            Some(Value::Float(number)) => Param::Real(f64::from(*number)),
            Some(Value::Int(_) | Value::UInt(_)) => {
                self.int(column)?.map_or(Param::Null, Param::Int)
            }
            Some(Value::Bytes(_)) => {
                let text = self.text(column)?.unwrap_or("");
                let decimal =
                    self.0.columns_ref()[column].column_type() == ColumnType::MYSQL_TYPE_NEWDECIMAL;
                match text.parse().ok().filter(|_| decimal) {
                    Some(number) => Param::Real(number),
                    None => Param::from(text),
                }
            }
            _ => Param::Null,
        })
    }
}

impl Session for Transaction<'_> {
    /// All rows are fetched before the first one is visited, because the connection can have one answer at a time.
    fn rows(
        &self,
        sql: &str,
        values: &[Param],
        visit: &mut dyn FnMut(&dyn Cells) -> Result<bool, ShelfError>,
    ) -> Result<(), ShelfError> {
        let rows = {
            let mut link = self.link.borrow_mut();
            let rows = self.threads.block(link.rows(sql, bound(values)));
            rows.map_err(failed)?
        };
        for row in &rows {
            if !visit(&Found(row))? {
                break;
            }
        }
        Ok(())
    }

    fn bodies(&self, rows: &[i64], visit: VisitBody<'_>) -> Result<(), ShelfError> {
        let mut link = self.link.borrow_mut();
        let mut rest = rows;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(part(rest.len()));
            let marks = fill("?", now.len());
            let sql = format!("SELECT id, json, splice FROM body WHERE id IN ({marks})");
            let ids: Vec<Value> = now.iter().map(|id| Value::Int(*id)).collect();
            let mut visited = Ok(());
            let read = link.each(&sql, Params::Positional(ids), |row| {
                let found = Found(&row);
                visited = found.int(0).and_then(|id| {
                    let splice = found.int(2)?.unwrap_or(0);
                    let splice = usize::try_from(splice).unwrap_or(0);
                    visit(id.unwrap_or(0), found.bytes(1), splice)
                });
                visited.is_ok()
            });
            self.threads.block(read).map_err(failed)?;
            visited?;
            rest = later;
        }
        Ok(())
    }

    fn run(&self, sql: &str, values: &[Param]) -> Result<usize, ShelfError> {
        let mut link = self.link.borrow_mut();
        let ran = self.threads.block(link.first(sql, bound(values)));
        ran.map_err(failed)?;
        Ok(usize::try_from(link.changed()).unwrap_or(usize::MAX))
    }

    fn standing(&self) -> Result<Standing, ShelfError> {
        let mut standing = Standing::default();
        let sql = "SELECT last, floor, names FROM state WHERE one = 1";
        self.rows(sql, &[], &mut |row| {
            standing = Standing {
                last: row.int(0)?.unwrap_or(0),
                floor: row.int(1)?.unwrap_or(0),
                names: row.int(2)?.unwrap_or(0),
            };
            Ok(false)
        })?;
        Ok(standing)
    }

    fn renamed(&self) -> Result<(), ShelfError> {
        self.run("UPDATE state SET names = names + 1 WHERE one = 1", &[])
            .map(drop)
    }
}
