//! Tests of a full disk: writes are refused, deletions and compaction use the reserve, and then there is space again.
//!
//! A preloaded library limits the disk. Where mounting is allowed, the tests also use a real small file system. `make
//! torture` repeats them with other sizes.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bareboat_sqlite::{Sqlite, SqliteOptions};
use bareboat_storage::{CommitError, Expect, Store, StoreOptions, Write};

use crate::preload::{self, Control, Dice, ENOSPC, INDEX_WRITES};

const FILE: &str = "BAREBOAT_FULL_DISK_FILE";
/// A multiple of the space that a server with default options needs in addition to its data.
const SPACE_KIB: u64 = 64 << 10;
const SIZES: &str = "BAREBOAT_FULL_DISK_SIZES";

/// The sizes of one run. They decide which write is the first without space, and what is free afterwards.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    space_kib: u64,
    /// The text of one object, in bytes.
    object: u64,
    /// The share of the objects that stay when the disk is emptied, in percent.
    stay: u64,
    /// How many objects one batch has that fills the index.
    batch: u64,
}

impl Sizes {
    const USUAL: Sizes = Sizes {
        space_kib: SPACE_KIB,
        object: 60_000,
        stay: 0,
        batch: 50,
    };

    fn roll(dice: &mut Dice) -> Sizes {
        Sizes {
            space_kib: SPACE_KIB + dice.roll(SPACE_KIB),
            object: 20_000 + dice.roll(100_000),
            stay: dice.roll(50),
            batch: 1 + dice.roll(50),
        }
    }

    /// Returns what a child has in its environment.
    fn text(self) -> String {
        let Sizes {
            space_kib,
            object,
            stay,
            batch,
        } = self;
        format!("{space_kib} {object} {stay} {batch}")
    }

    /// Returns the sizes of this child.
    fn of_this_child() -> Sizes {
        let text = std::env::var(SIZES).unwrap();
        let numbers: Vec<u64> = text.split(' ').map(|n| n.parse().unwrap()).collect();
        let [space_kib, object, stay, batch] = numbers[..] else {
            panic!("{text}");
        };
        Sizes {
            space_kib,
            object,
            stay,
            batch,
        }
    }
}

/// Runs a test once with the usual sizes, and in `make torture` also with others for the time that was asked for.
fn with_sizes(run: impl Fn(Sizes)) {
    run(Sizes::USUAL);
    if std::env::var_os("TORTURE_SECONDS").is_none() {
        return;
    }
    let (time, mut dice) = preload::plan();
    let start = Instant::now();
    let mut rounds = 1;
    while start.elapsed() < time {
        let sizes = Sizes::roll(&mut dice);
        println!("{sizes:?}");
        run(sizes);
        rounds += 1;
    }
    println!("{rounds} rounds");
}

#[test]
fn deletions_and_compaction_work_on_a_full_disk() {
    let Some(library) = preload::library() else {
        return;
    };
    with_sizes(|sizes| {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        std::fs::create_dir(&data).unwrap();
        let control = Control::new(folder.path().join("control"));
        control.space(u32::try_from(sizes.space_kib).unwrap());
        let environment = control.environment(library, &data);
        fill_and_empty(&data.join("state.db"), sizes, &environment);
        assert!(control.failed() > 0);
    });
}

#[test]
fn deletions_and_compaction_work_on_a_small_file_system() {
    with_sizes(on_a_small_file_system);
}

fn on_a_small_file_system(sizes: Sizes) {
    let folder = tempfile::tempdir().unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o"])
        .arg(format!("size={}k", sizes.space_kib))
        .arg("bareboat-test")
        .arg(folder.path())
        .stderr(Stdio::null())
        .status();
    if !mounted.is_ok_and(|status| status.success()) {
        let why = "nothing can be mounted here";
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{why}");
        println!("left out: {why}");
        return;
    }
    let outcome = std::panic::catch_unwind(|| {
        fill_and_empty(&folder.path().join("state.db"), sizes, &[]);
    });
    let unmounted = Command::new("umount").arg(folder.path()).status().unwrap();
    assert!(unmounted.success());
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
}

const INDEX_FILE: &str = "BAREBOAT_FULL_INDEX_FILE";

/// The index of the write-ahead log grows after the log itself was written and synced. A write that is refused because
/// of the index must not reappear after a crash.
#[test]
fn a_write_refused_for_the_index_of_the_log_does_not_come_back() {
    let Some(library) = preload::library() else {
        return;
    };
    with_sizes(|sizes| refused_for_the_index(library, sizes));
}

fn refused_for_the_index(library: &Path, sizes: Sizes) {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let path = data.join("state.db");
    let control = Control::new(folder.path().join("control"));
    // Opening needs the first part of the index; the second part is needed after about 4,000 pages.
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "full::child_that_fills_its_index", "--nocapture"])
        .env(INDEX_FILE, &path)
        .env(SIZES, sizes.text())
        .envs(control.environment(library, &data))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut refused = None;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        if line == "open" {
            control.fail(ENOSPC, INDEX_WRITES, 1000);
        }
        if let Some(key) = line.strip_prefix("refused ") {
            refused = Some(key.to_owned());
            break;
        }
    }
    // The child waits to be killed: nothing is written after the refusal.
    child.kill().unwrap();
    child.wait().unwrap();
    let refused = refused.expect("the index had to grow");
    assert!(control.failed() > 0);
    let store = open(path.to_str().unwrap());
    let resource = store.resource("core/configmaps");
    assert!(resource.len() as u64 * sizes.object > 6_000_000);
    assert!(resource.get(&refused).is_none(), "{refused} came back");
}

#[test]
fn child_that_fills_its_index() {
    let Ok(path) = std::env::var(INDEX_FILE) else {
        return;
    };
    let sizes = Sizes::of_this_child();
    println!();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        // Options without a checkpoint during the test.
        let file = SqliteOptions {
            checkpoint_bytes: 1 << 30,
            checkpoint_limit_bytes: 1 << 30,
            reserve_bytes: 0,
            ..SqliteOptions::default()
        };
        let backend = Sqlite::open_with(&path, file).unwrap();
        let store = Store::open(Arc::new(backend), StoreOptions::default()).unwrap();
        put(&store, "first", sizes.object).await.unwrap();
        // An open read keeps SQLite from restarting its log.
        let reader = rusqlite::Connection::open(&path).unwrap();
        reader.execute_batch("BEGIN").unwrap();
        let seen: i64 = reader
            .query_row("SELECT count(*) FROM log", [], |row| row.get(0))
            .unwrap();
        assert_eq!(seen, 1);
        println!("open");
        let resource = store.resource("core/configmaps");
        for batch in 0..4000 {
            let keys = (0..sizes.batch).map(|n| format!("o{batch}-{n}"));
            let writes =
                keys.map(|key| Write::create(&resource, &*key, object(&key, sizes.object)));
            match store.commit_many(writes.collect()).await {
                Ok(_) => {}
                Err(refused) if matches!(refused.error, CommitError::Full) => {
                    println!("refused o{batch}-0");
                    break;
                }
                Err(error) => panic!("{error:?}"),
            }
        }
        assert!(store.poison().is_none());
        std::future::pending::<()>().await;
    });
}

fn fill_and_empty(path: &Path, sizes: Sizes, environment: &[(&'static str, String)]) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "full::child_that_fills_its_disk", "--nocapture"])
        .env(FILE, path)
        .env(SIZES, sizes.text())
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let said: Vec<String> = lines.map_while(Result::ok).collect();
    assert!(child.wait().unwrap().success(), "{said:#?}");
    assert!(said.iter().any(|line| line == "space again"), "{said:#?}");
}

fn object(name: &str, size: u64) -> bytes::Bytes {
    let padding = "x".repeat(size as usize);
    format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"}},"data":{{"p":"{padding}"}}}}"#
    )
    .into()
}

async fn put(store: &Store, key: &str, size: u64) -> Result<u64, CommitError> {
    let resource = store.resource("core/configmaps");
    let write = Write::create(&resource, key, object(key, size)).expecting(Expect::Any);
    store.commit(write).await.map(|done| done.revision)
}

fn open(path: &str) -> Store {
    let backend = Sqlite::open(path).unwrap();
    Store::open(Arc::new(backend), StoreOptions::default()).unwrap()
}

#[test]
fn child_that_fills_its_disk() {
    let Ok(path) = std::env::var(FILE) else {
        return;
    };
    let sizes = Sizes::of_this_child();
    println!();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let store = open(&path);
        // The reserve is created during the first writes.
        let reserve = format!("{path}.reserve");
        let complete = SqliteOptions::default().reserve_bytes;
        while std::fs::metadata(&reserve).map_or(0, |file| file.len()) < complete {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let mut count = 0;
        let full = loop {
            match put(&store, &format!("o{count}"), sizes.object).await {
                Ok(_) => count += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(full, CommitError::Full), "{full:?}");
        assert!(count as u64 * sizes.object > 6_000_000, "{count}");
        println!("full with {count} objects");
        // The disk stays full, also for a store that is opened again.
        store.close().await;
        let store = open(&path);
        let resource = store.resource("core/configmaps");
        assert_eq!(resource.len(), count);
        // A checkpoint on close may have left some free space, which is filled first.
        while put(&store, &format!("o{count}"), sizes.object)
            .await
            .is_ok()
        {
            count += 1;
        }
        let stay = count * sizes.stay as usize / 100;
        for n in stay..count {
            let found = resource.get(&format!("o{n}")).unwrap();
            let deleted = store.commit(Write::delete(&resource, &found)).await;
            assert!(deleted.is_ok(), "deletion {n} of {count}: {deleted:?}");
        }
        println!("deleted {} objects", count - stay);
        assert!(store.poison().is_none());
        store.compact(store.visible()).await.unwrap();
        let deadline = std::time::Instant::now() + Duration::from_secs(60);
        while let Err(error) = put(&store, "after", sizes.object).await {
            assert!(std::time::Instant::now() < deadline, "{error:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        for n in 0..100 {
            // Compaction frees space in small steps.
            while let Err(error) = put(&store, &format!("again{n}"), sizes.object).await {
                assert!(std::time::Instant::now() < deadline, "{error:?}");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        println!("space again");
        store.close().await;
    });
}
