//! Counting rows, and counting them by values.

use super::groups::Counts;
use super::read::{Chunk, Meter, Prepared, usual_place};
use super::{Shelf, ShelfError};
use crate::engine::Session;
use crate::order::SortColumn;
use crate::param::{Param, number};
use crate::plan;
use crate::query::{Group, Query, Summary};
use crate::row::{Narrow, Row};
use crate::scan;

/// The most combinations of a summary.
const MOST_GROUPS: usize = 10_000;
/// How many rows are judged together.
const TOGETHER: usize = 4096;

/// What must be known about each row that matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wants {
    /// That there is one.
    Nothing,
    /// Its columns.
    Row,
    /// Its columns and its body.
    Body,
}

impl Shelf {
    /// Counts the rows of a search, whatever its cursor and offset.
    pub fn count(&self, query: &Query) -> Result<u64, ShelfError> {
        let prepared = self.prepare(query)?;
        if prepared.condition.residual.is_none() {
            let sql = format!(
                "SELECT count(*) FROM object o WHERE {}",
                prepared.condition.sql
            );
            return self.reading(|session| {
                let mut count = 0;
                session.rows(&sql, &prepared.condition.parameters, &mut |row| {
                    count = number(row, 0)?.unsigned_abs();
                    Ok(false)
                })?;
                Ok(count)
            });
        }
        let mut count = 0;
        self.each(query, &prepared, Wants::Nothing, |_| {
            count += 1;
            Ok(())
        })?;
        Ok(count)
    }

    /// Counts rows by the values of columns and fields.
    pub fn summary(&self, query: &Query, by: &[SortColumn]) -> Result<Summary, ShelfError> {
        let prepared = self.prepare(query)?;
        let rev = self.visible();
        let groups = match self.grouped(query, &prepared, by, MOST_GROUPS)? {
            Some(groups) => groups,
            None => self.counted(query, &prepared, by)?,
        };
        if groups.len() > MOST_GROUPS {
            return Err(too_many());
        }
        let groups = groups
            .into_iter()
            .map(|(values, count)| Group { values, count });
        let mut groups: Vec<Group> = groups.collect();
        groups.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.values.cmp(&b.values)));
        Ok(Summary { groups, rev })
    }

    /// Counts rows by values, row by row.
    fn counted(
        &self,
        query: &Query,
        prepared: &Prepared,
        by: &[SortColumn],
    ) -> Result<Counts, ShelfError> {
        let declared = |column: &SortColumn| match column {
            SortColumn::Column(_) => true,
            SortColumn::Field(path) => {
                let mut kinds = query.kinds.iter();
                kinds.all(|kind| prepared.directory.declares(*kind, path))
            }
        };
        let wants = match by.iter().all(declared) {
            true => Wants::Row,
            false => Wants::Body,
        };
        let mut groups = Counts::new();
        self.each(query, prepared, wants, |row| {
            let values: Vec<Option<String>> = by.iter().map(|column| value(column, row)).collect();
            *groups.entry(values).or_default() += 1;
            match groups.len() > MOST_GROUPS {
                true => Err(too_many()),
                false => Ok(()),
            }
        })?;
        Ok(groups)
    }

    /// Calls a function with every row of a search, in no particular order.
    fn each(
        &self,
        query: &Query,
        prepared: &Prepared,
        wants: Wants,
        mut take: impl FnMut(&Row<'_>) -> Result<(), ShelfError>,
    ) -> Result<(), ShelfError> {
        let dialect = self.engine.dialect();
        let columns = match wants {
            Wants::Nothing => prepared.columns(dialect),
            Wants::Row | Wants::Body => dialect.columns(),
        };
        // Where rows come in parts, each part begins after the last place of the one before.
        let part = dialect.part();
        let (keys, limit) = match part {
            Some(part) => (plan::usual_keys(), format!(" LIMIT {part}")),
            None => (Vec::new(), String::new()),
        };
        self.reading(|session| {
            let mut meter = Meter::new(query);
            let mut chunk = Chunk::new(prepared, wants == Wants::Body);
            let mut judge =
                |chunk: &mut Chunk<'_>, session: &dyn Session, meter: &mut Meter<'_>| {
                    let judged = chunk.judge(session, meter, &mut |_, row| take(row));
                    judged.map(drop)
                };
            let mut after: Option<Vec<Param>> = None;
            loop {
                let place = after.take();
                let (sql, parameters) =
                    prepared.select(dialect, columns, &keys, place.as_deref(), &limit);
                let mut read = 0;
                session.rows(&sql, &parameters, &mut |row| {
                    let narrow = match wants {
                        Wants::Nothing => prepared.narrow(row)?,
                        Wants::Row | Wants::Body => Narrow::read(row)?,
                    };
                    read += 1;
                    if part == Some(read) {
                        after = Some(usual_place(&narrow));
                    }
                    chunk.add(narrow, &mut meter)?;
                    if chunk.is_full(TOGETHER) {
                        judge(&mut chunk, session, &mut meter)?;
                    }
                    Ok(true)
                })?;
                if after.is_none() {
                    break;
                }
            }
            judge(&mut chunk, session, &mut meter)
        })
    }
}

fn too_many() -> ShelfError {
    ShelfError::Query(format!(
        "the summary has more than {MOST_GROUPS} combinations"
    ))
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
