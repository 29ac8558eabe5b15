//! Members, kinds, and how far each of them is synced.

use super::{Shelf, ShelfError};
use crate::path::Path;
use crate::row::{Directory, KindId, KindInfo, MemberId};
use rusqlite::{Connection, OptionalExtension as _, params};
use std::sync::Arc;

/// How far a kind of a member is synced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The API version that is synced.
    pub version: String,
    /// The member's resourceVersion to resume from; empty if there is none.
    pub resource_version: String,
}

/// Reads all names.
pub(super) fn load(connection: &Connection) -> Result<Directory, ShelfError> {
    let mut directory = Directory::default();
    let mut members = connection.prepare("SELECT id, name, present FROM member")?;
    let mut rows = members.query([])?;
    while let Some(row) = rows.next()? {
        let (id, name): (i64, String) = (row.get(0)?, row.get(1)?);
        if row.get(2)? {
            directory.member_ids.insert(name.clone(), id);
        }
        directory.members.insert(id, name);
    }
    let mut kinds = connection.prepare("SELECT id, grp, resource, kind, namespaced FROM kind")?;
    let mut rows = kinds.query([])?;
    while let Some(row) = rows.next()? {
        let id: i64 = row.get(0)?;
        let info = KindInfo {
            group: row.get(1)?,
            resource: row.get(2)?,
            kind: row.get(3)?,
            namespaced: row.get(4)?,
        };
        let key = (info.group.clone(), info.resource.clone());
        directory.kind_ids.insert(key, id);
        directory.kinds.insert(id, info);
    }
    let mut declared = connection.prepare("SELECT kind, path FROM declared ORDER BY path")?;
    let mut rows = declared.query([])?;
    while let Some(row) = rows.next()? {
        let (kind, path): (i64, String) = (row.get(0)?, row.get(1)?);
        if let Ok(path) = Path::parse(&path) {
            directory.declared.entry(kind).or_default().push(path);
        }
    }
    Ok(directory)
}

impl Shelf {
    /// Reads the names again after a change of them.
    pub(super) fn reload(&self, connection: &Connection) -> Result<(), ShelfError> {
        let directory = load(connection)?;
        *self.directory.write() = Arc::new(directory);
        Ok(())
    }

    /// Returns the number of a member; it is added if it is new. The uid is that of its namespace kube-system, or empty if that is not
    /// known. The second value is whether the member is another cluster than before.
    pub fn add_member(&self, name: &str, uid: &str) -> Result<(MemberId, bool), ShelfError> {
        let writer = self.writer.lock();
        let connection = &writer.connection;
        let known: Option<(i64, String)> = connection
            .query_row("SELECT id, uid FROM member WHERE name = ?", [name], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .optional()?;
        let changed = known
            .as_ref()
            .is_some_and(|(_, old)| !uid.is_empty() && !old.is_empty() && old != uid);
        connection.execute(
            "INSERT INTO member (name, uid, present) VALUES (?1, ?2, 1) ON CONFLICT (name) DO UPDATE
             SET present = 1, uid = CASE WHEN ?2 = '' THEN uid ELSE ?2 END",
            params![name, uid],
        )?;
        let id = match known {
            Some((id, _)) => id,
            None => connection.last_insert_rowid(),
        };
        self.reload(connection)?;
        Ok((MemberId(id), changed))
    }

    /// Returns the number of a kind; it is added if it is new.
    pub fn add_kind(&self, info: &KindInfo) -> Result<KindId, ShelfError> {
        let directory = self.directory();
        if let Some(id) = directory.kind(&info.group, &info.resource)
            && directory.kind_info(id.0) == Some(info)
        {
            return Ok(id);
        }
        let writer = self.writer.lock();
        let id = writer.connection.query_row(
            "INSERT INTO kind (grp, resource, kind, namespaced) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (grp, resource) DO UPDATE SET kind = ?3, namespaced = ?4 RETURNING id",
            params![info.group, info.resource, info.kind, info.namespaced],
            |row| row.get(0),
        )?;
        self.reload(&writer.connection)?;
        Ok(KindId(id))
    }

    /// Returns a random text of this file, which is the same as long as the file exists.
    pub fn salt(&self) -> Result<Vec<u8>, ShelfError> {
        let writer = self.writer.lock();
        writer.connection.execute(
            "INSERT OR IGNORE INTO meta (key, value) VALUES ('salt', lower(hex(randomblob(32))))",
            [],
        )?;
        let salt: String = writer.connection.query_row(
            "SELECT value FROM meta WHERE key = 'salt'",
            [],
            |row| row.get(0),
        )?;
        Ok(salt.into_bytes())
    }

    /// Returns how far the kinds of a member are synced.
    pub fn progress(&self, member: MemberId) -> Result<Vec<(KindId, Progress)>, ShelfError> {
        self.reading(|connection| {
            let mut statement = connection
                .prepare_cached("SELECT kind, version, rv FROM progress WHERE member = ?")?;
            let rows = statement.query_map([member.0], |row| {
                let progress = Progress {
                    version: row.get(1)?,
                    resource_version: row.get(2)?,
                };
                Ok((KindId(row.get(0)?), progress))
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    /// Returns the number of live rows of a member, per kind.
    pub fn counts(&self, member: MemberId) -> Result<Vec<(KindId, u64)>, ShelfError> {
        self.reading(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT kind, count(*) FROM object WHERE member = ? AND gone IS NULL GROUP BY kind",
            )?;
            let rows = statement.query_map([member.0], |row| {
                Ok((KindId(row.get(0)?), row.get::<_, i64>(1)?.unsigned_abs()))
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }
}
