//! Indexes that are declared or learnt, while several servers use the table.
//!
//! A change of a table commits at once, so the list of indexes is ahead of it: an index that is made or dropped has a negative time
//! there, and no search uses it. An index is dropped a minute after it has left the list, when all servers know that.

use super::schema::lock_name;
use crate::error::{Failure as _, Meaning};
use crate::mysql::link::Connection;
use crate::mysql::rows::number;
use bareboat_shelf::NewIndex;
use mysql_async::Error;
use std::time::Duration;

/// How long an index may take.
const LONGEST: Duration = Duration::from_secs(1800);
/// How long servers may still use an index that has left the list, in milliseconds.
const LINGER: i64 = 60_000;

/// Takes the right to change the table. Returns whether no other server has it.
async fn begin(link: &mut Connection, name: &str) -> Result<bool, Error> {
    let lock = link.first("SELECT GET_LOCK(?, 0)", (name,)).await?;
    if lock.is_none_or(|row| number(&row, 0) != 1) {
        return Ok(false);
    }
    let limit = match link.server.is_mariadb {
        true => ", max_statement_time = 0",
        false => "",
    };
    // Searches wait behind a change of the table that waits for others.
    let patience = format!("SET SESSION lock_wait_timeout = 2{limit}");
    link.run(&patience).await?;
    Ok(true)
}

/// Returns an error, unless it says that the table is in use.
fn unless_busy(result: Result<(), Error>) -> Result<(), Error> {
    match result {
        Err(error) if error.meaning() == Meaning::Busy => {
            tracing::debug!(%error, "an index of the shelf is put off");
            Ok(())
        }
        result => result,
    }
}

/// Gives the right back. A connection that is lost has given it back.
async fn end(link: &mut Connection, name: &str, result: Result<(), Error>) -> Result<(), Error> {
    let released = link.first("SELECT RELEASE_LOCK(?)", (name,)).await;
    result.and(released.map(drop))
}

/// Makes an index, unless another server has made it or changes the table at the moment.
pub(super) async fn add(
    link: &mut Connection,
    database: &str,
    index: &NewIndex<'_>,
) -> Result<(), Error> {
    let name = lock_name("indexes", database);
    if !begin(link, &name).await? {
        return Ok(());
    }
    let added = add_alone(link, index).await;
    end(link, &name, added).await
}

async fn add_alone(link: &mut Connection, index: &NewIndex<'_>) -> Result<(), Error> {
    let found = "SELECT no FROM learnt WHERE sort = ? AND `key` = ?";
    let key = (index.sort, index.key);
    if link.first(found, key).await?.is_some() {
        return Ok(());
    }
    let note = "INSERT INTO learnt (sort, `key`, used) VALUES (?, ?, ?)";
    let unfinished = (index.sort, index.key, -1 - index.now);
    link.first(note, unfinished).await?;
    let row = link.first(found, key).await?;
    let no = row.map_or(0, |row| number(&row, 0));
    unless_busy(make(link, no, index).await)
}

async fn make(link: &mut Connection, no: u64, index: &NewIndex<'_>) -> Result<(), Error> {
    let column = format!(
        "ALTER TABLE object ADD COLUMN x{no} VARBINARY(200) GENERATED ALWAYS AS ({}) VIRTUAL",
        index.expression
    );
    link.run(&column).await?;
    let keys = format!("CREATE INDEX object_x{no} ON object (kind, gone, x{no}, ns, name, member)");
    link.run_within(&keys, LONGEST).await?;
    let done = format!(
        "START TRANSACTION; UPDATE learnt SET used = {} WHERE no = {no};
         UPDATE state SET names = names + 1 WHERE one = 1; COMMIT",
        index.now.max(0)
    );
    link.run(&done).await?;
    Ok(())
}

/// Takes an index from the list, in the transaction that was begun.
pub(super) async fn retire(link: &mut Connection, no: i64, now: i64) -> Result<(), Error> {
    let retire = "UPDATE learnt SET used = ? WHERE no = ? AND used >= 0";
    link.first(retire, (-1 - now, no)).await?;
    let tell = "UPDATE state SET names = names + 1 WHERE one = 1";
    link.first(tell, ()).await?;
    Ok(())
}

/// Returns the statement for the numbers of indexes that no server uses any more.
pub(super) fn due(now: i64) -> String {
    let old = now.saturating_sub(LINGER);
    format!("SELECT no FROM learnt WHERE used < 0 AND -1 - used < {old}")
}

/// Removes indexes that no server uses any more, and what is left of those that were not completed.
pub(super) async fn clear(link: &mut Connection, database: &str, now: i64) -> Result<(), Error> {
    let name = lock_name("indexes", database);
    if !begin(link, &name).await? {
        return Ok(());
    }
    let cleared = clear_alone(link, now).await;
    end(link, &name, cleared).await
}

async fn clear_alone(link: &mut Connection, now: i64) -> Result<(), Error> {
    for row in link.rows(&due(now), ()).await? {
        unless_busy(remove(link, number(&row, 0)).await)?;
    }
    Ok(())
}

async fn remove(link: &mut Connection, no: u64) -> Result<(), Error> {
    let index = "SELECT 1 FROM information_schema.statistics
        WHERE table_schema = DATABASE() AND table_name = 'object' AND index_name = ? LIMIT 1";
    let column = "SELECT 1 FROM information_schema.columns
        WHERE table_schema = DATABASE() AND table_name = 'object' AND column_name = ?";
    if link
        .first(index, (format!("object_x{no}"),))
        .await?
        .is_some()
    {
        let sql = format!("DROP INDEX object_x{no} ON object");
        link.run_within(&sql, LONGEST).await?;
    }
    if link.first(column, (format!("x{no}"),)).await?.is_some() {
        let sql = format!("ALTER TABLE object DROP COLUMN x{no}");
        link.run_within(&sql, LONGEST).await?;
    }
    link.first("DELETE FROM learnt WHERE no = ?", (no,)).await?;
    Ok(())
}
