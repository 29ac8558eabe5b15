//! A transaction of PostgreSQL, as searches use it.

use crate::engine::Engine as Threads;
use crate::shelf::{Wire, failed};
use bareboat_shelf::{Cells, Param, Session, ShelfError, Standing, VisitBody};
use bytes::{BufMut as _, BytesMut};
use futures_util::TryStreamExt as _;
use std::cell::RefCell;
use std::collections::HashMap;
use std::error::Error;
use std::pin::pin;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, Row, Statement};

/// How many rows are fetched at once.
const AT_ONCE: i32 = 256;
/// How many statements a connection keeps prepared.
const PREPARED: usize = 64;

/// Statements that are prepared, by their texts.
pub(super) type Statements = RefCell<HashMap<String, Statement>>;

/// A connection with its prepared statements.
pub(super) struct Link {
    pub(super) client: Client,
    statements: Statements,
}

impl Link {
    pub(super) fn new(client: Client) -> Link {
        Link {
            client,
            statements: RefCell::default(),
        }
    }

    pub(super) fn parts(&mut self) -> (&mut Client, &Statements) {
        (&mut self.client, &self.statements)
    }
}

impl Wire for Link {
    type Failure = tokio_postgres::Error;

    fn checked(self) -> Option<Link> {
        (!self.client.is_closed()).then_some(self)
    }
}

/// A transaction that was begun.
pub(super) struct Transaction<'c> {
    transaction: tokio_postgres::Transaction<'c>,
    statements: &'c Statements,
    threads: &'c Threads,
}

impl<'c> Transaction<'c> {
    pub(super) fn new(
        transaction: tokio_postgres::Transaction<'c>,
        statements: &'c Statements,
        threads: &'c Threads,
    ) -> Transaction<'c> {
        Transaction {
            transaction,
            statements,
            threads,
        }
    }

    /// Commits.
    pub(super) async fn end(self) -> Result<(), tokio_postgres::Error> {
        self.transaction.commit().await
    }

    fn prepared(&self, sql: &str) -> Result<Statement, ShelfError> {
        if let Some(statement) = self.statements.borrow().get(sql) {
            return Ok(statement.clone());
        }
        let numbered = numbered(sql);
        let preparing = self.transaction.prepare(&numbered);
        let statement = self.threads.block(preparing).map_err(failed)?;
        let mut statements = self.statements.borrow_mut();
        if statements.len() >= PREPARED {
            statements.clear();
        }
        statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }
}

/// Writes the marks of parameters as PostgreSQL has them. Texts of statements have no other question marks.
fn numbered(sql: &str) -> String {
    let mut out = String::with_capacity(sql.len() + 16);
    for (index, part) in sql.split('?').enumerate() {
        if index > 0 {
            out.push_str(&format!("${index}"));
        }
        out.push_str(part);
    }
    out
}

/// A value for a statement, sent as the type that the server expects.
#[derive(Debug)]
struct Bound<'p>(&'p Param);

impl ToSql for Bound<'_> {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self.0 {
            Param::Null => return Ok(IsNull::Yes),
            Param::Text(text) => {
                if *ty == Type::JSONB {
                    out.put_u8(1);
                }
                // No text in the database has the zero character.
                match text.contains('\0') {
                    true => out.put_slice(text.replace('\0', "\u{fffd}").as_bytes()),
                    false => out.put_slice(text.as_bytes()),
                }
            }
            Param::Int(number) => match *ty {
                Type::FLOAT8 => out.put_f64(*number as f64),
                Type::INT4 => out.put_i32(i32::try_from(*number)?),
                Type::INT8 => out.put_i64(*number),
                _ => out.put_slice(number.to_string().as_bytes()),
            },
            Param::Real(number) => match *ty {
                Type::FLOAT8 => out.put_f64(*number),
                Type::INT8 => out.put_i64(*number as i64),
                _ => out.put_slice(number.to_string().as_bytes()),
            },
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// A row of an answer.
struct Found<'r>(&'r Row);

impl Cells for Found<'_> {
    fn int(&self, column: usize) -> Result<Option<i64>, ShelfError> {
        self.0.try_get(column).map_err(failed)
    }

    fn text(&self, column: usize) -> Result<Option<&str>, ShelfError> {
        self.0.try_get(column).map_err(failed)
    }

    fn value(&self, column: usize) -> Result<Param, ShelfError> {
        let value = match *self.0.columns()[column].type_() {
            Type::INT8 => self.int(column)?.map(Param::Int),
            Type::FLOAT8 => {
                let number: Option<f64> = self.0.try_get(column).map_err(failed)?;
                number.map(Param::Real)
            }
            _ => self.text(column)?.map(Param::from),
        };
        Ok(value.unwrap_or(Param::Null))
    }
}

impl Session for Transaction<'_> {
    fn rows(
        &self,
        sql: &str,
        values: &[Param],
        visit: &mut dyn FnMut(&dyn Cells) -> Result<bool, ShelfError>,
    ) -> Result<(), ShelfError> {
        let statement = self.prepared(sql)?;
        let bound: Vec<Bound<'_>> = values.iter().map(Bound).collect();
        let bound: Vec<&(dyn ToSql + Sync)> = bound.iter().map(|one| one as _).collect();
        // Rows are fetched in parts, so that other statements can run in between.
        let portal = self.transaction.bind(&statement, &bound);
        let portal = self.threads.block(portal).map_err(failed)?;
        loop {
            let rows = self.transaction.query_portal(&portal, AT_ONCE);
            let rows = self.threads.block(rows).map_err(failed)?;
            for row in &rows {
                if !visit(&Found(row))? {
                    return Ok(());
                }
            }
            if rows.len() < AT_ONCE as usize {
                return Ok(());
            }
        }
    }

    fn bodies(&self, rows: &[i64], visit: VisitBody<'_>) -> Result<(), ShelfError> {
        if rows.is_empty() {
            return Ok(());
        }
        let statement = self.prepared("SELECT id, json, splice FROM body WHERE id = ANY(?)")?;
        self.threads.block(async {
            let found = self.transaction.query_raw(&statement, [rows]).await;
            let mut found = pin!(found.map_err(failed)?);
            while let Some(row) = found.try_next().await.map_err(failed)? {
                let splice: i64 = row.try_get(2).map_err(failed)?;
                let (id, body) = (row.try_get(0).map_err(failed)?, row.try_get(1));
                visit(
                    id,
                    body.map_err(failed)?,
                    usize::try_from(splice).unwrap_or(0),
                )?;
            }
            Ok(())
        })
    }

    fn run(&self, sql: &str, values: &[Param]) -> Result<usize, ShelfError> {
        let statement = self.prepared(sql)?;
        let bound: Vec<Bound<'_>> = values.iter().map(Bound).collect();
        let bound: Vec<&(dyn ToSql + Sync)> = bound.iter().map(|one| one as _).collect();
        let running = self.transaction.execute(&statement, &bound);
        let changed = self.threads.block(running).map_err(failed)?;
        Ok(usize::try_from(changed).unwrap_or(usize::MAX))
    }

    fn standing(&self) -> Result<Standing, ShelfError> {
        let mut standing = Standing::default();
        self.rows("SELECT last, floor, names FROM state", &[], &mut |row| {
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
        self.run("UPDATE state SET names = names + 1", &[])
            .map(drop)
    }
}
