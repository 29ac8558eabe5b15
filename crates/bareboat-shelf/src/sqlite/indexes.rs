//! Indexes that are made and dropped while the shelf is in use.

use super::Sqlite;
use crate::engine::{Engine as _, NewIndex};
use crate::param::number;
use crate::shelf::ShelfError;

/// Makes a column and the index on it, in one transaction with the line in the list.
pub(super) fn add(engine: &Sqlite, index: &NewIndex<'_>) -> Result<(), ShelfError> {
    engine.change(&mut |session| {
        let insert = "INSERT INTO learnt (sort, key, used) VALUES (?, ?, ?)";
        session.run(insert, &[index.sort.into(), index.key.into(), index.now.into()])?;
        let mut no = 0;
        let find = "SELECT no FROM learnt WHERE sort = ? AND key = ?";
        session.rows(find, &[index.sort.into(), index.key.into()], &mut |row| {
            no = number(row, 0)?;
            Ok(false)
        })?;
        let expression = &index.expression;
        session.run(
            &format!("ALTER TABLE object ADD COLUMN x{no} TEXT GENERATED ALWAYS AS ({expression}) VIRTUAL"),
            &[],
        )?;
        session.run(
            &format!("CREATE INDEX object_x{no} ON object (kind, x{no}, ns, name, member) WHERE gone IS NULL AND x{no} IS NOT NULL"),
            &[],
        )?;
        Ok(())
    })
}

/// Drops an index with its column.
pub(super) fn remove(engine: &Sqlite, no: i64) -> Result<(), ShelfError> {
    engine.change(&mut |session| {
        for sql in [
            format!("DROP INDEX object_x{no}"),
            format!("ALTER TABLE object DROP COLUMN x{no}"),
            format!("DELETE FROM learnt WHERE no = {no}"),
        ] {
            session.run(&sql, &[])?;
        }
        Ok(())
    })
}
