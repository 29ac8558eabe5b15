//! A file of format 1, as an older release wrote it.

use std::path::Path;

use rusqlite::Connection;

/// The tables of format 1.
const FORMAT_1: &str = "
    PRAGMA auto_vacuum = INCREMENTAL;
    PRAGMA journal_mode = WAL;
    CREATE TABLE resource (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
    CREATE TABLE log (
        rev INTEGER PRIMARY KEY,
        prev INTEGER NOT NULL,
        resource INTEGER NOT NULL,
        key TEXT NOT NULL,
        value BLOB
    ) STRICT;
    CREATE TABLE progress (name TEXT PRIMARY KEY, rev INTEGER NOT NULL) STRICT, WITHOUT ROWID;
    INSERT INTO progress VALUES ('floor', 3), ('swept', 3);
    CREATE VIEW history AS
        SELECT log.rev, log.prev, resource.name AS resource, log.key, CAST(log.value AS TEXT) AS object
        FROM log JOIN resource ON resource.id = log.resource;
    CREATE VIEW live AS
        SELECT * FROM history WHERE object IS NOT NULL AND rev NOT IN (SELECT prev FROM log);
    PRAGMA application_id = 0x42617265;
    PRAGMA user_version = 1;
";

pub(crate) fn object(name: &str, content: &str) -> bytes::Bytes {
    format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"}},"data":{{"p":"{content}"}}}}"#
    )
    .into()
}

/// Creates a file of format 1: `kept` survived a compaction, `changed` has history, `gone` was deleted.
pub(crate) fn old_file(path: &Path) {
    let old = Connection::open(path).unwrap();
    old.execute_batch(FORMAT_1).unwrap();
    old.execute("INSERT INTO resource VALUES (1, 'core/configmaps')", [])
        .unwrap();
    let rows = [
        (2, 0, "kept", Some("one")),
        (3, 0, "changed", Some("old")),
        (4, 3, "changed", Some("new")),
        (5, 0, "gone", Some("x")),
        (6, 5, "gone", None),
    ];
    for (rev, prev, key, content) in rows {
        let value = content.map(|content| object(key, content).to_vec());
        old.execute(
            "INSERT INTO log VALUES (?1, ?2, 1, ?3, ?4)",
            (rev, prev, key, value),
        )
        .unwrap();
    }
}
