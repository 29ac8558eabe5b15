//! Counting by values that SQL has: indexes answer, and no row is read one by one.

use super::read::Prepared;
use super::{Shelf, ShelfError};
use crate::order::SortColumn;
use crate::param::{Param, number};
use crate::plan::{Indexed, Planner};
use crate::predicate::Column;
use crate::query::Query;
use crate::row::Directory;
use std::collections::HashMap;

/// Counts by combinations of values.
pub(super) type Counts = HashMap<Vec<Option<String>>, u64>;

/// How a value of SQL is shown.
#[derive(Clone, Copy)]
enum Shown {
    Text,
    Member,
    Kind(Column),
}

impl Shelf {
    /// Counts rows by columns, at most so many combinations and one more. `None` if SQL cannot say which rows or which values.
    pub(super) fn grouped(
        &self,
        query: &Query,
        prepared: &Prepared,
        by: &[SortColumn],
        most: usize,
    ) -> Result<Option<Counts>, ShelfError> {
        if prepared.condition.residual.is_some() || by.is_empty() {
            return Ok(None);
        }
        let (directory, indexes) = (&prepared.directory, self.indexes.read().clone());
        let find = |indexed: &Indexed| indexes.column(indexed);
        let planner = Planner::new(self.engine.dialect(), directory, &find, &query.kinds);
        let columns: Option<Vec<(String, Shown)>> = by
            .iter()
            .map(|column| match column {
                SortColumn::Column(Column::Cluster) => Some(("o.member".to_owned(), Shown::Member)),
                SortColumn::Column(Column::Namespace) => Some(("o.ns".to_owned(), Shown::Text)),
                SortColumn::Column(Column::Version) => Some(("o.version".to_owned(), Shown::Text)),
                SortColumn::Column(kind @ (Column::Group | Column::Resource | Column::Kind)) => {
                    Some(("o.kind".to_owned(), Shown::Kind(*kind)))
                }
                SortColumn::Column(_) => None,
                SortColumn::Field(path) => planner.declared(path).map(|sql| (sql, Shown::Text)),
            })
            .collect();
        let Some(columns) = columns else {
            return Ok(None);
        };
        let expressions: Vec<&str> = columns.iter().map(|(sql, _)| sql.as_str()).collect();
        let places: Vec<String> = (1..=columns.len()).map(|place| place.to_string()).collect();
        // Without statistics SQLite takes an index that lacks the columns, and reads every row.
        let covered = |column: &&str| matches!(*column, "o.member" | "o.ns" | "o.kind");
        let index =
            match prepared.condition.parameters.is_empty() && expressions.iter().all(covered) {
                true if query.kinds.len() == 1 => self.engine.dialect().hint("object_key"),
                true => self.engine.dialect().hint("object_place"),
                false => String::new(),
            };
        let sql = format!(
            "SELECT {}, count(*) FROM object o {index} WHERE {} GROUP BY {} LIMIT {}",
            expressions.join(", "),
            prepared.condition.sql,
            places.join(", "),
            most.saturating_add(1),
        );
        self.reading(|session| {
            let mut counts = Counts::new();
            session.rows(&sql, &prepared.condition.parameters, &mut |row| {
                let mut values = Vec::with_capacity(columns.len());
                for (place, (_, shown)) in columns.iter().enumerate() {
                    values.push(value(row.value(place)?, *shown, directory));
                }
                let count = number(row, columns.len())?;
                // Kinds of two groups may have one name.
                *counts.entry(values).or_default() += count.unsigned_abs();
                Ok(true)
            })?;
            Ok(Some(counts))
        })
    }
}

fn value(found: Param, shown: Shown, directory: &Directory) -> Option<String> {
    match (found, shown) {
        (Param::Int(id), Shown::Member) => Some(directory.member_name(id).to_owned()),
        (Param::Int(id), Shown::Kind(column)) => {
            let info = directory.kind_info(id)?;
            Some(match column {
                Column::Group => info.group.clone(),
                Column::Resource => info.resource.clone(),
                _ => info.kind.clone(),
            })
        }
        (Param::Int(number), Shown::Text) => Some(number.to_string()),
        (Param::Text(text), _) => Some(text),
        _ => None,
    }
}
