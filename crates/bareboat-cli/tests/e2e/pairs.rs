//! Backups from each engine to each engine: all 25 ordered pairs of five engines, with the library.

use crate::backups::{Engines, sqlite};
use bareboat::storage::backup::{self, Backup, Epoch, RestoreOptions, Summary};
use bareboat::storage::{
    Backend, Expect, MemoryBackend, Record, Store, StoreOptions, Write, backup::BackupError,
};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const MAPS: &str = "core/configmaps";

/// Returns an empty store in each engine, with its name.
fn fresh(engines: &Engines, folder: &Path, name: &str) -> Vec<(String, Arc<dyn Backend>)> {
    let mut addresses = engines.fresh();
    addresses.push(sqlite(&folder.join(format!("{name}.db"))));
    let mut all: Vec<(String, Arc<dyn Backend>)> = addresses
        .into_iter()
        .map(|address| {
            let backend = bareboat::open_backend(&address).unwrap();
            (address, backend)
        })
        .collect();
    // A server in memory cannot be reached by a command, but a program can back it up.
    all.push(("memory:".to_owned(), Arc::new(MemoryBackend::new())));
    all
}

fn object(n: u64) -> bytes::Bytes {
    format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"x"}},"n":{n}}}"#).into()
}

/// Writes, replaces and deletes objects, and compacts a part of the history.
async fn fill(store: &Store) {
    let maps = store.resource(MAPS);
    for n in 0..40u64 {
        let write = Write::create(&maps, format!("ns/{}", n % 25), object(n));
        store.commit(write.expecting(Expect::Any)).await.unwrap();
        if n == 20 {
            store.compact(store.visible()).await.unwrap();
        }
    }
    for n in 0..5 {
        let found = maps.get(&format!("ns/{n}")).unwrap();
        store.commit(Write::delete(&maps, &found)).await.unwrap();
    }
}

/// Makes a backup while a writer works.
async fn backed_up(backend: &Arc<dyn Backend>, file: File) -> Summary {
    let store = Store::open(backend.clone(), StoreOptions::default()).unwrap();
    fill(&store).await;
    let stop = Arc::new(AtomicBool::new(false));
    let (writer, stopped) = (store.clone(), stop.clone());
    let writes = tokio::spawn(async move {
        let maps = writer.resource(MAPS);
        let mut n = 0;
        while !stopped.load(Ordering::Relaxed) {
            n += 1;
            let write = Write::create(&maps, format!("busy/{}", n % 9), object(n));
            writer.commit(write.expecting(Expect::Any)).await.unwrap();
        }
    });
    let made = tokio::task::block_in_place(|| {
        let mut file = file;
        backup::write(&**backend, &mut file, &mut |_| {})
    });
    stop.store(true, Ordering::Relaxed);
    writes.await.unwrap();
    store.close().await;
    made.unwrap()
}

fn records(backup: &Backup) -> BTreeMap<u64, Record> {
    let mut all = BTreeMap::new();
    let read = backup.read(&mut |record| {
        all.insert(record.revision, record);
        Ok(())
    });
    read.unwrap();
    all
}

/// Returns what a log contains: the state at its floor, and all later records.
fn stored(backend: &dyn Backend) -> BTreeMap<u64, Record> {
    let mut all = BTreeMap::new();
    let floor = backend.compacted();
    let load = backend.load(floor, &mut |record| {
        all.insert(record.revision, record);
    });
    load.unwrap();
    all
}

fn restored(backup: &Backup, target: &dyn Backend) -> Summary {
    let options = RestoreOptions {
        replace: false,
        epoch: Epoch::Keep,
    };
    let backups = std::slice::from_ref(backup);
    let restored = backup::restore(backups, target, options, &mut |_| {});
    restored.unwrap().summary
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_of_each_engine_is_the_same_in_each_engine() {
    let engines = Engines::start();
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let create = |name: &str| {
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(true);
        options.open(file(name)).unwrap()
    };
    let sources = fresh(&engines, folder.path(), "source");
    let mut pairs = 0;
    for (from, (source, backend)) in sources.iter().enumerate() {
        let name = format!("{from}.backup");
        let summary = backed_up(backend, create(&name)).await;
        tokio::task::block_in_place(|| {
            let backup = Backup::open(File::open(file(&name)).unwrap()).unwrap();
            let expected = records(&backup);
            let targets = fresh(&engines, folder.path(), &format!("from-{from}"));
            for (target, log) in &targets {
                let pair = format!("{source} to {target}");
                assert_eq!(restored(&backup, &**log), summary, "{pair}");
                assert_eq!(stored(&**log), expected, "{pair}");
                // A backup of the copy has the same digest.
                let mut again = create("again.backup");
                let copied = backup::write(&**log, &mut again, &mut |_| {}).unwrap();
                assert_eq!(copied, summary, "{pair}");
                log.close().unwrap();
                pairs += 1;
            }
            damaged(&file(&name), &file("damaged.backup"));
        });
        backend.close().unwrap();
    }
    assert_eq!(pairs, sources.len() * sources.len());
    println!("{pairs} pairs");
}

/// Flips each byte of a backup in turn: it is always noticed.
fn damaged(backup: &Path, copy: &Path) {
    let mut bytes = std::fs::read(backup).unwrap();
    for at in 0..bytes.len() {
        bytes[at] ^= 1 << (at % 8);
        std::fs::write(copy, &bytes).unwrap();
        let read =
            Backup::open(File::open(copy).unwrap()).and_then(|backup| backup.read(&mut |_| Ok(())));
        assert!(
            !matches!(read, Ok(_) | Err(BackupError::Store(_))),
            "byte {at}"
        );
        bytes[at] ^= 1 << (at % 8);
    }
}
