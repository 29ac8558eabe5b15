//! Writing: batches of changes of members, in one transaction with the version that covers them.

use super::{Shelf, ShelfError, Writer, read, revisions};
use crate::draft::Draft;
use crate::path::Path;
use crate::ring::{Before, Event, EventType};
use crate::row::{Directory, KindId, MemberId, Narrow};
use bareboat_api::{Map, Value};
use bytes::Bytes;
use rusqlite::{CachedStatement, Connection, OptionalExtension as _, params};

/// A change of an object in a member.
#[derive(Clone, Debug)]
pub enum Change {
    /// The object as it is now.
    Put(Box<Draft>),
    /// The object is gone.
    Delete {
        /// The namespace, or empty.
        namespace: String,
        /// The name.
        name: String,
        /// The member's resourceVersion of the deletion, if it is known.
        version: Option<String>,
    },
}

/// Changes of one kind of one member, in order.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The member.
    pub member: MemberId,
    /// The kind.
    pub kind: KindId,
    /// The changes.
    pub changes: Vec<Change>,
    /// The API version, and the member's resourceVersion that the changes lead to; `None` leaves both as they are.
    pub progress: Option<super::Progress>,
}

/// What a write did.
#[derive(Clone, Debug, Default)]
pub struct Applied {
    /// The rows of all objects that were put, changed or not.
    pub rows: Vec<i64>,
    /// How many rows changed.
    pub changed: usize,
}

impl Shelf {
    /// Writes batches in one transaction, and returns what each of them did. `now` is in milliseconds since 1970.
    pub fn apply(&self, batches: Vec<Batch>, now: i64) -> Result<Vec<Applied>, ShelfError> {
        let mut writer = self.writer.lock();
        let Writer {
            connection,
            revisions,
        } = &mut *writer;
        let changes = batches
            .iter()
            .map(|batch| batch.changes.len())
            .sum::<usize>();
        // An object that is made anew counts twice.
        revisions.reserve(connection, changes * 2)?;
        let directory = self.directory();
        let watched = self.ring.lock().is_watched();
        let transaction = connection.transaction()?;
        let first = revisions.last();
        let (applied, events, last) = {
            let mut pass = Pass {
                statements: Statements::new(&transaction)?,
                directory: &directory,
                now,
                rev: first,
                events: watched.then(Vec::new),
                applied: Applied::default(),
                quota: self.settings.rows_per_member,
            };
            let mut applied = Vec::with_capacity(batches.len());
            for batch in batches {
                pass.batch(batch)?;
                applied.push(std::mem::take(&mut pass.applied));
            }
            (applied, pass.events, pass.rev)
        };
        if last > first {
            revisions::note(&transaction, last)?;
        }
        transaction.commit()?;
        if last > first {
            revisions.advance(last);
            self.publish(events, last);
        }
        Ok(applied)
    }
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
            read::COLUMNS
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
    directory: &'t Directory,
    now: i64,
    rev: i64,
    events: Option<Vec<Event>>,
    applied: Applied,
    quota: u64,
}

impl Pass<'_> {
    fn batch(&mut self, batch: Batch) -> Result<(), ShelfError> {
        let place = (batch.member.0, batch.kind.0);
        let declared = self.directory.declared.get(&place.1);
        let declared = declared.map_or(&[][..], Vec::as_slice);
        let mut added = 0;
        for change in batch.changes {
            match change {
                Change::Put(draft) => added += i64::from(self.put(place, *draft, declared)?),
                Change::Delete {
                    namespace,
                    name,
                    version,
                } => {
                    if let Some(mut old) = self.find(place, &namespace, &name)? {
                        old.member_version = version.unwrap_or(old.member_version);
                        self.bury(old)?;
                    }
                }
            }
        }
        if added > 0 {
            self.check_quota(place.0)?;
        }
        if let Some(progress) = batch.progress {
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
        Ok(self
            .statements
            .find
            .query_row(values, read::narrow)
            .optional()?)
    }

    /// Reads the old body, if someone watches.
    fn before(&mut self, narrow: &Narrow) -> Result<Option<Before>, ShelfError> {
        if self.events.is_none() {
            return Ok(None);
        }
        let body: Option<Vec<u8>> = self
            .statements
            .body
            .query_row([narrow.id], |row| row.get(0))
            .optional()?;
        Ok(Some(Before {
            narrow: narrow.clone(),
            body: body.unwrap_or_default().into(),
        }))
    }

    fn put(
        &mut self,
        place: (i64, i64),
        draft: Draft,
        declared: &[Path],
    ) -> Result<bool, ShelfError> {
        let old = self.find(place, &draft.namespace, &draft.name)?;
        if let Some(old) = &old
            && old.uid == draft.uid
            && old.member_version == draft.member_version
            && old.version == draft.version
        {
            self.applied.rows.push(old.id);
            return Ok(false);
        }
        let fields = extracted(&draft.object, declared);
        let same = match old {
            Some(old) if old.uid == draft.uid => Some(old),
            Some(old) => {
                self.bury(old)?;
                None
            }
            None => None,
        };
        self.rev += 1;
        self.applied.changed += 1;
        let (before, mut narrow, event) = match same {
            Some(old) => (self.before(&old)?, old, EventType::Modified),
            None => (None, Narrow::default(), EventType::Added),
        };
        let is_new = event == EventType::Added;
        if is_new {
            (narrow.member, narrow.kind, narrow.born) = (place.0, place.1, self.rev);
            (narrow.namespace, narrow.name) = (draft.namespace, draft.name);
            narrow.uid = draft.uid;
        }
        (narrow.version, narrow.owner) = (draft.version, draft.owner);
        (narrow.created, narrow.deleting) = (draft.created, draft.deleting);
        (narrow.member_version, narrow.rev) = (draft.member_version, self.rev);
        (narrow.labels, narrow.fields, narrow.synced) = (draft.labels, fields, self.now);
        self.write(&mut narrow, &draft.body, draft.splice, is_new)?;
        self.applied.rows.push(narrow.id);
        if let Some(events) = &mut self.events {
            events.push(Event {
                event,
                narrow,
                body: draft.body,
                splice: draft.splice,
                before,
                merged: false,
            });
        }
        Ok(is_new)
    }

    fn write(
        &mut self,
        row: &mut Narrow,
        body: &Bytes,
        splice: usize,
        is_new: bool,
    ) -> Result<(), ShelfError> {
        let splice = i64::try_from(splice).unwrap_or(0);
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
            self.statements
                .update_body
                .execute(params![row.id, &body[..], splice])?;
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
        self.statements
            .insert_body
            .execute(params![row.id, &body[..], splice])?;
        Ok(())
    }

    /// Makes a row a deletion.
    fn bury(&mut self, mut narrow: Narrow) -> Result<(), ShelfError> {
        let before = self.before(&narrow)?;
        self.rev += 1;
        self.applied.changed += 1;
        self.statements.bury.execute(params![
            narrow.id,
            self.now,
            self.rev,
            narrow.member_version
        ])?;
        self.statements.delete_body.execute([narrow.id])?;
        (narrow.rev, narrow.gone) = (self.rev, true);
        if let (Some(events), Some(before)) = (&mut self.events, before) {
            let splice = read::splice_of(&before.body);
            events.push(Event {
                event: EventType::Deleted,
                narrow,
                body: before.body.clone(),
                splice,
                before: Some(before),
                merged: false,
            });
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
        match rows.unsigned_abs() > self.quota {
            true => Err(ShelfError::Quota(self.quota)),
            false => Ok(()),
        }
    }
}

/// Returns the declared fields of an object as a JSON object of texts.
pub(super) fn extracted(object: &Value, declared: &[Path]) -> String {
    let mut fields = Map::new();
    for path in declared {
        let text = match path.read(object) {
            None | Some(Value::Null | Value::Object(_) | Value::Array(_)) => continue,
            Some(Value::String(text)) => text.to_string(),
            Some(other) => other.to_string(),
        };
        // Longer texts would make rows wide; a search for them reads bodies.
        fields.insert(path.to_string(), Value::string(text));
    }
    String::from_utf8(Value::Object(fields).to_json()).unwrap_or_default()
}
