//! A start with a long history: few objects that changed often.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bareboat_sqlite::Sqlite;
use bareboat_storage::{Expect, Store, StoreOptions, Write};

const OBJECTS: usize = 1_000;

fn open(path: &std::path::Path) -> Store {
    let options = StoreOptions {
        retain_revisions: u64::MAX,
        retain_for: Duration::from_secs(86_400),
        retain_bytes: u64::MAX,
        ..StoreOptions::default()
    };
    Store::open(Arc::new(Sqlite::open(path).unwrap()), options).unwrap()
}

#[tokio::test]
async fn a_long_history_does_not_make_the_start_slow() {
    let full = std::env::var_os("TORTURE_SECONDS").is_some();
    let rows = if full { 400_000 } else { 20_000 };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let store = open(&path);
    let resource = store.resource("core/configmaps");
    let begun = Instant::now();
    for first in (0..rows).step_by(500) {
        let writes = (first..first + 500).map(|row| {
            let key = format!("k{}", row % OBJECTS);
            let text = format!(
                r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{key}"}},"n":{row}}}"#
            );
            Write::create(&resource, key, text.into()).expecting(Expect::Any)
        });
        store.commit_many(writes.collect()).await.unwrap();
    }
    let (last, written) = (store.visible(), begun.elapsed());
    store.close().await;
    let mut quickest = Duration::MAX;
    for _ in 0..3 {
        let begun = Instant::now();
        let store = open(&path);
        quickest = quickest.min(begun.elapsed());
        assert_eq!(store.visible(), last);
        assert_eq!(store.resource("core/configmaps").len(), OBJECTS);
        assert!(store.floor() < 1_000, "the history is there");
        store.close().await;
    }
    println!("{rows} rows: written in {written:?}, opened in {quickest:?}");
    // Reading the state costs less than writing all of the history, on every machine.
    assert!(quickest < written / 2, "{quickest:?} of {written:?}");
    if full {
        assert!(quickest < Duration::from_secs(10), "{quickest:?}");
    }
}
