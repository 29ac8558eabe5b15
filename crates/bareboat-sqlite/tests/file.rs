//! Tests of the SQLite file: its lock, limits and checkpoints.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;

use bareboat_sqlite::{Sqlite, SqliteError, SqliteOptions};
use bareboat_storage::{CommitError, Expect, Store, StoreOptions, Write};

fn object(name: &str, size: usize) -> bytes::Bytes {
    let padding = "x".repeat(size);
    format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"}},"data":{{"p":"{padding}"}}}}"#
    )
    .into()
}

fn open(path: &Path, options: SqliteOptions) -> Store {
    let backend = Sqlite::open_with(path, options).unwrap();
    Store::open(Arc::new(backend), StoreOptions::default()).unwrap()
}

async fn put(store: &Store, key: &str, size: usize) -> Result<u64, CommitError> {
    let resource = store.resource("core/configmaps");
    let write = Write::create(&resource, key, object(key, size)).expecting(Expect::Any);
    store.commit(write).await.map(|done| done.revision)
}

fn wal_len(path: &Path) -> u64 {
    std::fs::metadata(path.with_extension("db-wal")).map_or(0, |data| data.len())
}

#[test]
fn a_second_server_is_refused_until_the_first_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let first = Sqlite::open(&path).unwrap();
    let second = Sqlite::open(&path).err().unwrap();
    assert!(matches!(second, SqliteError::InUse { .. }));
    assert!(
        second
            .to_string()
            .ends_with("state.db is in use by another server")
    );
    drop(first);
    Sqlite::open(&path).unwrap();
}

#[test]
fn foreign_files_and_newer_formats_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    drop(Sqlite::open(&path).unwrap());
    let edit = rusqlite::Connection::open(&path).unwrap();
    edit.pragma_update(None, "user_version", 99).unwrap();
    drop(edit);
    let newer = Sqlite::open(&path).err().unwrap();
    assert!(matches!(newer, SqliteError::Newer { found: 99, .. }));

    let foreign = folder.path().join("foreign.db");
    let edit = rusqlite::Connection::open(&foreign).unwrap();
    edit.execute_batch("CREATE TABLE t (x)").unwrap();
    drop(edit);
    let refused = Sqlite::open(&foreign).err().unwrap();
    assert!(matches!(refused, SqliteError::Foreign { .. }));

    let text = folder.path().join("notes.txt");
    std::fs::write(&text, "not a database, just a note. ".repeat(100)).unwrap();
    let refused = Sqlite::open(&text).err().unwrap();
    assert!(
        matches!(refused, SqliteError::Damaged { .. }),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_full_disk_fails_writes_but_not_reads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let options = SqliteOptions {
        max_bytes: Some(256 << 10),
        ..SqliteOptions::default()
    };
    let store = open(&path, options);
    let mut last = 0;
    let full = loop {
        match put(&store, &format!("o{last}"), 8000).await {
            Ok(revision) => last = revision,
            Err(error) => break error,
        }
    };
    assert!(matches!(full, CommitError::Full), "{full:?}");
    assert!(store.poison().is_none());
    assert_eq!(store.visible(), last);
    let resource = store.resource("core/configmaps");
    let before = resource.len();
    assert!(before > 5);
    // Deletions free space after compaction. Compaction itself needs some space, which was left below the limit.
    let found = resource.get("o0").unwrap();
    store
        .commit(Write::delete(&resource, &found))
        .await
        .unwrap();
    store.compact(store.visible()).await.unwrap();
    put(&store, "small", 8000).await.unwrap();
    store.close().await;
    let store = open(&path, SqliteOptions::default());
    assert_eq!(store.resource("core/configmaps").len(), before);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_write_ahead_log_stays_bounded_and_is_removed_on_close() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let options = SqliteOptions {
        checkpoint_bytes: 256 << 10,
        checkpoint_limit_bytes: 2 << 20,
        ..SqliteOptions::default()
    };
    let store = open(&path, options);
    let mut longest = 0;
    for round in 0..40 {
        let puts: Vec<_> = (0..50)
            .map(|n| {
                let store = store.clone();
                tokio::spawn(async move { put(&store, &format!("o{round}-{n}"), 4000).await })
            })
            .collect();
        for put in puts {
            put.await.unwrap().unwrap();
        }
        longest = longest.max(wal_len(&path));
    }
    assert!(longest > 0);
    assert!(longest < 4 << 20, "{longest}");
    store.close().await;
    assert_eq!(wal_len(&path), 0);
}

#[tokio::test]
async fn space_is_released_after_compaction() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let store = open(&path, SqliteOptions::default());
    for _ in 0..1000 {
        put(&store, "x", 8000).await.unwrap();
    }
    store.compact(store.visible()).await.unwrap();
    store.close().await;
    let size = std::fs::metadata(&path).unwrap().len();
    assert!(size < 2 << 20, "{size}");
}

#[tokio::test]
async fn the_file_can_be_read_with_plain_sql() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let store = open(&path, SqliteOptions::default());
    put(&store, "x", 1).await.unwrap();
    put(&store, "x", 2).await.unwrap();
    let look = rusqlite::Connection::open(&path).unwrap();
    let live = "SELECT resource, name, object ->> '$.data.p', namespace IS NULL FROM live";
    let row: (String, String, String, bool) = look
        .query_row(live, [], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        })
        .unwrap();
    assert_eq!(
        row,
        ("core/configmaps".into(), "x".into(), "xx".into(), true)
    );
    let columns =
        "SELECT group_concat(name) FROM (SELECT name FROM pragma_table_info('live') LIMIT 5)";
    let columns: String = look.query_row(columns, [], |row| row.get(0)).unwrap();
    assert_eq!(columns, "rev,resource,namespace,name,object");
    // An encrypted value and a namespaced key, as another program would see them.
    look.execute_batch(
        "CREATE TEMP TABLE kept AS SELECT * FROM log WHERE rev = (SELECT max(rev) FROM log);
         UPDATE kept SET rev = rev + 1, prev = 0, key = 'ns/secret', value = x'6B38733AFF';
         CREATE TEMP VIEW log AS SELECT * FROM main.log UNION ALL SELECT * FROM kept;",
    )
    .unwrap();
    let views =
        "SELECT sql FROM main.sqlite_schema WHERE name IN ('history', 'live') ORDER BY name";
    let views: Vec<String> = look
        .prepare(views)
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(|sql| sql.unwrap())
        .collect();
    for view in views {
        let view = view.replacen("CREATE VIEW ", "CREATE TEMP VIEW ", 1);
        look.execute_batch(&view).unwrap();
    }
    let encrypted = "SELECT namespace || ' ' || name || ' ' || (object IS NULL) FROM temp.live WHERE key LIKE 'ns/%'";
    let encrypted: String = look.query_row(encrypted, [], |row| row.get(0)).unwrap();
    assert_eq!(encrypted, "ns secret 1");
    drop(look);
    store.close().await;
}

#[tokio::test]
async fn ten_thousand_objects_are_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let store = open(&path, SqliteOptions::default());
    let resource = store.resource("core/configmaps");
    for chunk in 0..10 {
        let writes = (0..1000).map(|n| {
            let key = format!("ns{}/object-{chunk}-{n}", n % 10);
            let value = object(&key[4..], 1024);
            Write::create(&resource, key, value)
        });
        store.commit_many(writes.collect()).await.unwrap();
    }
    store.close().await;
    let start = std::time::Instant::now();
    let store = open(&path, SqliteOptions::default());
    let took = start.elapsed();
    assert_eq!(store.resource("core/configmaps").len(), 10_000);
    println!("loaded 10,000 objects in {took:?}");
    store.close().await;
}
