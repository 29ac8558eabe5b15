//! The file format: tables, version, pragmas. `migrate` upgrades older formats.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::error::SqliteError;
use crate::{SqliteOptions, migrate, refill};

/// The format that this program writes.
pub(crate) const FORMAT: i64 = 2;
/// The format of a file that is being filled. Older programs refuse to open it.
pub(crate) const INCOMPLETE: i64 = 1_000_000 + FORMAT;
/// "Bare" in ASCII. It identifies files of this program in their header, also to the command `file`.
const APPLICATION: i64 = 0x4261_7265;

/// How long to wait for another program that reads the file.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The statements that create the tables.
///
/// `value` is the last column, so that reading the others never touches its overflow pages.
///
/// The last record of a batch has the columns of the batch: a separate table would cost every commit another page.
/// `size` is the number of records in the batch, and 0 in all rows but the last.
///
/// `resource.cluster` is the logical cluster, empty for the default one. `actor` says who wrote the record, as JSON.
/// `form` is the encoding of the value: 0 is plain, and no other encoding is written yet.
pub(crate) const TABLES: &str = "
    CREATE TABLE resource (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        cluster TEXT NOT NULL DEFAULT '',
        UNIQUE (name, cluster)
    ) STRICT;
    CREATE TABLE log (
        rev INTEGER PRIMARY KEY,
        prev INTEGER NOT NULL,
        resource INTEGER NOT NULL,
        key TEXT NOT NULL,
        sum INTEGER NOT NULL,
        size INTEGER NOT NULL DEFAULT 0,
        at INTEGER,
        bytes INTEGER,
        batch_sum INTEGER,
        epoch INTEGER,
        id BLOB,
        writer BLOB,
        digest BLOB,
        actor TEXT,
        form INTEGER NOT NULL DEFAULT 0,
        value BLOB
    ) STRICT;
    CREATE TABLE progress (name TEXT PRIMARY KEY, rev INTEGER NOT NULL) STRICT, WITHOUT ROWID;
";

/// The statements that create the views, for people. The stored objects are in `live`, and with their earlier states in
/// `history`. Encrypted values are shown as null. The records of epochs, which have no resource, are in `history` only.
pub(crate) const VIEWS: &str = "
    CREATE VIEW batch AS
        SELECT rev - size + 1 AS first, rev AS last, at, bytes, batch_sum AS sum, epoch, id, writer, digest
        FROM log WHERE size > 0;
    CREATE VIEW history AS
        SELECT log.rev, resource.name AS resource,
            CASE WHEN instr(log.key, '/') > 0 THEN substr(log.key, 1, instr(log.key, '/') - 1) END AS namespace,
            substr(log.key, instr(log.key, '/') + 1) AS name,
            CASE WHEN substr(log.value, 1, 1) = x'7B' THEN CAST(log.value AS TEXT) END AS object,
            log.prev, log.key,
            (SELECT datetime(newer.at / 1000.0, 'unixepoch', 'subsec') FROM log AS newer
             WHERE newer.rev >= log.rev AND newer.size > newer.rev - log.rev ORDER BY newer.rev LIMIT 1) AS written
        FROM log JOIN resource ON resource.id = log.resource;
    CREATE VIEW live AS
        SELECT history.* FROM history JOIN log ON log.rev = history.rev
        WHERE log.value IS NOT NULL AND history.resource <> '' AND history.rev NOT IN (SELECT prev FROM log);
";

/// Inserts revision 1, the empty start: revision 0 is never assigned.
const BEGINNING: &str = "INSERT INTO progress VALUES ('floor', 1), ('swept', 1)";

/// Opens the file for writing and returns its floor.
pub(crate) fn open(path: &Path, options: &SqliteOptions) -> Result<(Connection, u64), SqliteError> {
    let at = |error| SqliteError::at(path, error);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(at)?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(at)?;
    let format = pragma(&connection, "user_version").map_err(at)?;
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(at)?;
    match format == 0 && tables == 0 {
        true => create(&mut connection).map_err(at)?,
        false => check_format(&connection, path, format)?,
    }
    tune(&connection, options).map_err(at)?;
    if (1..FORMAT).contains(&format) {
        migrate::to_current(&mut connection, path, format)?;
    }
    renew_views(&mut connection).map_err(at)?;
    if format == INCOMPLETE {
        refill::clear(&connection).map_err(at)?;
    }
    let floor = floor(&connection).map_err(at)?;
    Ok((connection, floor))
}

/// Replaces the views of older programs.
fn renew_views(connection: &mut Connection) -> rusqlite::Result<()> {
    let current = "SELECT count(*) FROM sqlite_schema
        WHERE type = 'view' AND name = 'live' AND instr(sql, 'history.resource <>') > 0";
    if connection.query_row(current, [], |row| row.get::<_, i64>(0))? > 0 {
        return Ok(());
    }
    let transaction = connection.transaction()?;
    transaction.execute_batch(
        "DROP VIEW IF EXISTS live; DROP VIEW IF EXISTS history; DROP VIEW IF EXISTS batch",
    )?;
    transaction.execute_batch(VIEWS)?;
    transaction.commit()
}

/// Reads the floor.
pub(crate) fn floor(connection: &Connection) -> rusqlite::Result<u64> {
    let floor = "SELECT rev FROM progress WHERE name = 'floor'";
    let floor: i64 = connection.query_row(floor, [], |row| row.get(0))?;
    Ok(floor as u64)
}

/// Fails if the file is a database of another program, or has a newer format.
fn check_format(connection: &Connection, path: &Path, format: i64) -> Result<(), SqliteError> {
    let application = pragma(connection, "application_id");
    let application = application.map_err(|error| SqliteError::at(path, error))?;
    if application != APPLICATION {
        return Err(SqliteError::Foreign { path: path.into() });
    }
    if format > FORMAT && format != INCOMPLETE {
        return Err(SqliteError::Newer {
            path: path.into(),
            found: format,
            known: FORMAT,
        });
    }
    Ok(())
}

/// Fails unless the file can be read without an upgrade.
pub(crate) fn check(connection: &Connection, path: &Path) -> Result<(), SqliteError> {
    let format = pragma(connection, "user_version");
    let format = format.map_err(|error| SqliteError::at(path, error))?;
    check_format(connection, path, format)?;
    if format < FORMAT {
        return Err(SqliteError::Older {
            path: path.into(),
            found: format,
        });
    }
    Ok(())
}

fn create(connection: &mut Connection) -> rusqlite::Result<()> {
    // This pragma only works for an empty file.
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    let transaction = connection.transaction()?;
    transaction.execute_batch(TABLES)?;
    transaction.execute_batch(BEGINNING)?;
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", FORMAT)?;
    transaction.commit()
}

fn tune(connection: &Connection, options: &SqliteOptions) -> rusqlite::Result<()> {
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "cache_size", -i64::from(options.cache_kib))?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    if let Some(bytes) = options.max_bytes {
        let page = pragma(connection, "page_size")?.max(1);
        connection.pragma_update(None, "max_page_count", bytes as i64 / page)?;
    }
    connection.set_prepared_statement_cache_capacity(16);
    Ok(())
}

/// Opens a connection that reads while the writer works.
pub(crate) fn open_reader(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.pragma_update(None, "cache_size", -512)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    Ok(connection)
}

/// Opens a connection that copies the write-ahead log while the writer works.
pub(crate) fn open_writer_beside(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.pragma_update(None, "cache_size", -64)?;
    Ok(connection)
}

pub(crate) fn pragma(connection: &Connection, name: &str) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, name, |row| row.get(0))
}

/// Returns the path of the database with `suffix`: a file beside the database.
pub(crate) fn beside(database: &Path, suffix: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
