//! Tests of an open file: locks of other programs, removed files, an idle server, history that expires.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bareboat_sqlite::{Sqlite, SqliteOptions};
use bareboat_storage::faults::Faulty;
use bareboat_storage::{Backend, CommitError, Expect, Store, StoreOptions, Write};
use rusqlite::Connection;

const PATIENCE: Duration = Duration::from_secs(60);

fn object(name: &str, size: usize) -> bytes::Bytes {
    let padding = "x".repeat(size);
    format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"}},"data":{{"p":"{padding}"}}}}"#
    )
    .into()
}

async fn put(store: &Store, key: &str, size: usize) -> Result<u64, CommitError> {
    let resource = store.resource("core/configmaps");
    let write = Write::create(&resource, key, object(key, size)).expecting(Expect::Any);
    store.commit(write).await.map(|done| done.revision)
}

fn open(path: &Path, options: StoreOptions) -> Store {
    let backend = Sqlite::open(path).unwrap();
    Store::open(Arc::new(backend), options).unwrap()
}

async fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_lock_of_another_program_does_not_poison_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let store = open(&path, StoreOptions::default());
    put(&store, "a", 1).await.unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    // The writer waits for a while before it reports the lock.
    let refused = put(&store, "b", 1).await;
    assert!(matches!(refused, Err(CommitError::Busy)), "{refused:?}");
    assert!(store.poison().is_none());
    other.execute_batch("ROLLBACK").unwrap();
    drop(other);
    put(&store, "b", 1).await.unwrap();
    store.close().await;
}

#[tokio::test]
async fn writes_into_removed_files_are_not_acknowledged() {
    for remove in ["state.db", "state.db-wal"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.db");
        let store = open(&path, StoreOptions::default());
        put(&store, "a", 1).await.unwrap();
        std::fs::remove_file(folder.path().join(remove)).unwrap();
        let refused = put(&store, "b", 1).await;
        assert!(
            matches!(refused, Err(CommitError::Unknown(_))),
            "{refused:?}"
        );
        let why = store.poison().unwrap();
        assert!(why.contains("was removed while it was in use"), "{why}");
        assert!(store.resource("core/configmaps").get("b").is_none());
        store.close().await;
    }
}

#[tokio::test]
async fn a_replaced_file_is_detected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let store = open(&path, StoreOptions::default());
    put(&store, "a", 1).await.unwrap();
    std::fs::copy(&path, folder.path().join("copy")).unwrap();
    std::fs::rename(folder.path().join("copy"), &path).unwrap();
    let refused = put(&store, "b", 1).await;
    assert!(
        matches!(refused, Err(CommitError::Unknown(_))),
        "{refused:?}"
    );
    assert!(store.poison().unwrap().contains("was replaced"));
    store.close().await;
}

#[tokio::test]
async fn an_idle_server_releases_space_after_a_compaction() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let wal = folder.path().join("state.db-wal");
    let options = SqliteOptions {
        checkpoint_limit_bytes: 16 << 20,
        reserve_bytes: 0,
        ..SqliteOptions::default()
    };
    let backend = Sqlite::open_with(&path, options).unwrap();
    let store = Store::open(Arc::new(backend), StoreOptions::default()).unwrap();
    let resource = store.resource("core/configmaps");
    for round in 0..40 {
        let writes = (0..100).map(|n| {
            let key = format!("o{n}");
            let value = object(&key, 8000 + round);
            Write::create(&resource, key, value).expecting(Expect::Any)
        });
        store.commit_many(writes.collect()).await.unwrap();
    }
    let size = |path: &Path| std::fs::metadata(path).map_or(0, |data| data.len());
    // A reader of the write-ahead log only delays the truncation.
    let reader = Connection::open(&path).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    let _: i64 = reader
        .query_row("SELECT count(*) FROM log", [], |row| row.get(0))
        .unwrap();
    store.compact(store.visible()).await.unwrap();
    reader.execute_batch("COMMIT").unwrap();
    drop(reader);
    // No write follows from here on.
    eventually("the write-ahead log is cut", || size(&wal) == 0).await;
    let left = size(&path);
    assert!(left < 4 << 20, "{left} bytes for 800 KB of data");
    assert_eq!(resource.len(), 100);
    store.close().await;
}

#[tokio::test]
async fn the_write_ahead_log_stays_bounded_while_history_is_compacted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let wal = folder.path().join("state.db-wal");
    let options = SqliteOptions {
        checkpoint_bytes: 1 << 20,
        checkpoint_limit_bytes: 8 << 20,
        reserve_bytes: 0,
        ..SqliteOptions::default()
    };
    let backend = Sqlite::open_with(&path, options).unwrap();
    let store = Store::open(Arc::new(backend), StoreOptions::default()).unwrap();
    let resource = store.resource("core/configmaps");
    for _ in 0..100 {
        let writes = (0..100).map(|n| {
            let key = format!("o{n}");
            let value = object(&key, 3000);
            Write::create(&resource, key, value).expecting(Expect::Any)
        });
        store.commit_many(writes.collect()).await.unwrap();
    }
    store.compact(store.visible()).await.unwrap();
    let longest = std::fs::metadata(&wal).map_or(0, |data| data.len());
    assert!(longest < 24 << 20, "{longest}");
    store.close().await;
}

#[tokio::test]
async fn history_expires_across_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let hour = StoreOptions {
        retain_for: Duration::from_secs(3600),
        ..StoreOptions::default()
    };
    let store = open(&path, hour.clone());
    put(&store, "a", 1).await.unwrap();
    put(&store, "a", 2).await.unwrap();
    let last = put(&store, "a", 3).await.unwrap();
    store.close().await;
    let mut reported = Vec::new();
    let backend = Arc::new(Sqlite::open(&path).unwrap());
    backend
        .history(&mut |written| reported.push(written))
        .unwrap();
    assert!(reported.is_sorted_by_key(|written| written.last));
    assert_eq!(reported.last().map(|written| written.last), Some(last));
    assert!(reported.iter().map(|written| written.bytes).sum::<u64>() > 200);
    // A second call returns the same times.
    let mut again = Vec::new();
    backend.history(&mut |written| again.push(written)).unwrap();
    assert_eq!(again, reported);
    for written in &reported {
        let age = SystemTime::now()
            .duration_since(written.at)
            .unwrap_or_default();
        assert!(
            age < Duration::from_secs(1800) && written.bytes > 50,
            "{written:?}"
        );
    }
    // A server that finds history of two hours at its start does not keep it for another hour.
    let aged = Arc::new(Faulty::new(backend));
    aged.set_age(Duration::from_secs(7200));
    let store = Store::open(aged, hour).unwrap();
    eventually("old history goes at once", || store.floor() == last).await;
    store.close().await;
}

#[tokio::test]
async fn history_is_bounded_in_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let little = StoreOptions {
        retain_bytes: 256 << 10,
        ..StoreOptions::default()
    };
    let store = open(&path, little.clone());
    for _ in 0..200 {
        put(&store, "a", 8000).await.unwrap();
    }
    let kept = (store.visible() - store.floor()) * 8100;
    assert!(kept < 300 << 10, "{kept} bytes of history");
    store.close().await;
    // The recorded sizes survive a restart.
    let store = open(&path, little);
    for _ in 0..3 {
        put(&store, "a", 8000).await.unwrap();
    }
    let kept = (store.visible() - store.floor()) * 8100;
    assert!(kept < 300 << 10, "{kept} bytes of history");
    store.close().await;
}
