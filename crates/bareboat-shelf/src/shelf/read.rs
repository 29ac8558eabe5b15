//! Reading: pages of a search, single objects.

mod chunk;
mod meter;

pub(super) use chunk::Chunk;
pub(super) use meter::Meter;

use super::{Shelf, ShelfError};
use crate::cursor::Cursor;
use crate::dialect::{Dialect, WIDTH};
use crate::engine::Session;
use crate::param::{Cells, Param};
use crate::path::Path;
use crate::plan::{self, Condition, Planner};
use crate::query::{Item, Page, Query};
use crate::row::{Directory, KindId, MemberId, Narrow};
use bytes::Bytes;

/// How many rows are judged together at first, at most.
const FIRST: usize = 256;
/// The most rows that are judged together when few of them match. In a large group many bodies are neighbours in the file, and neighbours
/// are read much faster.
const TOGETHER: usize = 4096;

/// A search, ready to run.
pub(super) struct Prepared {
    pub(super) condition: Condition,
    keys: Vec<(String, bool)>,
    pub(super) directory: std::sync::Arc<Directory>,
    /// Whether only the places of rows are read before their bodies are judged.
    places: bool,
}

impl Prepared {
    /// Returns the columns that are read of each row before it is judged.
    pub(super) fn columns(&self, dialect: Dialect) -> &'static str {
        match self.places {
            true => Narrow::PLACE,
            false => dialect.columns(),
        }
    }

    /// Reads these columns.
    pub(super) fn narrow(&self, row: &dyn Cells) -> Result<Narrow, ShelfError> {
        match self.places {
            true => Narrow::read_place(row),
            false => Narrow::read(row),
        }
    }

    /// Reads the rest of rows of which only the places were read.
    fn complete(
        &self,
        session: &dyn Session,
        dialect: Dialect,
        items: &mut [Item],
    ) -> Result<(), ShelfError> {
        if !self.places {
            return Ok(());
        }
        let sql = format!("SELECT {} FROM object o WHERE o.id = ?", dialect.columns());
        for item in items {
            session.rows(&sql, &[item.narrow.id.into()], &mut |row| {
                item.narrow = Narrow::read(row)?;
                Ok(false)
            })?;
        }
        Ok(())
    }

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
        let declared = |path: &Path| {
            let mut kinds = query.kinds.iter();
            kinds.any(|kind| directory.declares(*kind, path))
        };
        let residual = condition.residual.as_ref();
        let places = dialect.judges_bodies_first()
            && query.order.0.is_empty()
            && residual.is_some_and(|residual| residual.is_of_body(&declared));
        Ok(Prepared {
            condition,
            keys,
            directory,
            places,
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
        let mut columns = prepared.columns(dialect).to_owned();
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
                judged: 0,
                matched: 0,
            };
            let mut meter = Meter::new(query);
            // The places of rows that wait in the chunk.
            let mut places: Vec<Vec<Param>> = Vec::new();
            let mut chunk = Chunk::new(&prepared, false);
            let mut size = found.wanted().min(FIRST);
            let mut after = query.after.as_ref().map(|after| after.place.clone());
            let mut wanted = true;
            loop {
                let start = after.take();
                let (sql, parameters) =
                    prepared.select(dialect, &columns, keys, start.as_deref(), &limit);
                let mut read = 0;
                session.rows(&sql, &parameters, &mut |row| {
                    let narrow = prepared.narrow(row)?;
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
                    if !chunk.is_full(size) {
                        return Ok(true);
                    }
                    wanted = found.take(&mut chunk, session, &mut meter, &mut places)?;
                    size = found.next_size(size);
                    Ok(wanted)
                })?;
                if !wanted || after.is_none() {
                    break;
                }
            }
            found.take(&mut chunk, session, &mut meter, &mut places)?;
            prepared.complete(session, dialect, &mut found.page.items)?;
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
            let mut items = [Item {
                narrow,
                body: Bytes::new(),
                splice: 0,
            }];
            fill(session, &mut items)?;
            let [item] = items;
            Ok(Some(item).filter(|item| !item.body.is_empty()))
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
    /// How many rows the last chunk had, and how many of them matched.
    judged: usize,
    matched: usize,
}

impl Found {
    /// Returns how many more rows are needed, with one that shows that there are more.
    fn wanted(&self) -> usize {
        let left = self.most - self.page.items.len();
        left.saturating_add(self.skip).saturating_add(1)
    }

    /// Returns how many rows are judged together after so many. Where few match, more are read at once, but not many beyond the end
    /// of the page: the next page would judge them again.
    fn next_size(&self, size: usize) -> usize {
        let wanted = self.wanted();
        if self.matched * 4 >= self.judged {
            return wanted.min(FIRST);
        }
        let expected = wanted.saturating_mul(self.judged) / self.matched.max(1);
        (size * 2).min(expected.max(FIRST)).min(TOGETHER)
    }

    /// Takes the rows of a chunk that match, with their bodies. `places` are those of all its rows. Returns whether more are needed.
    fn take(
        &mut self,
        chunk: &mut Chunk<'_>,
        session: &dyn Session,
        meter: &mut Meter<'_>,
        places: &mut Vec<Vec<Param>>,
    ) -> Result<bool, ShelfError> {
        let mut matching = vec![false; chunk.len()];
        let judged = chunk.judge(session, meter, &mut |place, _| {
            matching[place] = true;
            Ok(())
        })?;
        self.judged = matching.len();
        self.matched = matching.iter().filter(|matches| **matches).count();
        let mut places = places.drain(..);
        let first = self.page.items.len();
        let mut full = false;
        for (narrow, matches) in judged.into_iter().zip(matching) {
            let place = places.next();
            if !matches {
                continue;
            }
            if self.skip > 0 {
                self.skip -= 1;
                continue;
            }
            full = self.page.items.len() == self.most;
            if full {
                let last = self.page.items.last();
                let place = self
                    .place
                    .take()
                    .or_else(|| last.map(|last| usual_place(&last.narrow)));
                let (rev, place) = (self.page.rev, place.unwrap_or_default());
                self.page.next = Some(Cursor { rev, place });
                break;
            }
            self.page.items.push(Item {
                narrow,
                body: Bytes::new(),
                splice: 0,
            });
            self.place = place;
        }
        fill(session, &mut self.page.items[first..])?;
        Ok(!full)
    }
}

/// Reads the bodies of items.
fn fill(session: &dyn Session, items: &mut [Item]) -> Result<(), ShelfError> {
    let mut wanted: Vec<(i64, usize)> = items.iter().map(|item| item.narrow.id).zip(0..).collect();
    wanted.sort_unstable();
    let ids: Vec<i64> = wanted.iter().map(|(id, _)| *id).collect();
    session.bodies(&ids, &mut |id, body, splice| {
        if let Ok(at) = ids.binary_search(&id) {
            let item = &mut items[wanted[at].1];
            (item.body, item.splice) = (Bytes::copy_from_slice(body), splice);
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(judged: usize, matched: usize) -> Found {
        Found {
            page: Page::default(),
            most: 500,
            skip: 0,
            place: None,
            judged,
            matched,
        }
    }

    #[test]
    fn chunks_grow_where_few_rows_match_up_to_the_end_of_the_page() {
        // Nothing matches: they grow as fast as they may.
        let mut sizes = vec![FIRST];
        while sizes.len() < 6 {
            let size = sizes[sizes.len() - 1];
            sizes.push(found(size, 0).next_size(size));
        }
        assert_eq!(sizes, [256, 512, 1024, 2048, 4096, 4096]);
        // A fifth matches: 501 more are in about 2505 rows.
        assert_eq!(found(1000, 200).next_size(2048), 2505);
        // Most match.
        assert_eq!(found(4096, 4000).next_size(4096), FIRST);
    }
}
