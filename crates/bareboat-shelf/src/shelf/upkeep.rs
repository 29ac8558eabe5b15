//! Regular work: forgetting old deletions, and indexes that are learnt from use.

use super::{Shelf, ShelfError};

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
        while self.engine.forget(before, AT_ONCE)? == AT_ONCE {}
        let gone =
            "present = 0 AND NOT EXISTS (SELECT 1 FROM object WHERE object.member = member.id)";
        let some = self.reading(|session| {
            let mut some = false;
            let sql = format!("SELECT id FROM member WHERE {gone} LIMIT 1");
            session.rows(&sql, &[], &mut |_| {
                some = true;
                Ok(false)
            })?;
            Ok(some)
        })?;
        if some {
            let sql = format!("DELETE FROM member WHERE {gone}");
            self.renaming(|session| session.run(&sql, &[]))?;
        }
        Ok(())
    }
}
