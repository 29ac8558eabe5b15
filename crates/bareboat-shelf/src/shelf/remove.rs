//! Removing many rows: what a list no longer has, a kind of a member, a whole member.

use super::{Batch, Change, Progress, Shelf, ShelfError};
use crate::row::{KindId, MemberId};
use crate::seen::Seen;
use rusqlite::params;

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
        self.apply(vec![batch], now)?;
        Ok(removed)
    }

    /// Removes a kind of a member.
    pub fn remove_kind(
        &self,
        member: MemberId,
        kind: KindId,
        now: i64,
    ) -> Result<usize, ShelfError> {
        self.writer.lock().connection.execute(
            "DELETE FROM progress WHERE member = ? AND kind = ?",
            params![member.0, kind.0],
        )?;
        self.remove_rows(member, kind, |_| true, None, now)
    }

    /// Removes a member with all its rows.
    pub fn remove_member(&self, member: MemberId, now: i64) -> Result<usize, ShelfError> {
        {
            let writer = self.writer.lock();
            writer.connection.execute(
                "UPDATE member SET present = 0, uid = '' WHERE id = ?",
                [member.0],
            )?;
            self.reload(&writer.connection)?;
        }
        let mut removed = 0;
        for (kind, _) in self.counts(member)? {
            removed += self.remove_kind(member, kind, now)?;
        }
        self.writer
            .lock()
            .connection
            .execute("DELETE FROM progress WHERE member = ?", [member.0])?;
        Ok(removed)
    }

    /// Forgets the versions of a member, so that all its kinds are listed again.
    pub fn forget_progress(&self, member: MemberId) -> Result<(), ShelfError> {
        let writer = self.writer.lock();
        writer
            .connection
            .execute("UPDATE progress SET rv = '' WHERE member = ?", [member.0])?;
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
            let rows = self.reading(|connection| {
                let mut statement = connection.prepare_cached(
                    "SELECT id, ns, name FROM object WHERE member = ? AND kind = ? AND gone IS NULL
                     AND (ns, name) > (?, ?) ORDER BY ns, name LIMIT ?",
                )?;
                let most = AT_ONCE as i64;
                let rows = statement.query_map(
                    params![member.0, kind.0, after.0, after.1, most],
                    |row| {
                        Ok((
                            row.get::<_, i64>(0)?,
                            row.get::<_, String>(1)?,
                            row.get::<_, String>(2)?,
                        ))
                    },
                )?;
                Ok(rows.collect::<Result<Vec<_>, _>>()?)
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
                self.apply(vec![batch], now)?;
            }
        }
    }
}
