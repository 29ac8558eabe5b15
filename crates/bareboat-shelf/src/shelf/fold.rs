//! Counting rows, and counting them by values.

use super::read::{self, Meter, Prepared};
use super::{Shelf, ShelfError};
use crate::order::SortColumn;
use crate::predicate::Truth;
use crate::query::{Group, Query, Summary};
use crate::row::Row;
use crate::scan;
use bytes::Bytes;
use rusqlite::params_from_iter;
use std::collections::HashMap;

/// The most combinations of a summary.
const MOST_GROUPS: usize = 10_000;

impl Shelf {
    /// Counts the rows of a search, whatever its cursor and offset.
    pub fn count(&self, query: &Query) -> Result<u64, ShelfError> {
        let prepared = self.prepare(query)?;
        if prepared.condition.residual.is_none() {
            return self.reading(|connection| {
                let sql = format!(
                    "SELECT count(*) FROM object o WHERE {}",
                    prepared.condition.sql
                );
                let mut statement = connection.prepare_cached(&sql)?;
                let parameters = params_from_iter(prepared.condition.parameters.iter());
                let count: i64 = statement.query_row(parameters, |row| row.get(0))?;
                Ok(count.unsigned_abs())
            });
        }
        let mut count = 0;
        self.each(query, &prepared, false, |_| {
            count += 1;
            Ok(())
        })?;
        Ok(count)
    }

    /// Counts rows by the values of columns and fields.
    pub fn summary(&self, query: &Query, by: &[SortColumn]) -> Result<Summary, ShelfError> {
        let prepared = self.prepare(query)?;
        let rev = self.visible();
        let declared = |column: &SortColumn| match column {
            SortColumn::Column(_) => true,
            SortColumn::Field(path) => {
                let mut kinds = query.kinds.iter();
                kinds.all(|kind| prepared.directory.declares(*kind, path))
            }
        };
        let bodies = !by.iter().all(declared);
        let mut groups: HashMap<Vec<Option<String>>, u64> = HashMap::new();
        self.each(query, &prepared, bodies, |row| {
            let values: Vec<Option<String>> = by.iter().map(|column| value(column, row)).collect();
            *groups.entry(values).or_default() += 1;
            match groups.len() > MOST_GROUPS {
                true => Err(ShelfError::Query(format!(
                    "the summary has more than {MOST_GROUPS} combinations"
                ))),
                false => Ok(()),
            }
        })?;
        let groups = groups
            .into_iter()
            .map(|(values, count)| Group { values, count });
        let mut groups: Vec<Group> = groups.collect();
        groups.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.values.cmp(&b.values)));
        Ok(Summary { groups, rev })
    }

    /// Calls a function with every row of a search, in no particular order.
    fn each(
        &self,
        query: &Query,
        prepared: &Prepared,
        bodies: bool,
        mut take: impl FnMut(&Row<'_>) -> Result<(), ShelfError>,
    ) -> Result<(), ShelfError> {
        let directory = &prepared.directory;
        self.reading(|connection| {
            let sql = format!(
                "SELECT {} FROM object o WHERE {}",
                read::COLUMNS,
                prepared.condition.sql
            );
            let mut meter = Meter::new(query);
            let mut statement = connection.prepare_cached(&sql)?;
            let mut rows =
                statement.query(params_from_iter(prepared.condition.parameters.iter()))?;
            while let Some(row) = rows.next()? {
                let narrow = read::narrow(row)?;
                let judge = |body: Option<&Bytes>| match &prepared.condition.residual {
                    Some(residual) => residual.test(&Row {
                        narrow: &narrow,
                        body,
                        directory,
                    }),
                    None => Ok(Truth::True),
                };
                let mut truth = judge(None).map_err(ShelfError::Query)?;
                let mut body = None;
                if truth == Truth::Later || bodies && truth == Truth::True {
                    body = read::body(connection, narrow.id)?.map(|(body, _)| body);
                    truth = judge(body.as_ref()).map_err(ShelfError::Query)?;
                }
                meter.row(body.as_ref().map_or(0, Bytes::len), directory)?;
                if truth == Truth::True {
                    take(&Row {
                        narrow: &narrow,
                        body: body.as_ref(),
                        directory,
                    })?;
                }
            }
            Ok(())
        })
    }
}

fn value(column: &SortColumn, row: &Row<'_>) -> Option<String> {
    match column {
        SortColumn::Column(column) => column.text(row),
        SortColumn::Field(path) => {
            if row.directory.declares(crate::KindId(row.narrow.kind), path) {
                return row.narrow.field(&path.to_string());
            }
            let mut found = None;
            scan::leaves(row.body?, path.steps(), &mut |leaf| {
                found = leaf.text().map(str::to_owned);
                false
            });
            found
        }
    }
}
