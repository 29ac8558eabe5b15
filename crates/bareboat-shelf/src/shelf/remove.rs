//! Removing many rows: what a list no longer has, a kind of a member, a whole member.

use super::{Shelf, ShelfError};
use crate::engine::{Batch, Change, Progress};
use crate::param::{number, text};
use crate::plan;
use crate::row::{KindId, MemberId};
use crate::seen::Seen;

/// How many rows one transaction removes, so that other writes get their turn.
const AT_ONCE: usize = 2000;

impl Shelf {
    /// Completes a list of a member: rows it did not contain are deleted, then the version is noted.
    pub fn complete(
        &self,
        member: MemberId,
        kind: KindId,
        seen: &Seen,
        progress: Progress,
        now: i64,
    ) -> Result<usize, ShelfError> {
        let version = Some(progress.resource_version.clone());
        let removed = self.remove_rows(member, kind, |id| !seen.contains(id), version, now)?;
        let batch = Batch {
            member,
            kind,
            changes: Vec::new(),
            progress: Some(progress),
        };
        self.apply(&[batch], now)?;
        Ok(removed)
    }

    /// Removes a kind of a member.
    pub fn remove_kind(
        &self,
        member: MemberId,
        kind: KindId,
        now: i64,
    ) -> Result<usize, ShelfError> {
        let sql = "DELETE FROM progress WHERE member = ? AND kind = ?";
        self.changing(|session| session.run(sql, &[member.0.into(), kind.0.into()]))?;
        self.remove_rows(member, kind, |_| true, None, now)
    }

    /// Removes a member with all its rows. Its name goes last, so that a removal that was interrupted is begun again.
    pub fn remove_member(&self, member: MemberId, now: i64) -> Result<usize, ShelfError> {
        let mut removed = 0;
        for (kind, _) in self.counts(member)? {
            removed += self.remove_kind(member, kind, now)?;
        }
        self.renaming(|session| {
            let id = [member.0.into()];
            session.run("DELETE FROM progress WHERE member = ?", &id)?;
            session.run("UPDATE member SET present = 0, uid = '' WHERE id = ?", &id)
        })?;
        Ok(removed)
    }

    /// Forgets the versions of a member, so that all its kinds are listed again.
    pub fn forget_progress(&self, member: MemberId) -> Result<(), ShelfError> {
        let sql = "UPDATE progress SET rv = '' WHERE member = ?";
        self.changing(|session| session.run(sql, &[member.0.into()]))?;
        Ok(())
    }

    fn remove_rows(
        &self,
        member: MemberId,
        kind: KindId,
        unwanted: impl Fn(i64) -> bool,
        version: Option<String>,
        now: i64,
    ) -> Result<usize, ShelfError> {
        let mut removed = 0;
        let mut after = (String::new(), String::new());
        loop {
            let rows = self.reading(|session| {
                let mut rows: Vec<(i64, String, String)> = Vec::new();
                let (more, values) = plan::after(
                    self.engine.dialect(),
                    &["ns", "name"].map(|column| (column.to_owned(), false)),
                    &[after.0.as_str().into(), after.1.as_str().into()],
                );
                let sql = format!(
                    "SELECT id, ns, name FROM object WHERE member = ? AND kind = ? AND gone IS NULL
                     AND {more} ORDER BY ns, name LIMIT {AT_ONCE}"
                );
                let mut place = vec![member.0.into(), kind.0.into()];
                place.extend(values);
                session.rows(&sql, &place, &mut |row| {
                    rows.push((number(row, 0)?, text(row, 1)?, text(row, 2)?));
                    Ok(true)
                })?;
                Ok(rows)
            })?;
            let Some(last) = rows.last() else {
                return Ok(removed);
            };
            after = (last.1.clone(), last.2.clone());
            let unwanted = rows.into_iter().filter(|(id, ..)| unwanted(*id));
            let changes: Vec<Change> = unwanted
                .map(|(_, namespace, name)| Change::Delete {
                    namespace,
                    name,
                    version: version.clone(),
                })
                .collect();
            removed += changes.len();
            if !changes.is_empty() {
                let batch = Batch {
                    member,
                    kind,
                    changes,
                    progress: None,
                };
                self.apply(&[batch], now)?;
            }
        }
    }
}
