//! Reading: pages of a search, single objects.

mod chunk;
mod meter;

pub(super) use chunk::{Chunk, Judged};
pub(super) use meter::Meter;

use super::{Shelf, ShelfError};
use crate::cursor::Cursor;
use crate::dialect::{Dialect, WIDTH};
use crate::param::Param;
use crate::plan::{self, Condition, Planner};
use crate::query::{Item, Page, Query};
use crate::row::{Directory, KindId, MemberId, Narrow};
use bytes::Bytes;

/// How many rows are judged together at most.
const TOGETHER: usize = 256;

/// A search, ready to run.
pub(super) struct Prepared {
    pub(super) condition: Condition,
    keys: Vec<(String, bool)>,
    pub(super) directory: std::sync::Arc<Directory>,
}

impl Prepared {
    /// Returns the statement for the rows after a place, in the order of some keys, and its parameters.
    pub(super) fn select(
        &self,
        dialect: Dialect,
        columns: &str,
        keys: &[(String, bool)],
        after: Option<&[Param]>,
        limit: &str,
    ) -> (String, Vec<Param>) {
        let mut parameters = self.condition.parameters.clone();
        let mut sql = self.condition.sql.clone();
        if let Some(place) = after {
            let (more, values) = plan::after(dialect, keys, place);
            sql = format!("{sql} AND {more}");
            parameters.extend(values);
        }
        if !keys.is_empty() {
            sql = format!("{sql} ORDER BY {}", plan::order_by(keys));
        }
        let sql = format!("SELECT {columns} FROM object o WHERE {sql}{limit}");
        (sql, parameters)
    }
}

impl Shelf {
    /// Translates a search.
    pub(super) fn prepare(&self, query: &Query) -> Result<Prepared, ShelfError> {
        let directory = self.directory();
        let indexes = self.indexes.read().clone();
        let find = |indexed: &plan::Indexed| indexes.column(indexed);
        let dialect = self.engine.dialect();
        let keys = Planner::new(dialect, &directory, &find, &query.kinds).order(&query.order);
        let keys = keys.map_err(ShelfError::Query)?;
        let planner = Planner::new(dialect, &directory, &find, &query.kinds);
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
        let prepared = self.prepare(query)?;
        let keys = &prepared.keys;
        if let Some(after) = &query.after
            && after.place.len() != keys.len()
        {
            return Err(ShelfError::Query(
                "the continue token is of another search".to_owned(),
            ));
        }
        // The place in the usual order is in the row itself.
        let usual = query.order.0.is_empty();
        let dialect = self.engine.dialect();
        let mut columns = dialect.columns().to_owned();
        for (column, _) in keys.iter().filter(|_| !usual) {
            columns.push_str(", ");
            columns.push_str(column);
        }
        let exact = prepared.condition.residual.is_none();
        let part = dialect.part().filter(|_| !exact);
        let limit = match (exact, part) {
            (true, _) => {
                let most = most.saturating_add(1).min(1 << 40);
                format!(" LIMIT {most} OFFSET {}", query.offset)
            }
            (false, Some(part)) => format!(" LIMIT {part}"),
            (false, None) => String::new(),
        };
        let skip = if exact { 0 } else { query.offset };
        self.reading(|session| {
            let visible = session.standing()?.last.min(self.visible());
            let mut found = Found {
                page: Page {
                    rev: query.after.as_ref().map_or(visible, |after| after.rev),
                    ..Page::default()
                },
                most,
                skip,
                place: None,
            };
            let mut meter = Meter::new(query);
            // The places of rows that wait in the chunk.
            let mut places: Vec<Vec<Param>> = Vec::new();
            let mut chunk = Chunk::new(&prepared, true);
            let mut size = found.wanted().min(TOGETHER);
            let mut after = query.after.as_ref().map(|after| after.place.clone());
            let mut wanted = true;
            loop {
                let start = after.take();
                let (sql, parameters) =
                    prepared.select(dialect, &columns, keys, start.as_deref(), &limit);
                let mut read = 0;
                session.rows(&sql, &parameters, &mut |row| {
                    let narrow = Narrow::read(row)?;
                    let place = || -> Result<Vec<Param>, ShelfError> {
                        (0..keys.len()).map(|key| row.value(WIDTH + key)).collect()
                    };
                    read += 1;
                    if part == Some(read) {
                        after = Some(match usual {
                            true => usual_place(&narrow),
                            false => place()?,
                        });
                    }
                    if !chunk.add(narrow, &mut meter)? {
                        return Ok(true);
                    }
                    if !usual {
                        places.push(place()?);
                    }
                    if chunk.len() < size {
                        return Ok(true);
                    }
                    // Where few rows match, more are read at once.
                    size = (size * 2).min(TOGETHER);
                    let judged = chunk.judge(session, &mut meter)?;
                    wanted = found.take(judged, &mut places);
                    Ok(wanted)
                })?;
                if !wanted || after.is_none() {
                    break;
                }
            }
            let judged = chunk.judge(session, &mut meter)?;
            found.take(judged, &mut places);
            found.page.left = meter.left(found.page.items.len());
            Ok(found.page)
        })
    }

    /// Returns an object by its place.
    pub fn get(
        &self,
        member: MemberId,
        kind: KindId,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Item>, ShelfError> {
        let sql = format!(
            "SELECT {} FROM object o WHERE member = ? AND kind = ? AND ns = ? AND name = ? AND gone IS NULL",
            self.engine.dialect().columns()
        );
        let place = [
            member.0.into(),
            kind.0.into(),
            namespace.into(),
            name.into(),
        ];
        self.reading(|session| {
            let mut found = None;
            session.rows(&sql, &place, &mut |row| {
                found = Some(Narrow::read(row)?);
                Ok(false)
            })?;
            let Some(narrow) = found else {
                return Ok(None);
            };
            let mut item = None;
            session.bodies(&[narrow.id], &mut |_, body, splice| {
                item = Some((Bytes::copy_from_slice(body), splice));
                Ok(())
            })?;
            Ok(item.map(|(body, splice)| Item {
                narrow,
                body,
                splice,
            }))
        })
    }
}

/// Returns the place of an object in the usual order.
pub(super) fn usual_place(row: &Narrow) -> Vec<Param> {
    vec![
        row.kind.into(),
        row.namespace.as_str().into(),
        row.name.as_str().into(),
        row.member.into(),
    ]
}

/// A page that is being filled.
struct Found {
    page: Page,
    most: usize,
    /// How many rows are left out.
    skip: usize,
    /// The place of the last item, unless it is in its row.
    place: Option<Vec<Param>>,
}

impl Found {
    /// Returns how many more rows are needed, with one that shows that there are more.
    fn wanted(&self) -> usize {
        let left = self.most - self.page.items.len();
        left.saturating_add(self.skip).saturating_add(1)
    }

    /// Takes rows that match, with the places of all rows of their chunk. Returns whether more are needed.
    fn take(&mut self, judged: Vec<Judged>, places: &mut Vec<Vec<Param>>) -> bool {
        let mut places = places.drain(..);
        for one in judged {
            let place = places.next();
            let Some((body, splice)) = one.body.filter(|_| one.matches) else {
                continue;
            };
            if self.skip > 0 {
                self.skip -= 1;
                continue;
            }
            if self.page.items.len() == self.most {
                let last = self.page.items.last();
                let place = self
                    .place
                    .take()
                    .or_else(|| last.map(|last| usual_place(&last.narrow)));
                let (rev, place) = (self.page.rev, place.unwrap_or_default());
                self.page.next = Some(Cursor { rev, place });
                return false;
            }
            self.page.items.push(Item {
                narrow: one.narrow,
                body,
                splice,
            });
            self.place = place;
        }
        true
    }
}
