//! The tables of the shelf.
//!
//! A statement that creates a table commits at once, so every step can be repeated. The row of `state` is written last.

use crate::error::SqlError;
use crate::mysql::link::Connection;
use crate::mysql::rows::{number, text};
use mysql_async::Error;
use uuid::Uuid;

/// The format of the tables.
const FORMAT: u64 = 1;
const NO_SUCH_TABLE: u16 = 1146;

/// The statements that create the tables.
///
/// Texts are in columns of bytes, which are compared as SQLite does; only labels and fields have a character set, because functions
/// of JSON need one. `live` is NULL for rows that are gone, so that a unique index is about the others alone.
const TABLES: [&str; 10] = [
    "CREATE TABLE IF NOT EXISTS state (
        one TINYINT PRIMARY KEY,
        format INT NOT NULL,
        last BIGINT NOT NULL,
        floor BIGINT NOT NULL,
        names BIGINT NOT NULL,
        server VARBINARY(255) NOT NULL,
        salt VARBINARY(64) NOT NULL
    ) ENGINE=InnoDB ROW_FORMAT=DYNAMIC",
    "CREATE TABLE IF NOT EXISTS hub (
        id VARBINARY(64) PRIMARY KEY,
        seen DATETIME(6) NOT NULL
    ) ENGINE=InnoDB ROW_FORMAT=DYNAMIC",
    // One row, which servers lock while they share out members.
    "CREATE TABLE IF NOT EXISTS turn (
        one TINYINT PRIMARY KEY
    ) ENGINE=InnoDB ROW_FORMAT=DYNAMIC",
    "CREATE TABLE IF NOT EXISTS member (
        id BIGINT PRIMARY KEY AUTO_INCREMENT,
        name VARBINARY(255) NOT NULL UNIQUE,
        uid VARBINARY(255) NOT NULL,
        present BIGINT NOT NULL,
        holder VARBINARY(64) NOT NULL DEFAULT '',
        term BIGINT NOT NULL DEFAULT 0,
        note MEDIUMBLOB,
        objects BIGINT NOT NULL DEFAULT 0,
        bytes BIGINT NOT NULL DEFAULT 0
    ) ENGINE=InnoDB ROW_FORMAT=DYNAMIC",
    "CREATE TABLE IF NOT EXISTS kind (
        id BIGINT PRIMARY KEY AUTO_INCREMENT,
        grp VARBINARY(255) NOT NULL,
        resource VARBINARY(255) NOT NULL,
        kind VARBINARY(255) NOT NULL,
        namespaced BIGINT NOT NULL,
        UNIQUE KEY kind_resource (grp, resource)
    ) ENGINE=InnoDB ROW_FORMAT=DYNAMIC",
    "CREATE TABLE IF NOT EXISTS declared (
        kind BIGINT NOT NULL,
        path VARBINARY(2000) NOT NULL,
        PRIMARY KEY (kind, path)
    ) ENGINE=InnoDB ROW_FORMAT=DYNAMIC",
    "CREATE TABLE IF NOT EXISTS progress (
        member BIGINT NOT NULL,
        kind BIGINT NOT NULL,
        version VARBINARY(255) NOT NULL,
        rv VARBINARY(2000) NOT NULL,
        PRIMARY KEY (member, kind)
    ) ENGINE=InnoDB ROW_FORMAT=DYNAMIC",
    "CREATE TABLE IF NOT EXISTS learnt (
        no BIGINT PRIMARY KEY AUTO_INCREMENT,
        sort VARBINARY(8) NOT NULL,
        `key` VARBINARY(2000) NOT NULL,
        used BIGINT NOT NULL,
        UNIQUE KEY learnt_key (sort, `key`)
    ) ENGINE=InnoDB ROW_FORMAT=DYNAMIC",
    "CREATE TABLE IF NOT EXISTS object (
        id BIGINT PRIMARY KEY,
        member BIGINT NOT NULL,
        kind BIGINT NOT NULL,
        version VARBINARY(128) NOT NULL,
        ns VARBINARY(64) NOT NULL,
        name VARBINARY(253) NOT NULL,
        uid VARBINARY(128) NOT NULL,
        owner VARBINARY(128) NOT NULL,
        created BIGINT NOT NULL,
        deleting BIGINT,
        synced BIGINT NOT NULL,
        rv VARBINARY(2000) NOT NULL,
        born BIGINT NOT NULL,
        rev BIGINT NOT NULL,
        gone BIGINT,
        labels MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
        fields MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
        live TINYINT GENERATED ALWAYS AS (IF(gone IS NULL, 1, NULL)) VIRTUAL,
        UNIQUE KEY object_place (member, kind, ns, name, live),
        KEY object_key (kind, gone, ns, name, member),
        KEY object_rev (kind, rev),
        KEY object_owner (owner),
        KEY object_uid (uid),
        KEY object_created (kind, gone, created),
        KEY object_gone (gone)
    ) ENGINE=InnoDB ROW_FORMAT=DYNAMIC",
    "CREATE TABLE IF NOT EXISTS body (
        id BIGINT PRIMARY KEY,
        json MEDIUMBLOB NOT NULL,
        splice BIGINT NOT NULL
    ) ENGINE=InnoDB ROW_FORMAT=DYNAMIC",
];

/// Returns the name of a lock that only one session has at a time.
pub(super) fn lock_name(purpose: &str, database: &str) -> String {
    let name = format!("bareboat {purpose} {database}");
    name.chars().take(60).collect()
}

/// Creates missing tables. A lock lets only one program do this at a time.
pub(super) async fn prepare(link: &mut Connection, database: &str) -> Result<(), SqlError> {
    let name = lock_name("shelf", database);
    let locked = link.first("SELECT GET_LOCK(?, 20)", (&name,)).await?;
    if locked.is_none_or(|row| number(&row, 0) != 1) {
        return Err(SqlError::Unsafe(
            "another program has been creating the tables of the shelf for 20 seconds".into(),
        ));
    }
    let prepared = prepare_alone(link).await;
    link.first("SELECT RELEASE_LOCK(?)", (&name,)).await?;
    prepared
}

async fn prepare_alone(link: &mut Connection) -> Result<(), SqlError> {
    let found = match link.first("SELECT format FROM state", ()).await {
        Ok(found) => found,
        Err(Error::Server(error)) if error.code == NO_SUCH_TABLE => None,
        Err(error) => return Err(error.into()),
    };
    if let Some(row) = found {
        let found = number(&row, 0);
        return match found > FORMAT {
            true => Err(SqlError::Newer {
                found: i32::try_from(found).unwrap_or(i32::MAX),
                known: FORMAT as i32,
            }),
            false => Ok(()),
        };
    }
    for statement in TABLES {
        link.run(statement).await?;
    }
    link.run("INSERT IGNORE INTO turn (one) VALUES (1)").await?;
    let salt = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
    // Version 0 means "any" to clients.
    let state = "INSERT INTO state (one, format, last, floor, names, server, salt)
        VALUES (1, ?, 1, 0, 0, '', ?)";
    link.first(state, (FORMAT, salt)).await?;
    tracing::info!("created the tables of the shelf");
    Ok(())
}

/// Notes which server this is. A standby that was promoted may lack the last versions, so counting goes on far above them, and
/// watches from before are expired.
pub(super) async fn note_server(link: &mut Connection) -> Result<(), SqlError> {
    let row = link.first("SELECT server FROM state", ()).await?;
    let row = row.ok_or_else(|| SqlError::Unsafe("the table state is empty".into()))?;
    let (known, now) = (text(&row, 0), link.server.name.clone());
    if known == now {
        return Ok(());
    }
    if known.is_empty() {
        let first = "UPDATE state SET server = ? WHERE server = ?";
        link.first(first, (now, &known)).await?;
        return Ok(());
    }
    link.run("START TRANSACTION").await?;
    let jumped = jump(link, &now, &known).await;
    match jumped {
        Ok(_) => link.run("COMMIT").await?,
        Err(_) => link.run("ROLLBACK").await?,
    };
    if jumped? {
        tracing::warn!(
            "another server is the primary: the fleet is synced anew, and its watches begin anew"
        );
    }
    Ok(())
}

/// Goes on far above all versions that the old primary gave. What a standby lacks of the rows is not known, so all types are listed
/// again: no progress is kept, and no server holds a member.
async fn jump(link: &mut Connection, now: &str, known: &str) -> Result<bool, SqlError> {
    // Assignments are made from left to right.
    let state = "UPDATE state SET server = ?, last = last + 1048576, floor = last, names = names + 1048576 WHERE server = ?";
    link.first(state, (now, known)).await?;
    if link.changed() == 0 {
        return Ok(false);
    }
    link.run("UPDATE progress SET rv = ''").await?;
    link.run("UPDATE member SET holder = '', term = term + 1")
        .await?;
    Ok(true)
}
