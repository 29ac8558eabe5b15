//! Regular work: forgetting old deletions, and indexes that are learnt from use.

use super::{Shelf, ShelfError, revisions};
use bareboat_api::value;
use rusqlite::{OptionalExtension as _, params};

/// How many deletions one transaction forgets.
const AT_ONCE: usize = 5000;

impl Shelf {
    /// Does what is due. `now` is in milliseconds since 1970.
    pub fn upkeep(&self, now: i64) -> Result<(), ShelfError> {
        self.forget(now)?;
        self.learn(now)
    }

    /// Forgets deletions that are older than the retention, and raises the floor of watches accordingly.
    fn forget(&self, now: i64) -> Result<(), ShelfError> {
        let retain = i64::try_from(self.settings.retain.as_millis()).unwrap_or(i64::MAX);
        let before = now - retain;
        loop {
            let mut writer = self.writer.lock();
            let transaction = writer.connection.transaction()?;
            let newest: Option<i64> = transaction
                .query_row(
                    "SELECT max(rev) FROM (SELECT rev FROM object WHERE gone < ? ORDER BY gone LIMIT ?)",
                    params![before, AT_ONCE as i64],
                    |row| row.get(0),
                )
                .optional()?
                .flatten();
            let Some(newest) = newest else {
                break;
            };
            // Watches learn of the floor before the rows are gone.
            let floor = {
                let mut history = self.history.write();
                history.floor = history.floor.max(newest);
                history.gaps.retain(|gap| gap.1 > newest);
                history.floor
            };
            revisions::set(&transaction, "floor", &value!(floor))?;
            let sql = "DELETE FROM object WHERE id IN (SELECT id FROM object WHERE gone < ? ORDER BY gone LIMIT ?)";
            let removed = transaction.execute(sql, params![before, AT_ONCE as i64])?;
            transaction.commit()?;
            if removed < AT_ONCE {
                break;
            }
        }
        let writer = self.writer.lock();
        let sql = "DELETE FROM member WHERE present = 0 AND NOT EXISTS (SELECT 1 FROM object WHERE object.member = member.id)";
        if writer.connection.execute(sql, [])? > 0 {
            self.reload(&writer.connection)?;
        }
        Ok(())
    }
}
