//! The tables of the shelf.

use crate::shelf::ShelfError;
use rusqlite::Connection;
use std::time::Duration;

/// The format of the file.
const FORMAT: i64 = 1;

/// Labels are in the index of the usual order, so that a search by labels that have no index reads it alone.
const TABLES: &str = "
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE member (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, uid TEXT NOT NULL, present INTEGER NOT NULL);
CREATE TABLE kind (id INTEGER PRIMARY KEY, grp TEXT NOT NULL, resource TEXT NOT NULL, kind TEXT NOT NULL,
    namespaced INTEGER NOT NULL, UNIQUE (grp, resource));
CREATE TABLE declared (kind INTEGER NOT NULL, path TEXT NOT NULL, PRIMARY KEY (kind, path)) WITHOUT ROWID;
CREATE TABLE progress (member INTEGER NOT NULL, kind INTEGER NOT NULL, version TEXT NOT NULL, rv TEXT NOT NULL,
    PRIMARY KEY (member, kind)) WITHOUT ROWID;
CREATE TABLE object (id INTEGER PRIMARY KEY, member INTEGER NOT NULL, kind INTEGER NOT NULL, version TEXT NOT NULL,
    ns TEXT NOT NULL, name TEXT NOT NULL, uid TEXT NOT NULL, owner TEXT NOT NULL, created INTEGER NOT NULL, deleting INTEGER,
    synced INTEGER NOT NULL, rv TEXT NOT NULL, born INTEGER NOT NULL, rev INTEGER NOT NULL, gone INTEGER,
    labels TEXT NOT NULL, fields TEXT NOT NULL);
CREATE TABLE body (id INTEGER PRIMARY KEY, json BLOB NOT NULL, splice INTEGER NOT NULL);
CREATE TABLE learnt (no INTEGER PRIMARY KEY, sort TEXT NOT NULL, key TEXT NOT NULL, used INTEGER NOT NULL, UNIQUE (sort, key));
CREATE UNIQUE INDEX object_place ON object (member, kind, ns, name) WHERE gone IS NULL;
CREATE INDEX object_key ON object (kind, ns, name, member, labels) WHERE gone IS NULL;
CREATE INDEX object_rev ON object (kind, rev);
CREATE INDEX object_owner ON object (owner) WHERE gone IS NULL AND owner <> '';
CREATE INDEX object_uid ON object (uid) WHERE gone IS NULL;
CREATE INDEX object_created ON object (kind, created) WHERE gone IS NULL;
CREATE INDEX object_gone ON object (gone) WHERE gone IS NOT NULL;
";

/// Prepares the connection that writes; creates the tables of a new file.
pub(super) fn prepare(connection: &mut Connection, cache_kib: usize) -> Result<(), ShelfError> {
    connection.execute_batch("PRAGMA page_size = 8192")?;
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    connection.execute_batch("PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 2000")?;
    tune(connection, cache_kib)?;
    let found: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    match found {
        FORMAT => Ok(()),
        0 => {
            let transaction = connection.transaction()?;
            transaction.execute_batch(TABLES)?;
            transaction.execute_batch(&format!("PRAGMA user_version = {FORMAT}"))?;
            Ok(transaction.commit()?)
        }
        other => Err(ShelfError::Format(other)),
    }
}

/// Sets what all connections share.
pub(super) fn tune(connection: &Connection, cache_kib: usize) -> Result<(), ShelfError> {
    connection.busy_timeout(Duration::from_secs(10))?;
    connection.execute_batch(&format!("PRAGMA cache_size = -{cache_kib}"))?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(())
}
