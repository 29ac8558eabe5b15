//! Writing: batches of changes of members, in one transaction with the version that covers them.

use super::weight::Weights;
use super::{Writer, revisions};
use crate::decide;
use crate::dialect::Dialect;
use crate::draft::Draft;
use crate::engine::{Applied, Batch, Change, Context, Written};
use crate::path::Path;
use crate::ring::Event;
use crate::row::Narrow;
use crate::shelf::ShelfError;
use bytes::Bytes;
use rusqlite::{CachedStatement, Connection, OptionalExtension as _, params};

/// Writes batches in one transaction.
pub(super) fn apply(
    writer: &mut Writer,
    batches: &[Batch],
    context: &Context<'_>,
) -> Result<Written, ShelfError> {
    let Writer {
        connection,
        revisions,
        weights,
    } = writer;
    let changes = batches.iter().map(|batch| batch.changes.len());
    // An object that is made anew counts twice.
    revisions.reserve(connection, changes.sum::<usize>() * 2)?;
    let transaction = connection.transaction()?;
    let first = revisions.last();
    let mut pass = Pass {
        statements: Statements::new(&transaction)?,
        context,
        rev: first,
        events: context.watched.then(Vec::new),
        applied: Applied::default(),
        weights,
    };
    let mut applied = Vec::with_capacity(batches.len());
    for batch in batches {
        pass.batch(batch)?;
        applied.push(std::mem::take(&mut pass.applied));
    }
    let (events, last) = (pass.events.take(), pass.rev);
    drop(pass);
    if last > first {
        revisions::note(&transaction, last)?;
    }
    transaction.commit()?;
    revisions.advance(last);
    Ok(Written {
        applied,
        events,
        first,
        last,
    })
}

/// The statements of a transaction, prepared once per connection.
struct Statements<'t> {
    find: CachedStatement<'t>,
    body: CachedStatement<'t>,
    insert: CachedStatement<'t>,
    insert_body: CachedStatement<'t>,
    update: CachedStatement<'t>,
    update_body: CachedStatement<'t>,
    bury: CachedStatement<'t>,
    delete_body: CachedStatement<'t>,
    progress: CachedStatement<'t>,
    connection: &'t Connection,
}

impl<'t> Statements<'t> {
    fn new(connection: &'t Connection) -> Result<Statements<'t>, ShelfError> {
        let prepare = |sql: &str| connection.prepare_cached(sql);
        let find = format!(
            "SELECT {} FROM object o WHERE member = ? AND kind = ? AND ns = ? AND name = ? AND gone IS NULL",
            Dialect::Sqlite.columns()
        );
        Ok(Statements {
            find: prepare(&find)?,
            body: prepare("SELECT json FROM body WHERE id = ?")?,
            insert: prepare(
                "INSERT INTO object (member, kind, version, ns, name, uid, owner, created, deleting, synced, rv, born, rev, labels, fields)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?12, ?13, ?14)",
            )?,
            insert_body: prepare("INSERT INTO body (id, json, splice) VALUES (?, ?, ?)")?,
            update: prepare(
                "UPDATE object SET version = ?2, owner = ?3, created = ?4, deleting = ?5, synced = ?6, rv = ?7, rev = ?8,
                 labels = ?9, fields = ?10 WHERE id = ?1",
            )?,
            update_body: prepare("UPDATE body SET json = ?2, splice = ?3 WHERE id = ?1")?,
            bury: prepare("UPDATE object SET gone = ?2, synced = ?2, rev = ?3, rv = ?4 WHERE id = ?1")?,
            delete_body: prepare("DELETE FROM body WHERE id = ?")?,
            progress: prepare(
                "INSERT OR REPLACE INTO progress (member, kind, version, rv) VALUES (?, ?, ?, ?)",
            )?,
            connection,
        })
    }
}

/// One transaction.
struct Pass<'t> {
    statements: Statements<'t>,
    context: &'t Context<'t>,
    rev: i64,
    events: Option<Vec<Event>>,
    applied: Applied,
    weights: &'t mut Weights,
}

impl Pass<'_> {
    fn batch(&mut self, batch: &Batch) -> Result<(), ShelfError> {
        let place = (batch.member.0, batch.kind.0);
        let declared = self.context.directory.declared(batch.kind);
        let (mut added, mut bytes) = (0, 0);
        for change in &batch.changes {
            match change {
                Change::Put(draft) => {
                    let (size, before) = (draft.body.len() as u64, self.applied.changed);
                    added += i64::from(self.put(place, draft, declared)?);
                    if self.applied.changed > before {
                        bytes += size;
                    }
                }
                Change::Delete {
                    namespace,
                    name,
                    version,
                } => {
                    if let Some(old) = self.find(place, namespace, name)? {
                        self.bury(old, version.as_deref())?;
                    }
                }
            }
        }
        if added > 0 {
            self.check_quota(place.0)?;
        }
        if bytes > 0 {
            let connection = self.statements.connection;
            self.weights
                .add(connection, place.0, bytes, self.context.most_bytes)?;
        }
        if let Some(progress) = &batch.progress {
            let values = params![
                place.0,
                place.1,
                progress.version,
                progress.resource_version
            ];
            self.statements.progress.execute(values)?;
        }
        Ok(())
    }

    fn find(
        &mut self,
        place: (i64, i64),
        namespace: &str,
        name: &str,
    ) -> Result<Option<Narrow>, ShelfError> {
        let values = params![place.0, place.1, namespace, name];
        let mut rows = self.statements.find.query(values)?;
        rows.next()?.map(|row| Narrow::read(row)).transpose()
    }

    /// Returns whether a row has a body.
    fn has_body(&mut self, id: i64, body: &Bytes) -> Result<bool, ShelfError> {
        let mut rows = self.statements.body.query([id])?;
        Ok(match rows.next()? {
            Some(row) => row.get_ref(0)?.as_bytes().is_ok_and(|own| own == body),
            None => false,
        })
    }

    /// Reads the old body, if someone watches.
    fn before(&mut self, narrow: &Narrow) -> Result<Option<(Narrow, Bytes)>, ShelfError> {
        if self.events.is_none() {
            return Ok(None);
        }
        let body: Option<Vec<u8>> = self
            .statements
            .body
            .query_row([narrow.id], |row| row.get(0))
            .optional()?;
        Ok(Some((narrow.clone(), body.unwrap_or_default().into())))
    }

    /// Writes an object, and returns whether its row is new.
    fn put(
        &mut self,
        place: (i64, i64),
        draft: &Draft,
        declared: &[Path],
    ) -> Result<bool, ShelfError> {
        let mut old = self.find(place, &draft.namespace, &draft.name)?;
        if let Some(old) = &old
            && decide::is_same(old, draft)
            && self.has_body(old.id, &draft.body)?
        {
            self.applied.rows.push(old.id);
            return Ok(false);
        }
        if let Some(other) = old.take_if(|old| old.uid != draft.uid) {
            self.bury(other, None)?;
        }
        self.rev += 1;
        self.applied.changed += 1;
        let is_new = old.is_none();
        let before = match &old {
            Some(old) => self.before(old)?,
            None => None,
        };
        let mut narrow = decide::next(old, draft, declared, self.context.now);
        narrow.rev = self.rev;
        if is_new {
            (narrow.member, narrow.kind, narrow.born) = (place.0, place.1, self.rev);
        }
        self.write(&mut narrow, draft, is_new)?;
        self.applied.rows.push(narrow.id);
        if let Some(events) = &mut self.events {
            events.push(decide::put(narrow, draft, before));
        }
        Ok(is_new)
    }

    fn write(&mut self, row: &mut Narrow, draft: &Draft, is_new: bool) -> Result<(), ShelfError> {
        let splice = i64::try_from(draft.splice).unwrap_or(0);
        if !is_new {
            self.statements.update.execute(params![
                row.id,
                row.version,
                row.owner,
                row.created,
                row.deleting,
                row.synced,
                row.member_version,
                row.rev,
                row.labels,
                row.fields,
            ])?;
            let values = params![row.id, &draft.body[..], splice];
            self.statements.update_body.execute(values)?;
            return Ok(());
        }
        row.id = self.statements.insert.insert(params![
            row.member,
            row.kind,
            row.version,
            row.namespace,
            row.name,
            row.uid,
            row.owner,
            row.created,
            row.deleting,
            row.synced,
            row.member_version,
            row.rev,
            row.labels,
            row.fields,
        ])?;
        let values = params![row.id, &draft.body[..], splice];
        self.statements.insert_body.execute(values)?;
        Ok(())
    }

    /// Makes a row a deletion, at a version of the member if that is known.
    fn bury(&mut self, mut narrow: Narrow, version: Option<&str>) -> Result<(), ShelfError> {
        let before = self.before(&narrow)?;
        if let Some(version) = version {
            version.clone_into(&mut narrow.member_version);
        }
        self.rev += 1;
        self.applied.changed += 1;
        self.statements.bury.execute(params![
            narrow.id,
            self.context.now,
            self.rev,
            narrow.member_version
        ])?;
        self.statements.delete_body.execute([narrow.id])?;
        (narrow.rev, narrow.gone) = (self.rev, true);
        if let (Some(events), Some((before, body))) = (&mut self.events, before) {
            events.push(decide::bury(narrow, before, body));
        }
        Ok(())
    }

    fn check_quota(&self, member: i64) -> Result<(), ShelfError> {
        let sql = "SELECT count(*) FROM object WHERE member = ? AND gone IS NULL";
        // Counting costs much more than writing, so it is done now and then.
        if self.rev % 64 != 0 {
            return Ok(());
        }
        let mut statement = self.statements.connection.prepare_cached(sql)?;
        let rows: i64 = statement.query_row([member], |row| row.get(0))?;
        let most = self.context.most_rows;
        match rows.unsigned_abs() > most {
            true => Err(ShelfError::Quota(most)),
            false => Ok(()),
        }
    }
}
