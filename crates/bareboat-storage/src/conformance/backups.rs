//! Tests of backups, restores and epochs.

use std::sync::Arc;

use super::*;
use crate::backup::{self, Backup, BackupError, Epoch, RestoreOptions};
use crate::{MemoryBackend, Record, Refill, SnapshotError};

/// Returns every record of a log by its revision.
fn records(log: &dyn Backend) -> BTreeMap<u64, Record> {
    let mut all = BTreeMap::new();
    let floor = log.compacted();
    log.load(floor, &mut |record| {
        all.insert(record.revision, record);
    })
    .expect("the log is read");
    all
}

const NAME: &str = "core/configmaps";

/// Writes 25 objects, changes some and deletes others, in a few transactions. 20 objects remain.
async fn fill(store: &Store) {
    let things = store.resource(NAME);
    put_all(store, (0..25).map(|n| (format!("ns/{n}"), n))).await;
    put_all(store, (0..15).map(|n| (format!("ns/{n}"), 100 + n))).await;
    let gone = (0..5).map(|n| {
        let found = things.get(&format!("ns/{n}"));
        Write::delete(&things, &found.expect("it was written"))
    });
    let gone = store.commit_many(gone.collect()).await;
    gone.expect("a transaction");
}

/// Writes objects in one transaction.
async fn put_all(store: &Store, objects: impl Iterator<Item = (String, u64)>) {
    let things = store.resource(NAME);
    let write = |(key, n): (String, u64)| {
        let value = object(&key, n);
        Write::create(&things, key, value).expecting(Expect::Any)
    };
    let writes = objects.map(write).collect();
    store.commit_many(writes).await.expect("a transaction");
}

fn sealed(log: &dyn Backend) -> (Backup, backup::Summary) {
    let mut file = tempfile();
    let summary = backup::write(log, &mut file, &mut |_| {}).expect("a backup is made");
    (Backup::open(file).expect("the backup is sound"), summary)
}

fn options(epoch: Epoch, replace: bool) -> RestoreOptions {
    RestoreOptions { replace, epoch }
}

/// Returns a temporary file without a name.
fn tempfile() -> std::fs::File {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let n = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let name = format!("bareboat-conformance-{}-{n}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let file = std::fs::OpenOptions::new()
        .create_new(true)
        .read(true)
        .write(true)
        .open(&path)
        .expect("a temporary file");
    std::fs::remove_file(path).expect("the name is removed");
    file
}

/// Checks that a backup that is made during writes is the state at one revision.
pub fn a_backup_is_the_state_of_one_moment(site: &dyn Site) {
    let backend = site.open();
    let store = Store::open(backend.clone(), StoreOptions::default()).expect("the log opens");
    run(async {
        fill(&store).await;
        let (writer, things) = (store.clone(), store.resource(NAME));
        let writes = tokio::spawn(async move {
            for n in 0..20 {
                // Both objects contain the same number between any two transactions.
                let both = ["pair/a", "pair/b"]
                    .map(|key| Write::create(&things, key, object(key, n)).expecting(Expect::Any));
                writer.commit_many(both.into()).await.expect("a pair");
            }
        });
        for _ in 0..3 {
            let log = backend.clone();
            let (backup, summary) = tokio::task::spawn_blocking(move || sealed(&*log))
                .await
                .expect("a backup");
            let mut pair = BTreeMap::new();
            let read = backup.read(&mut |record| {
                if record.key.starts_with("pair/") {
                    let value = record.value.as_ref().expect("an object").to_bytes();
                    let text = String::from_utf8_lossy(&value).into_owned();
                    let number = text.rsplit_once(r#""n":"#).map(|(_, n)| n.to_owned());
                    pair.insert(record.key.clone(), number);
                }
                Ok(())
            });
            assert_eq!(read.expect("a sound backup"), summary);
            assert_eq!(pair.get("pair/a"), pair.get("pair/b"));
        }
        writes.await.expect("the writer");
        store.close().await;
    });
}

/// Checks that a backup from this engine to another and back keeps all revisions and the history.
pub fn a_restored_log_equals_its_source(site: &dyn Site) {
    let backend = site.open();
    let store = Store::open(backend.clone(), StoreOptions::default()).expect("the log opens");
    run(async {
        fill(&store).await;
        let middle = store.visible();
        for part in [0..50, 50..100, 100..150] {
            put_all(&store, part.map(|n| (format!("late/{n}"), n))).await;
        }
        store.compact(middle - 3).await.expect("compaction");
        store.close().await;
    });
    drop(backend);
    let backend = site.open();
    let before = records(&*backend);
    let (backup, summary) = sealed(&*backend);
    assert_eq!(summary.records, before.len() as u64);
    let other = MemoryBackend::starting_at(1);
    let kept = options(Epoch::Keep, false);
    backup::restore(std::slice::from_ref(&backup), &other, kept, &mut |_| {}).expect("a restore");
    assert_eq!(records(&other), before);
    // Restores the backup to the first log, whose content is replaced.
    let (backup, again) = sealed(&other);
    assert_eq!(again, summary);
    let refused = backup::restore(std::slice::from_ref(&backup), &*backend, kept, &mut |_| {});
    assert!(matches!(refused, Err(BackupError::NotEmpty)));
    assert_eq!(records(&*backend), before);
    let replace = options(Epoch::Keep, true);
    let restored = backup::restore(
        std::slice::from_ref(&backup),
        &*backend,
        replace,
        &mut |_| {},
    );
    assert_eq!(restored.expect("a restore").summary, summary);
    assert_eq!(records(&*backend), before);
    backend.close().expect("the log is closed");
    drop(backend);
    let store = open(site);
    run(async {
        assert_eq!(store.visible(), summary.last);
        // A watch resumes at its last revision, and writes still work.
        let things = store.resource(NAME);
        let mut watcher = things
            .watch(WatchSpec::all(middle_of(&before)))
            .expect("not compacted");
        let late = before.range(middle_of(&before) + 1..).count();
        put(&store, &things, "ns/new", 7).await;
        let seen = take(&mut watcher, late + 1).await;
        assert_eq!(seen.last().map(|event| event.rev), Some(summary.last + 1));
        store.close().await;
    });
}

/// Returns a revision whose later history is in the log.
fn middle_of(records: &BTreeMap<u64, Record>) -> u64 {
    let last = records.keys().next_back().copied();
    last.expect("a log with records") - 150
}

/// Checks that a restore begins another epoch: older revisions are expired, all objects are present.
pub fn a_restore_begins_another_epoch(site: &dyn Site) {
    let source = MemoryBackend::starting_at(7);
    let store = Store::open(Arc::new(source.clone()), StoreOptions::default()).expect("it opens");
    run(async {
        fill(&store).await;
        store.close().await;
    });
    let backend = site.open();
    let begun = backend.mark().expect("the end of the log");
    let next = options(Epoch::Next { beyond: 9_000_000 }, false);
    let restored = backup::copy(&source, &*backend, next, &mut |_| {}).expect("a copy");
    assert!(restored.end.last > 10_000_000 && restored.end.epoch > begun.epoch);
    backend.close().expect("the log is closed");
    drop(backend);
    let store = open(site);
    run(async {
        let things = store.resource(NAME);
        assert_eq!(things.snapshot().len(), 20);
        assert_eq!(
            (store.floor(), store.visible()),
            (restored.end.last, restored.end.last)
        );
        let old = things.snapshot_at(restored.summary.last).await;
        assert!(matches!(old, Err(SnapshotError::Expired { .. })));
        put(&store, &things, "ns/new", 1).await;
        assert_eq!(store.visible(), restored.end.last + 1);
        store.compact(restored.end.last).await.expect("compaction");
        store.close().await;
    });
    let store = open(site);
    assert_eq!(store.resource(NAME).snapshot().len(), 21);
    run(store.close());
}

/// Checks that a log is not opened after an interrupted restore, until another restore has completed.
pub fn an_incomplete_restore_is_not_served(site: &dyn Site) {
    let backend = site.open();
    backend.refill(Refill::Begin).expect("it begins");
    assert!(!backend.is_complete().expect("an answer"));
    backend.close().expect("the log is closed");
    drop(backend);
    let backend = site.open();
    let opened = Store::open(backend.clone(), StoreOptions::default());
    assert!(matches!(opened, Err(crate::OpenError::Incomplete)));
    let source = MemoryBackend::starting_at(7);
    let kept = options(Epoch::Keep, false);
    backup::copy(&source, &*backend, kept, &mut |_| {}).expect("a copy");
    backend.close().expect("the log is closed");
    drop(backend);
    let store = open(site);
    assert_eq!(store.visible(), 7);
    run(store.close());
}

/// Checks that an examination finds nothing in a log that was written, compacted within a batch, and written again.
pub fn a_healthy_log_has_no_findings(site: &dyn Site) {
    let backend = site.open();
    let store = Store::open(backend.clone(), StoreOptions::default()).expect("the log opens");
    run(async {
        put_all(&store, (0..25).map(|n| (format!("a-{n}"), n))).await;
        put_all(&store, (0..15).map(|n| (format!("a-{n}"), 100 + n))).await;
        store
            .compact(store.visible() - 5)
            .await
            .expect("compaction");
        put_all(&store, (0..10).map(|n| (format!("b-{n}"), n))).await;
        let found = crate::examine::examine(&*backend).expect("an examination");
        assert!(found.findings.is_empty(), "{:?}", found.findings);
        let share = found.resources[NAME];
        assert_eq!((share.objects, share.history), (35, 15));
        // Engines with digests compare at least the last batch.
        let mut places = 0;
        let read = backend.places(&mut |_| places += 1);
        read.expect("the ends of batches");
        assert_eq!(found.batches > 0, places > 0);
        store.close().await;
    });
}

/// Checks that a backup has the whole history, though it is compacted while the backup reads it.
pub fn history_is_not_compacted_under_a_backup(site: &dyn Site) {
    let backend = site.open();
    let store = Store::open(backend.clone(), StoreOptions::default()).expect("the log opens");
    run(async {
        for round in 0..8 {
            put_all(&store, (0..40).map(|n| (format!("a-{n}"), round * 100 + n))).await;
        }
        let (floor, end) = (store.floor(), store.visible());
        let (begun, has_begun) = tokio::sync::oneshot::channel();
        let (done, is_done) = std::sync::mpsc::sync_channel(1);
        let log = backend.clone();
        let read = tokio::task::spawn_blocking(move || {
            let (mut begun, mut seen) = (Some(begun), Vec::new());
            let mark = log.dump(
                floor,
                &mut |record| {
                    if let Some(begun) = begun.take() {
                        let _ = begun.send(());
                        // An engine may let compaction wait for the backup.
                        let _ = is_done.recv_timeout(Duration::from_millis(500));
                    }
                    seen.push(record.revision);
                },
                &crate::Stop::default(),
            );
            (mark.expect("a dump"), seen)
        });
        has_begun.await.expect("the dump has begun");
        let compacted = store.compact(end - 1).await;
        let _ = done.send(());
        compacted.expect("compaction");
        let (mark, seen) = read.await.expect("a dump");
        assert_eq!(mark.last, end);
        assert_eq!(seen, (floor + 1..=end).collect::<Vec<_>>());
        store.close().await;
    });
}

/// Checks that a backup that continues another one restores everything, and is refused where it does not fit.
pub fn a_backup_continues_another(site: &dyn Site) {
    let backend = site.open();
    let store = Store::open(backend.clone(), StoreOptions::default()).expect("the log opens");
    run(async {
        fill(&store).await;
        let (whole, _) = sealed(&*backend);
        for part in 0..6 {
            let part = part * 100..(part + 1) * 100;
            put_all(&store, part.map(|n| (format!("late/{n}"), n))).await;
        }
        let second = continued(&*backend, &whole).expect("a second backup");
        let things = store.resource(NAME);
        let gone = things.get("late/1").expect("it was written");
        let gone = store.commit(Write::delete(&things, &gone)).await;
        gone.expect("a deletion");
        let third = continued(&*backend, &second).expect("a third backup");
        let empty = continued(&*backend, &third).expect("a backup without changes");
        let expected = records(&*backend);
        let kept = options(Epoch::Keep, false);
        let restore = |backups: &[Backup]| {
            let other = MemoryBackend::starting_at(1);
            let restored = backup::restore(backups, &other, kept, &mut |_| {})?;
            Ok::<_, BackupError>((restored.summary, records(&other)))
        };
        for wrong in [vec![2], vec![0, 2], vec![0, 1, 1], vec![1, 2]] {
            let all = [&whole, &second, &third].map(again);
            let chosen: Vec<Backup> = wrong.iter().map(|at: &usize| again(&all[*at])).collect();
            assert!(matches!(restore(&chosen), Err(BackupError::Incomplete)));
        }
        let all = [whole, second, third, empty];
        let (summary, found) = restore(&all).expect("a restore of all");
        assert_eq!((summary.last, found), (store.visible(), expected));
        assert_eq!(summary.objects[NAME], 20 + 600 - 1);
        // Without its history, a log does not continue an earlier backup.
        store.compact(store.visible()).await.expect("compaction");
        let gone = continued(&*backend, &all[0]).err();
        assert!(matches!(gone, Some(BackupError::Gone)), "{gone:?}");
        let other = MemoryBackend::starting_at(store.visible() + 5);
        let unrelated = continued(&other, &all[0]).err();
        assert!(unrelated.is_some());
        store.close().await;
    });
}

fn continued(log: &dyn Backend, before: &Backup) -> Result<Backup, BackupError> {
    let mut file = tempfile();
    backup::write_since(log, before, &mut file, &mut |_| {})?;
    Backup::open(file)
}

fn again(backup: &Backup) -> Backup {
    backup.reopened().expect("the file is open")
}
