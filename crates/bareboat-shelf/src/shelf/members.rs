//! Members, kinds, and how far each of them is synced.

use super::{Names, Shelf, ShelfError, indexes};
use crate::engine::{Progress, Session};
use crate::param::{Param, number, text};
use crate::path::Path;
use crate::row::{Directory, KindId, KindInfo, MemberId};
use std::sync::Arc;

/// Reads all names.
pub(super) fn load(session: &dyn Session) -> Result<Directory, ShelfError> {
    let mut directory = Directory::default();
    session.rows("SELECT id, name, present FROM member", &[], &mut |row| {
        let (id, name) = (number(row, 0)?, text(row, 1)?);
        if number(row, 2)? != 0 {
            directory.member_ids.insert(name.clone(), id);
        }
        directory.members.insert(id, name);
        Ok(true)
    })?;
    let kinds = "SELECT id, grp, resource, kind, namespaced FROM kind";
    session.rows(kinds, &[], &mut |row| {
        let id = number(row, 0)?;
        let info = KindInfo {
            group: text(row, 1)?,
            resource: text(row, 2)?,
            kind: text(row, 3)?,
            namespaced: number(row, 4)? != 0,
        };
        let key = (info.group.clone(), info.resource.clone());
        directory.kind_ids.insert(key, id);
        directory.kinds.insert(id, info);
        Ok(true)
    })?;
    let declared = "SELECT kind, path FROM declared ORDER BY path";
    session.rows(declared, &[], &mut |row| {
        if let Ok(path) = Path::parse(&text(row, 1)?) {
            let kind = directory.declared.entry(number(row, 0)?).or_default();
            kind.push(path);
        }
        Ok(true)
    })?;
    Ok(directory)
}

impl Shelf {
    /// Reads the names again after a change of them.
    pub(super) fn reload(&self, session: &dyn Session) -> Result<(), ShelfError> {
        let version = session.standing()?.names;
        let directory = Arc::new(load(session)?);
        let indexes = match self.is_shared() && self.engine.dialect().learns() {
            true => Some(indexes::load(session)?),
            false => None,
        };
        let mut names = self.names.write();
        // Another thread may have read them later than this transaction began.
        if version >= names.version {
            *names = Names { directory, version };
            if let Some(indexes) = indexes {
                *self.indexes.write() = Arc::new(indexes);
            }
        }
        Ok(())
    }

    /// Returns the number of a member; it is added if it is new. The uid is that of its namespace kube-system, or empty if that is not
    /// known. The second value is whether the member is another cluster than before.
    pub fn add_member(&self, name: &str, uid: &str) -> Result<(MemberId, bool), ShelfError> {
        let known = self.reading(|session| find_member(session, name))?;
        if let Some((id, old, true)) = &known
            && (uid.is_empty() || uid == old)
        {
            return Ok((MemberId(*id), false));
        }
        self.renaming(|session| {
            let known = find_member(session, name)?;
            let changed = known.as_ref().is_some_and(|(_, old, _)| {
                !uid.is_empty() && !old.is_empty() && old != uid
            });
            let insert = format!(
                "INSERT INTO member (name, uid, present) VALUES (?, ?, 1) {}",
                self.engine.dialect().or_leave(&["name"])
            );
            session.run(&insert, &[name.into(), uid.into()])?;
            let update = "UPDATE member SET present = 1, uid = CASE WHEN ? = '' THEN uid ELSE ? END WHERE name = ?";
            session.run(update, &[uid.into(), uid.into(), name.into()])?;
            let found = find_member(session, name)?;
            Ok((MemberId(found.map_or(0, |(id, ..)| id)), changed))
        })
    }

    /// Returns the number of a kind; it is added if it is new.
    pub fn add_kind(&self, info: &KindInfo) -> Result<KindId, ShelfError> {
        let directory = self.directory();
        if let Some(id) = directory.kind(&info.group, &info.resource)
            && directory.kind_info(id.0) == Some(info)
        {
            return Ok(id);
        }
        self.renaming(|session| {
            let values = [
                info.kind.as_str().into(),
                Param::Int(i64::from(info.namespaced)),
                info.group.as_str().into(),
                info.resource.as_str().into(),
            ];
            let insert = format!(
                "INSERT INTO kind (kind, namespaced, grp, resource) VALUES (?, ?, ?, ?) {}",
                self.engine.dialect().or_leave(&["grp", "resource"])
            );
            session.run(&insert, &values)?;
            let update = "UPDATE kind SET kind = ?, namespaced = ? WHERE grp = ? AND resource = ?";
            session.run(update, &values)?;
            let mut id = 0;
            let find = "SELECT id FROM kind WHERE grp = ? AND resource = ?";
            session.rows(find, &values[2..], &mut |row| {
                id = number(row, 0)?;
                Ok(false)
            })?;
            Ok(KindId(id))
        })
    }

    /// Returns a random text of this shelf, which is the same as long as the shelf exists.
    pub fn salt(&self) -> Result<Vec<u8>, ShelfError> {
        self.engine.salt()
    }

    /// Returns how far the kinds of a member are synced.
    pub fn progress(&self, member: MemberId) -> Result<Vec<(KindId, Progress)>, ShelfError> {
        self.reading(|session| {
            let mut found = Vec::new();
            let sql = "SELECT kind, version, rv FROM progress WHERE member = ?";
            session.rows(sql, &[member.0.into()], &mut |row| {
                let progress = Progress {
                    version: text(row, 1)?,
                    resource_version: text(row, 2)?,
                };
                found.push((KindId(number(row, 0)?), progress));
                Ok(true)
            })?;
            Ok(found)
        })
    }

    /// Returns the number of live rows of a member, per kind.
    pub fn counts(&self, member: MemberId) -> Result<Vec<(KindId, u64)>, ShelfError> {
        self.reading(|session| {
            let mut found = Vec::new();
            let sql =
                "SELECT kind, count(*) FROM object WHERE member = ? AND gone IS NULL GROUP BY kind";
            session.rows(sql, &[member.0.into()], &mut |row| {
                found.push((KindId(number(row, 0)?), number(row, 1)?.unsigned_abs()));
                Ok(true)
            })?;
            Ok(found)
        })
    }
}

/// Returns the number of a member, the uid that is known of it, and whether it is present.
fn find_member(
    session: &dyn Session,
    name: &str,
) -> Result<Option<(i64, String, bool)>, ShelfError> {
    let mut found = None;
    let sql = "SELECT id, uid, present FROM member WHERE name = ?";
    session.rows(sql, &[name.into()], &mut |row| {
        found = Some((number(row, 0)?, text(row, 1)?, number(row, 2)? != 0));
        Ok(false)
    })?;
    Ok(found)
}
