//! The tables and the view of a store, and how they are created and upgraded.
//!
//! A statement that creates a table commits at once, so every step can be repeated. The row of `meta` is written last:
//! a store without it is not complete.

use mysql_async::Error;
use uuid::Uuid;

use super::link::Connection;
use super::rows::number;
use crate::error::SqlError;

/// The format that this program writes.
pub(super) const FORMAT: u64 = 1;
/// The format of a store that is being filled. Older programs refuse to open it.
pub(super) const INCOMPLETE: u64 = i32::MAX as u64;

/// The statements that create the tables.
///
/// `cluster`, `resource` and `key` are text, in columns of bytes: no character set, no collation. `cluster` is the
/// logical cluster, empty for the default one. `actor` says who wrote a record, as JSON. There are no indexes besides
/// the primary keys: lookups happen in memory.
///
/// `meta` contains the end of the log. All writers lock its row, and servers poll it to find new batches.
const TABLES: [&str; 5] = [
    "CREATE TABLE IF NOT EXISTS log (
        rev BIGINT UNSIGNED PRIMARY KEY,
        prev BIGINT UNSIGNED NOT NULL,
        cluster VARBINARY(330) NOT NULL,
        resource VARBINARY(330) NOT NULL,
        `key` VARBINARY(600) NOT NULL,
        actor MEDIUMBLOB,
        value MEDIUMBLOB
    ) ENGINE=InnoDB ROW_FORMAT=DYNAMIC",
    "CREATE TABLE IF NOT EXISTS batch (
        first BIGINT UNSIGNED PRIMARY KEY,
        last BIGINT UNSIGNED NOT NULL,
        id BINARY(16) NOT NULL,
        writer BINARY(16) NOT NULL,
        epoch BIGINT UNSIGNED NOT NULL,
        digest BINARY(16) NOT NULL,
        bytes BIGINT UNSIGNED NOT NULL,
        at DATETIME(6) NOT NULL
    ) ENGINE=InnoDB ROW_FORMAT=DYNAMIC",
    "CREATE TABLE IF NOT EXISTS meta (
        id TINYINT PRIMARY KEY,
        format INT NOT NULL,
        min_writer INT NOT NULL,
        cluster BINARY(16) NOT NULL,
        last BIGINT UNSIGNED NOT NULL,
        digest BINARY(16) NOT NULL,
        epoch BIGINT UNSIGNED NOT NULL,
        server VARBINARY(255) NOT NULL,
        floor BIGINT UNSIGNED NOT NULL,
        swept BIGINT UNSIGNED NOT NULL,
        identity MEDIUMBLOB
    ) ENGINE=InnoDB ROW_FORMAT=DYNAMIC",
    "CREATE TABLE IF NOT EXISTS replica (
        id BINARY(16) PRIMARY KEY,
        name VARBINARY(255),
        address VARBINARY(255),
        version VARBINARY(64),
        seen DATETIME(6) NOT NULL
    ) ENGINE=InnoDB ROW_FORMAT=DYNAMIC",
    // The stored objects. Encrypted values are shown as null. The list of replaced revisions is computed once per
    // query.
    "CREATE OR REPLACE VIEW live AS
        SELECT rev, CONVERT(resource USING utf8mb4) AS resource,
            IF(LOCATE('/', `key`) > 0, CONVERT(SUBSTRING_INDEX(`key`, '/', 1) USING utf8mb4), NULL) AS namespace,
            CONVERT(SUBSTRING_INDEX(`key`, '/', -1) USING utf8mb4) AS name,
            IF(LEFT(value, 1) = x'7B', CONVERT(value USING utf8mb4), NULL) AS object
        FROM log
        WHERE value IS NOT NULL AND value <> '' AND resource <> '' AND rev NOT IN (SELECT prev FROM log)",
];

/// Creates missing tables in `database`. A lock lets only one program do this at a time.
pub(super) async fn prepare(
    link: &mut Connection,
    database: &str,
    create: bool,
) -> Result<(), SqlError> {
    let name = format!("bareboat {database}");
    let name = &name[..name.len().min(60)];
    link.first("SELECT GET_LOCK(?, 20)", (name,)).await?;
    let prepared = prepare_alone(link, database, create).await;
    link.first("SELECT RELEASE_LOCK(?)", (name,)).await?;
    prepared
}

async fn prepare_alone(
    link: &mut Connection,
    database: &str,
    create: bool,
) -> Result<(), SqlError> {
    let state = "SELECT min_writer FROM meta WHERE id = 1";
    let found = match link.first(state, ()).await {
        Ok(found) => found,
        Err(Error::Server(error)) if error.code == NO_SUCH_TABLE => None,
        Err(error) => return Err(error.into()),
    };
    if let Some(row) = found {
        let needed = number(&row, 0);
        return match needed > FORMAT && needed != INCOMPLETE {
            true => Err(SqlError::Newer {
                found: i32::try_from(needed).unwrap_or(i32::MAX),
                known: FORMAT as i32,
            }),
            false => Ok(()),
        };
    }
    if !create {
        return Err(SqlError::Missing {
            place: format!("the database {database}"),
        });
    }
    for statement in TABLES {
        link.run(statement).await?;
    }
    // Revision 1 is the empty start: revision 0 is never assigned.
    let (batch, cluster) = (Uuid::new_v4().simple(), Uuid::new_v4().simple());
    let none = "00000000000000000000000000000000";
    let beginning = format!(
        "START TRANSACTION;
         INSERT IGNORE INTO batch (first, last, id, writer, epoch, digest, bytes, at)
            VALUES (1, 1, x'{batch}', x'{none}', 1, x'{none}', 0, UTC_TIMESTAMP(6));
         INSERT INTO meta (id, format, min_writer, cluster, last, digest, epoch, server, floor, swept)
            VALUES (1, {FORMAT}, {FORMAT}, x'{cluster}', 1, x'{none}', 1, x'{}', 1, 1);
         COMMIT",
        hex(link.server.name.as_bytes())
    );
    link.run(&beginning).await?;
    tracing::info!("created the tables of the store");
    Ok(())
}

const NO_SUCH_TABLE: u16 = 1146;

/// Returns `bytes` as the digits of a literal `x'…'`.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
