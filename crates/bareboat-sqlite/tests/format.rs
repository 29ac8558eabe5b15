//! Tests of the file format: an older format is upgraded, a newer format is refused, and damage is detected.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;

use bareboat_sqlite::{Sqlite, SqliteError, SqliteOptions};
use bareboat_storage::{
    Backend, Batch, CommitError, Digest, Expect, Mark, Record, Store, StoreOptions, Value,
    WatchSpec, Write,
};
use rusqlite::Connection;

#[path = "shared/old_file.rs"]
mod old_file;

use old_file::{object, old_file};

fn open(path: &Path) -> Store {
    let backend = Sqlite::open(path).unwrap();
    Store::open(Arc::new(backend), StoreOptions::default()).unwrap()
}

async fn put(store: &Store, key: &str, content: &str) -> Result<u64, CommitError> {
    let resource = store.resource("core/configmaps");
    let write = Write::create(&resource, key, object(key, content)).expecting(Expect::Any);
    store.commit(write).await.map(|done| done.revision)
}

fn content(store: &Store, key: &str) -> String {
    let entry = store.resource("core/configmaps").get(key).unwrap();
    String::from_utf8(entry.json().to_vec()).unwrap()
}

#[tokio::test]
async fn a_file_of_format_1_is_upgraded_and_a_copy_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    old_file(&path);
    let store = open(&path);
    assert_eq!((store.visible(), store.floor()), (6, 3));
    assert_eq!(store.resource("core/configmaps").len(), 2);
    assert!(content(&store, "kept").contains(r#""p":"one""#));
    assert!(content(&store, "changed").contains(r#""p":"new""#));
    // History is also present: a watch resumes.
    let resource = store.resource("core/configmaps");
    let mut watcher = resource.watch(WatchSpec::all(3)).unwrap();
    let events = watcher.next_batch(10).await.unwrap();
    assert_eq!(events.iter().map(|e| e.rev).collect::<Vec<_>>(), [4, 5, 6]);
    assert_eq!(put(&store, "kept", "two").await.unwrap(), 7);
    store.close().await;
    let store = open(&path);
    assert_eq!(store.visible(), 7);
    assert!(content(&store, "kept").contains(r#""p":"two""#));
    store.close().await;

    let copy = Connection::open(folder.path().join("state.db.format-1")).unwrap();
    let rows: i64 = copy
        .query_row("SELECT count(*) FROM log", [], |row| row.get(0))
        .unwrap();
    let format: i64 = copy
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .unwrap();
    assert_eq!((rows, format), (5, 1));
}

#[test]
fn without_a_copy_an_old_file_stays_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    old_file(&path);
    // A directory at the path of the copy: the copy cannot be created.
    std::fs::create_dir_all(folder.path().join("state.db.format-1/x")).unwrap();
    let refused = Sqlite::open(&path).err().unwrap();
    assert!(matches!(refused, SqliteError::Copy { .. }), "{refused:?}");
    let found = Connection::open(&path).unwrap();
    let format: i64 = found
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .unwrap();
    assert_eq!(format, 1);
}

#[test]
fn a_newer_format_is_refused_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    drop(Sqlite::open(&path).unwrap());
    Connection::open(&path)
        .unwrap()
        .pragma_update(None, "user_version", 3)
        .unwrap();
    let refused = Sqlite::open(&path).err().unwrap().to_string();
    assert!(
        refused.contains("has format 3, this program knows formats up to 2"),
        "{refused}"
    );
}

#[tokio::test]
async fn a_batch_has_a_time_a_checksum_and_a_digest() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let store = open(&path);
    let resource = store.resource("core/configmaps");
    let writes = ["a", "b", "c"].map(|key| Write::create(&resource, key, object(key, "x")));
    store.commit_many(writes.to_vec()).await.unwrap();
    put(&store, "d", "x").await.unwrap();
    store.close().await;
    let file = Connection::open(&path).unwrap();
    let mut batches = file
        .prepare("SELECT first, last, at / 1000 - unixepoch(), bytes > 0, sum <> 0 FROM batch")
        .unwrap();
    let batches: Vec<(i64, i64, i64, bool, bool)> = batches
        .query_map([], |row| {
            Ok((
                row.get(0)?,
                row.get(1)?,
                row.get(2)?,
                row.get(3)?,
                row.get(4)?,
            ))
        })
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    assert_eq!(batches.len(), 2);
    assert_eq!((batches[0].0, batches[0].1), (2, 4));
    assert_eq!((batches[1].0, batches[1].1), (5, 5));
    for batch in batches {
        assert!(batch.2.abs() < 600 && batch.3 && batch.4, "{batch:?}");
    }
    let distinct = "SELECT count(DISTINCT id), count(DISTINCT writer), count(DISTINCT digest), max(length(digest)), max(epoch) FROM batch";
    let distinct: [i64; 5] = file
        .query_row(distinct, [], |row| {
            Ok([
                row.get(0)?,
                row.get(1)?,
                row.get(2)?,
                row.get(3)?,
                row.get(4)?,
            ])
        })
        .unwrap();
    assert_eq!(distinct, [2, 1, 2, 16, 0]);
}

/// Returns the end of the log as it is stored in the file.
fn end(path: &Path) -> Mark {
    Sqlite::open(path).unwrap().mark().unwrap()
}

#[tokio::test]
async fn the_digest_outlives_restarts_compactions_and_restores() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let store = open(&path);
    put(&store, "a", "one").await.unwrap();
    store.close().await;
    let first = end(&path);
    assert_ne!(first.digest, Digest::default());
    assert_eq!(end(&path), first);
    // A deletion at the end of the log is compacted, and the digest is kept.
    let store = open(&path);
    let resource = store.resource("core/configmaps");
    let found = resource.get("a").unwrap();
    store
        .commit(Write::delete(&resource, &found))
        .await
        .unwrap();
    store.compact(store.visible()).await.unwrap();
    store.close().await;
    let second = end(&path);
    assert_eq!(second.last, first.last + 1);
    assert!(second.digest != first.digest && second.digest != Digest::default());
    let file = Connection::open(&path).unwrap();
    let rows: i64 = file
        .query_row("SELECT count(*) FROM log", [], |row| row.get(0))
        .unwrap();
    assert_eq!(rows, 0);
    drop(file);
    let restored = bareboat_sqlite::raise(&path, 0).unwrap();
    let third = end(&path);
    assert_eq!((third.last, third.epoch), (restored.raised, 1));
    let store = open(&path);
    put(&store, "b", "x").await.unwrap();
    store.close().await;
    let fourth = end(&path);
    assert_eq!((fourth.last, fourth.epoch), (restored.raised + 1, 1));
    assert_ne!(fourth.digest, third.digest);
}

#[tokio::test]
async fn rewritten_values_have_the_digest_of_what_is_stored() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let store = open(&path);
    for key in ["a", "b", "c"] {
        put(&store, key, "plain").await.unwrap();
    }
    store.close().await;
    let before = end(&path);
    let rewritten = bareboat_sqlite::rewrite(&path, &mut |record| {
        Ok((&*record.key == "b").then(|| Value::new(object("b", "other"))))
    });
    assert_eq!(rewritten.unwrap().rewritten, 1);
    let after = end(&path);
    assert_eq!(after.last, before.last);
    assert_ne!(after.digest, before.digest);
    // The digest computed over the stored records equals the stored digest.
    let backend = Sqlite::open(&path).unwrap();
    let mut mark = Mark {
        last: 1,
        ..Mark::default()
    };
    backend
        .load(1, &mut |record| {
            let batch = Batch {
                id: 0,
                writer: 0,
                records: vec![record],
            };
            mark = batch.end(&mark);
        })
        .unwrap();
    assert_eq!(mark, after);
}

/// Creates three objects, then changes the file with `statement` while no store has it open.
async fn tampered(statement: &str) -> (tempfile::TempDir, Result<Sqlite, SqliteError>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let store = open(&path);
    for (key, value) in [("a", "one"), ("b", "two"), ("a", "three")] {
        put(&store, key, value).await.unwrap();
    }
    store.close().await;
    let file = Connection::open(&path).unwrap();
    assert!(file.execute(statement, []).unwrap() > 0);
    drop(file);
    let opened = Sqlite::open(&path);
    (folder, opened)
}

#[tokio::test]
async fn a_damaged_value_is_reported_and_can_be_deleted() {
    let flip = "UPDATE log SET value = CAST(replace(CAST(value AS TEXT), 'two', 'tw~') AS BLOB) WHERE rev = 3";
    let (_folder, backend) = tampered(flip).await;
    let store = Store::open(Arc::new(backend.unwrap()), StoreOptions::default()).unwrap();
    assert!(store.has_damaged());
    let resource = store.resource("core/configmaps");
    assert!(!resource.get("a").unwrap().is_damaged());
    let damaged = resource.get("b").unwrap();
    assert!(damaged.is_damaged());
    assert!(!String::from_utf8_lossy(damaged.json()).contains("tw~"));
    store
        .commit(Write::delete(&resource, &damaged))
        .await
        .unwrap();
    assert!(resource.get("b").is_none());
    store.close().await;
}

#[tokio::test]
async fn damaged_history_is_not_shown() {
    let flip = "UPDATE log SET value = CAST(replace(CAST(value AS TEXT), 'one', 'on~') AS BLOB) WHERE rev = 2";
    let (_folder, backend) = tampered(flip).await;
    let forgetful = StoreOptions {
        ring_preload: 0,
        ring_bytes: 1,
        ring_floor_bytes: 0,
        ..StoreOptions::default()
    };
    let store = Store::open(Arc::new(backend.unwrap()), forgetful).unwrap();
    let resource = store.resource("core/configmaps");
    // The record that replaced the damaged one is intact.
    assert!(content(&store, "a").contains("three"));
    let old = resource.snapshot_at(2).await.unwrap();
    assert!(old.get("a").unwrap().is_damaged());
    store.close().await;
}

#[tokio::test]
async fn a_record_whose_name_is_damaged_is_refused() {
    let (_folder, backend) = tampered("UPDATE log SET key = 'z' WHERE rev = 3").await;
    let opened = Store::open(Arc::new(backend.unwrap()), StoreOptions::default());
    let error = opened.err().unwrap();
    let mut text = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    assert!(text.contains("revision 3 is damaged"), "{text}");
    assert!(text.contains("from a backup"), "{text}");
}

#[tokio::test]
async fn a_lost_record_is_refused_and_a_damaged_batch_drops_its_history() {
    let (_folder, backend) = tampered("DELETE FROM log WHERE rev = 3").await;
    let refused = backend.err().unwrap();
    assert!(
        matches!(
            refused,
            SqliteError::Gap {
                first: 3,
                last: 3,
                ..
            }
        ),
        "{refused:?}"
    );
    let (_folder, backend) = tampered("UPDATE log SET at = at + 1 WHERE rev = 3").await;
    let store = Store::open(Arc::new(backend.unwrap()), StoreOptions::default()).unwrap();
    assert_eq!((store.floor(), store.visible()), (3, 4));
    assert!(!store.has_damaged());
    store.close().await;
}

#[tokio::test]
async fn a_restored_file_continues_above_all_seen_revisions() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let store = open(&path);
    put(&store, "a", "one").await.unwrap();
    let last = put(&store, "a", "two").await.unwrap();
    store.close().await;
    assert_eq!(bareboat_sqlite::last_revision(&path).unwrap(), last);
    let restored = bareboat_sqlite::raise(&path, 5_000_000).unwrap();
    assert_eq!(restored.last, last);
    assert!(restored.raised > 6_000_000);
    let store = open(&path);
    assert_eq!(store.visible(), restored.raised);
    assert_eq!(store.floor(), restored.raised);
    assert!(content(&store, "a").contains("two"));
    let resource = store.resource("core/configmaps");
    // Watches can resume neither from revisions of the backup nor from lost revisions.
    for version in [last - 1, last, last + 1, 5_000_000, restored.raised - 1] {
        assert!(
            resource.watch(WatchSpec::all(version)).is_err(),
            "{version}"
        );
    }
    assert_eq!(put(&store, "b", "x").await.unwrap(), restored.raised + 1);
    store.close().await;
    // The file of a running server is not changed.
    let _server = Sqlite::open_with(&path, SqliteOptions::default()).unwrap();
    let refused = bareboat_sqlite::raise(&path, 0).err().unwrap();
    assert!(matches!(refused, SqliteError::InUse { .. }));
}

fn pod(name: &str, node: &str) -> bytes::Bytes {
    format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{name}","labels":{{"app":"shop"}}}},"spec":{{"nodeName":"{node}"}}}}"#
    )
    .into()
}

/// Returns the rows of `query`, columns separated by `|`.
fn ask(file: &Connection, query: &str) -> Vec<String> {
    let mut query = file.prepare(query).unwrap();
    let columns = query.column_count();
    let rows = query.query_map([], |row| {
        let column = |at| row.get::<_, rusqlite::types::Value>(at);
        let texts = (0..columns).map(|at| {
            Ok(match column(at)? {
                rusqlite::types::Value::Text(text) => text,
                rusqlite::types::Value::Integer(number) => number.to_string(),
                other => format!("{other:?}"),
            })
        });
        Ok(texts.collect::<rusqlite::Result<Vec<_>>>()?.join("|"))
    });
    rows.unwrap().map(Result::unwrap).collect()
}

#[tokio::test]
async fn the_queries_of_the_documentation_work() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let store = open(&path);
    let pods = store.resource("core/pods");
    for (name, node) in [("web", "a"), ("db", "b"), ("job", "b")] {
        let write = Write::create(&pods, format!("shop/{name}"), pod(name, node));
        store.commit(write).await.unwrap();
    }
    let found = pods.get("shop/db").unwrap();
    let write = Write::replace(&pods, &found, pod("db", "a"));
    store.commit(write).await.unwrap();
    let file = Connection::open(&path).unwrap();
    let page = include_str!("../../../docs/operating.md");
    let blocks = page.split("```sql\n").skip(1);
    let blocks = blocks.filter_map(|rest| rest.split("```").next());
    let queries = blocks.flat_map(|block| block.split_inclusive(';'));
    let answers: Vec<String> = queries
        .filter(|query| query.contains("json_extract"))
        .flat_map(|query| ask(&file, query))
        .collect();
    assert_eq!(answers, ["shop|db", "shop|web", "shop|3"]);
    store.close().await;
}

#[test]
fn records_of_epochs_are_history_and_not_objects() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let backend = Sqlite::open(&path).unwrap();
    let base = backend.mark().unwrap();
    let record = |revision, resource: &str, key: &str| Record {
        revision,
        prev: 0,
        cluster: "".into(),
        resource: resource.into(),
        key: key.into(),
        actor: None,
        value: Some(Value::new(r#"{"epoch":2}"#.into())),
    };
    // A backup of a shared store has such a record.
    let records = vec![
        record(base.last + 1, "", "epoch-2"),
        record(base.last + 2, "core/nodes", "a"),
    ];
    let batch = Batch {
        id: 1,
        writer: 1,
        records,
    };
    backend.append(&base, &batch).unwrap();
    let file = Connection::open(&path).unwrap();
    assert_eq!(
        ask(&file, "SELECT resource, name FROM live"),
        ["core/nodes|a"]
    );
    let all = "SELECT resource, name FROM history ORDER BY rev";
    assert_eq!(ask(&file, all), ["|epoch-2", "core/nodes|a"]);
    // The view of an older program is replaced.
    drop(backend);
    file.execute_batch("DROP VIEW live; CREATE VIEW live AS SELECT * FROM history")
        .unwrap();
    drop(file);
    drop(Sqlite::open(&path).unwrap());
    let file = Connection::open(&path).unwrap();
    assert_eq!(
        ask(&file, "SELECT resource, name FROM live"),
        ["core/nodes|a"]
    );
}
