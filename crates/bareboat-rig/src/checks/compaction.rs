//! Checks of compaction: beside a slow reader, by several stores at once, and over a day.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bareboat_storage::{
    Backend, Expect, PageLimit, Stop, Store, StoreOptions, WatchError, WatchSpec, Write,
};
use bytes::Bytes;

use super::{FRESH, RESOURCE, Shared, digits, number, object, open, open_with, run};
use crate::plan;
use crate::proxy::Proxy;

/// Writes one key after another until `stop` is set; returns the last revision, and how long each write took.
async fn write_on(store: Store, stop: Arc<AtomicBool>) -> (u64, Vec<Duration>) {
    let resource = store.resource(RESOURCE);
    let (mut n, mut waits) = (0, Vec::new());
    while !stop.load(Ordering::Relaxed) {
        n += 1;
        let write = Write::create(&resource, format!("k{}", n % 20), object(n));
        let start = Instant::now();
        store.commit(write.expecting(Expect::Any)).await.unwrap();
        waits.push(start.elapsed());
    }
    (store.visible(), waits)
}

/// A store whose reads are slow follows a log that is compacted all the time: its watchers miss no event, unless they
/// get the error that the history is gone.
pub fn a_slow_tail_misses_nothing_while_history_is_compacted(database: &dyn Shared) {
    run(async {
        let proxy = Proxy::to(database.port());
        let writer = open(database, database.port(), "slow_tail");
        let reader = open(database, proxy.port, "slow_tail");
        proxy.set_delay(Duration::from_millis(1));
        let stop = Arc::new(AtomicBool::new(false));
        let writing = tokio::spawn(write_on(writer.clone(), stop.clone()));
        let there = reader.resource(RESOURCE);
        let time = plan::length(Duration::from_secs(3)).min(Duration::from_secs(600));
        let (start, mut compacted) = (Instant::now(), Instant::now());
        let (mut events, mut expired) = (0, 0);
        let mut last = reader.visible();
        let mut watcher = there.watch(WatchSpec::all(last)).unwrap();
        while start.elapsed() < time {
            // The retention of two seconds, shortened as the run is.
            if compacted.elapsed() > Duration::from_millis(100) {
                compacted = Instant::now();
                writer
                    .compact(writer.visible().saturating_sub(30))
                    .await
                    .unwrap();
            }
            let next = tokio::time::timeout(Duration::from_millis(50), watcher.next_batch(100));
            match next.await {
                Err(_) => {}
                Ok(Ok(batch)) => {
                    for event in batch {
                        assert_eq!(event.rev, last + 1, "an event is missing");
                        last = event.rev;
                        events += 1;
                    }
                }
                // Lagged: on a busy machine the events of this check come too quickly for it.
                Ok(Err(WatchError::Expired { .. } | WatchError::Lagged)) => {
                    expired += 1;
                    last = there.snapshot().revision().max(reader.visible());
                    watcher = match there.watch(WatchSpec::all(last)) {
                        Ok(watcher) => watcher,
                        Err(_) => continue,
                    };
                }
                Ok(Err(other)) => panic!("{other}"),
            }
        }
        stop.store(true, Ordering::Relaxed);
        let (end, _) = writing.await.unwrap();
        println!("{events} events, {expired} times expired");
        assert!(events > 20, "{events}");
        assert!(reader.freshen(FRESH).await.unwrap());
        assert_eq!(reader.visible(), end);
        same_objects(&writer, &reader);
        proxy.set_delay(Duration::ZERO);
        writer.close().await;
        reader.close().await;
    });
}

fn same_objects(one: &Store, other: &Store) {
    let content = |store: &Store| {
        let snapshot = store.resource(RESOURCE).snapshot();
        let entries = snapshot.range("", None);
        entries
            .map(|entry| {
                (
                    entry.key().to_owned(),
                    entry.revision(),
                    number(entry.json()),
                )
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(content(one), content(other));
}

/// Three stores compact at the same time, while all of them write: the floor never goes back, no object is lost, and
/// writers hardly wait.
pub fn stores_compact_at_the_same_time(database: &dyn Shared) {
    run(async {
        let stores = [0, 1, 2].map(|_| open(database, database.port(), "compacting"));
        let stop = Arc::new(AtomicBool::new(false));
        let rounds = plan::count(15, 500);
        let writing: Vec<_> = stores
            .iter()
            .map(|store| tokio::spawn(write_on(store.clone(), stop.clone())))
            .collect();
        let compacting: Vec<_> = stores
            .iter()
            .map(|store| {
                let store = store.clone();
                tokio::spawn(async move {
                    let mut floor = 0;
                    for _ in 0..rounds {
                        let upto = store.visible().saturating_sub(5);
                        store.compact(upto).await.unwrap();
                        assert!(store.floor() >= floor.max(upto), "the floor went back");
                        floor = store.floor();
                        tokio::time::sleep(Duration::from_millis(10)).await;
                    }
                })
            })
            .collect();
        for task in compacting {
            task.await.unwrap();
        }
        stop.store(true, Ordering::Relaxed);
        let mut waits = Vec::new();
        for task in writing {
            waits.extend(task.await.unwrap().1);
        }
        waits.sort();
        let (median, most) = (waits[waits.len() / 2], waits[waits.len() * 99 / 100]);
        println!(
            "{} writes beside compactions: {median:?} at the median, {most:?} for 99 of 100",
            waits.len()
        );
        let bound = plan::bound(Duration::from_secs(10), Duration::from_millis(50));
        assert!(most < bound, "{most:?}");
        for store in &stores {
            assert!(store.freshen(FRESH).await.unwrap());
            assert_eq!(store.resource(RESOURCE).len(), 20);
            same_objects(&stores[0], store);
        }
        all_above_the_floor(&*database.open(&database.url(database.port(), "compacting")));
        // What a new store reads.
        let again = open(database, database.port(), "compacting");
        same_objects(&stores[0], &again);
        assert!(again.floor() >= stores.iter().map(Store::floor).max().unwrap());
        again.close().await;
        for store in &stores {
            store.close().await;
        }
    });
}

/// Checks that the log has every revision above its floor.
fn all_above_the_floor(log: &dyn Backend) {
    let end = log.mark().unwrap().last;
    let floor = log.compacted();
    let limit = PageLimit {
        changes: usize::MAX,
        bytes: usize::MAX,
    };
    let page = log.read_since(None, floor, end, limit, &Stop::default());
    let changes = page.unwrap().changes;
    let revisions = changes.iter().map(|change| change.record.revision);
    assert!(revisions.eq(floor + 1..=end), "between {floor} and {end}");
    for change in changes {
        // The record before is needed as long as its successor is above the floor.
        let before = change.previous.map_or(0, |record| record.revision);
        assert_eq!(before, change.record.prev);
    }
}

/// How many times the bytes of objects and history a store may take.
const MOST: u64 = 3;
const OBJECTS: u64 = 10_000;
const VALUE: usize = 700;
/// The shortest time between two updates.
const RATE: Duration = Duration::from_micros(85);
/// The pause between two times when the database cleans up, in a short day.
const CLEAN: Duration = Duration::from_millis(100);

/// A day of updates, with a retention that is shortened as the day is: the log stays small, also after a restart.
///
/// A day has 17 million updates of 10,000 objects, of which the last ten minutes are kept.
pub fn a_day_of_updates_stays_small(database: &dyn Shared) {
    database.prepare_day();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        if plan::torture().is_none() {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    database.clean("day");
                    std::thread::sleep(CLEAN);
                }
            });
        }
        // Ends the thread also when the test fails.
        let _ends = Ends(&over);
        run(day(database));
    });
}

/// Sets a flag when it is dropped.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

async fn day(database: &dyn Shared) {
    let updates = plan::count(200_000, 17_280_000);
    // Ten minutes of a day.
    let kept = updates / 144;
    let start = Instant::now();
    let options = || StoreOptions {
        retain_revisions: kept,
        compact_every: Duration::from_millis(250),
        ..StoreOptions::default()
    };
    let store = open_with(database, database.port(), "day", options());
    let writers = 256;
    let filler: Arc<str> = digits(7, VALUE).into();
    let tasks: Vec<_> = (0..writers)
        .map(|task| {
            let (store, filler) = (store.clone(), filler.clone());
            tokio::spawn(async move {
                let resource = store.resource(RESOURCE);
                for n in 0..updates / writers {
                    let key = format!("k{}", (task + n * writers) % OBJECTS);
                    let write = Write::create(&resource, key, padded(&filler, n));
                    store.commit(write.expecting(Expect::Any)).await.unwrap();
                    // Databases clean up about once a second, which must be little of a day.
                    let due = RATE.mul_f64((n * writers) as f64);
                    tokio::time::sleep(due.saturating_sub(start.elapsed())).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    println!("{updates} updates in {:?}", start.elapsed());
    let row = (VALUE + 150) as u64;
    let recent = (600.0 / start.elapsed().as_secs_f64()).min(1.0) * updates as f64;
    let bound = MOST * row * (OBJECTS + kept) + database.kept_bytes() * recent as u64;
    settles(database, &store, bound).await;
    let floor = store.floor();
    store.close().await;
    let store = open_with(database, database.port(), "day", options());
    assert!(store.floor() >= floor);
    assert_eq!(store.resource(RESOURCE).len() as u64, OBJECTS);
    settles(database, &store, bound).await;
    store.close().await;
}

fn padded(filler: &str, n: u64) -> Bytes {
    format!(r#"{{"apiVersion":"v1","kind":"X","metadata":{{"name":"x"}},"p":"{filler}","n":{n}}}"#)
        .into()
}

/// Waits until the store is smaller than `bound`. Databases free space after a while.
async fn settles(database: &dyn Shared, store: &Store, bound: u64) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let used = database.size("day");
        if used < bound {
            println!("{used} of at most {bound} bytes");
            return;
        }
        assert!(
            Instant::now() < deadline,
            "{used} is more than {bound} bytes"
        );
        // etcd notices free pages when it writes.
        let write = Write::create(&store.resource(RESOURCE), "k0", object(0));
        store.commit(write.expecting(Expect::Any)).await.unwrap();
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
