//! Measures the store: commits, fan-out, memory. Run it optimised:
//! `CARGO_PROFILE_DEV_OPT_LEVEL=3 cargo run -p bareboat-sqlite --example measure [folder [commits|history]]`
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bareboat_sqlite::Sqlite;
use bareboat_storage::{Backend, Expect, MemoryBackend, Store, StoreOptions, WatchSpec, Write};

fn object(key: &str, size: usize) -> bytes::Bytes {
    let padding = "x".repeat(size);
    let name = key.rsplit('/').next().unwrap();
    format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}","labels":{{"app":"measure"}}}},"data":{{"p":"{padding}"}}}}"#
    )
    .into()
}

/// Returns the CPU time of this process, in units of 10 ms.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}

/// Returns the resident bytes of this process.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

async fn commits(name: &str, backend: Arc<dyn Backend>, writers: usize, options: StoreOptions) {
    let time = Duration::from_secs(3);
    // If the options retain little history, writes are updates, so that compaction has work.
    let keys = if options.retain_revisions < 100_000 {
        20
    } else {
        u64::MAX
    };
    let store = Store::open(backend, options).unwrap();
    let resource = store.resource("core/configmaps");
    let (start, cpu_before) = (Instant::now(), cpu());
    let tasks: Vec<_> = (0..writers)
        .map(|writer| {
            let (store, resource) = (store.clone(), resource.clone());
            tokio::spawn(async move {
                let mut slowest = Vec::new();
                for n in 0u64.. {
                    if start.elapsed() > time {
                        return slowest;
                    }
                    let key = format!("ns{writer}/o{}", n % keys);
                    let value = object(&key, 900);
                    let asked = Instant::now();
                    let write = Write::create(&resource, key, value).expecting(Expect::Any);
                    store.commit(write).await.unwrap();
                    slowest.push(asked.elapsed());
                }
                slowest
            })
        })
        .collect();
    let mut all = Vec::new();
    for task in tasks {
        all.extend(task.await.unwrap());
    }
    let (took, used) = (start.elapsed(), cpu() - cpu_before);
    all.sort_unstable();
    println!(
        "{name}, {writers} writers: {:.0} commits/s, {:.1} µs CPU each, p50 {:?}, p99 {:?}, max {:?}",
        all.len() as f64 / took.as_secs_f64(),
        used.as_secs_f64() * 1e6 / all.len() as f64,
        all[all.len() / 2],
        all[all.len() * 99 / 100],
        all[all.len() - 1],
    );
    store.close().await;
}

async fn fan_out(watchers: usize, writes: u64, matching: bool) {
    let store = Store::open(Arc::new(MemoryBackend::new()), StoreOptions::default()).unwrap();
    let resource = store.resource("core/configmaps");
    let seen = Arc::new((AtomicUsize::new(0), tokio::sync::Notify::new()));
    for n in 0..watchers {
        let after = store.visible();
        let spec = match matching {
            true => WatchSpec::all(after),
            false => WatchSpec::namespace(after, format!("other{n}")),
        };
        let mut watcher = resource.watch(spec).unwrap();
        let seen = seen.clone();
        tokio::spawn(async move {
            while let Ok(events) = watcher.next_batch(64).await {
                let before = seen.0.fetch_add(events.len(), Ordering::Relaxed);
                if (before + events.len()).is_multiple_of(watchers) {
                    seen.1.notify_one();
                }
            }
        });
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    let (start, before) = (Instant::now(), cpu());
    for _ in 0..writes {
        let write = Write::create(&resource, "ns/x", object("ns/x", 900)).expecting(Expect::Any);
        store.commit(write).await.unwrap();
        // Wait, so that the watchers take each event separately, which is the expensive case.
        if matching {
            seen.1.notified().await;
        }
    }
    let used = (cpu() - before).as_secs_f64() * 1e9;
    let each = match matching {
        true => watchers as f64 * writes as f64,
        false => writes as f64,
    };
    println!(
        "{watchers} watchers ({}), {writes} events: {:.0} ns CPU per {}, wall {:?}",
        if matching {
            "all match"
        } else {
            "none matches"
        },
        used / each,
        if matching { "delivery" } else { "event" },
        start.elapsed(),
    );
    store.close().await;
}

async fn memory() {
    let options = || StoreOptions {
        ring_bytes: 0,
        ring_floor_bytes: 0,
        ..StoreOptions::default()
    };
    let store = Store::open(Arc::new(MemoryBackend::new()), options()).unwrap();
    let resource = store.resource("core/configmaps");
    let before = resident();
    const ENTRIES: usize = 50_000;
    for n in 0..ENTRIES {
        let key = format!("namespace-{}/object-number-{n}", n % 10);
        let value = object(&key, 1024 - 110);
        store
            .commit(Write::create(&resource, key, value))
            .await
            .unwrap();
    }
    let wire = resource.stats().bytes;
    let grown = resident() - before;
    println!(
        "{ENTRIES} entries of {} wire bytes: {} bytes resident each",
        wire / ENTRIES,
        grown / ENTRIES
    );
    let before = resident();
    const WATCHERS: usize = 100_000;
    let mut watchers = Vec::with_capacity(WATCHERS);
    for n in 0..WATCHERS {
        let spec = WatchSpec::namespace(store.visible(), format!("ns{}", n % 100));
        watchers.push(resource.watch(spec).unwrap());
    }
    println!(
        "{WATCHERS} idle watchers: {} bytes each ({} in the handle)",
        (resident() - before) / WATCHERS,
        size_of::<bareboat_storage::Watcher>()
    );
    println!(
        "an entry is {} bytes, an event {}",
        size_of::<bareboat_storage::Entry>(),
        size_of::<bareboat_storage::Event>()
    );
    store.close().await;
}

async fn load(folder: &std::path::Path) {
    let path = folder.join("load.db");
    let open = || {
        let backend = Arc::new(Sqlite::open(&path).unwrap());
        Store::open(backend, StoreOptions::default()).unwrap()
    };
    let store = open();
    let resource = store.resource("core/configmaps");
    for chunk in 0..10 {
        let writes = (0..1000).map(|n| {
            let key = format!("ns{}/object-{chunk}-{n}", n % 10);
            let value = object(&key, 1024 - 110);
            Write::create(&resource, key, value)
        });
        store.commit_many(writes.collect()).await.unwrap();
    }
    store.close().await;
    for _ in 0..3 {
        let (start, before) = (Instant::now(), resident());
        let store = open();
        let took = start.elapsed();
        let wire = store.resource("core/configmaps").stats().bytes / 10_000;
        let each = (resident() - before) / 10_000;
        println!(
            "10,000 objects of {wire} wire bytes loaded in {took:?}, {each} bytes resident each"
        );
        store.close().await;
    }
}

/// Measures a restart with a long history of few objects.
async fn history(folder: &std::path::Path) {
    let path = folder.join("history.db");
    let open = || {
        let backend = Arc::new(Sqlite::open(&path).unwrap());
        Store::open(backend, StoreOptions::default()).unwrap()
    };
    let store = open();
    let resource = store.resource("core/configmaps");
    for _ in 0..400 {
        let writes = (0..1000).map(|n| {
            let key = format!("ns{}/object-{n}", n % 10);
            let value = object(&key, 1024 - 110);
            Write::create(&resource, key, value).expecting(Expect::Any)
        });
        store.commit_many(writes.collect()).await.unwrap();
    }
    store.close().await;
    for _ in 0..3 {
        let (start, before) = (Instant::now(), cpu());
        let store = open();
        println!(
            "400,000 revisions of 1,000 objects opened in {:?}, {:?} CPU",
            start.elapsed(),
            cpu() - before
        );
        store.close().await;
    }
}

async fn sqlite_commits(folder: &std::path::Path) {
    for writers in [1, 64] {
        let file = Arc::new(Sqlite::open(folder.join(format!("only-{writers}.db"))).unwrap());
        commits("sqlite", file, writers, StoreOptions::default()).await;
    }
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let folder = std::env::args()
        .nth(1)
        .map_or_else(std::env::temp_dir, Into::into);
    let folder = tempfile::tempdir_in(folder).unwrap();
    match std::env::args().nth(2).as_deref() {
        Some("commits") => return sqlite_commits(folder.path()).await,
        Some("history") => return history(folder.path()).await,
        _ => {}
    }
    let before = resident();
    let backend = Arc::new(Sqlite::open(folder.path().join("empty.db")).unwrap());
    let store = Store::open(backend, StoreOptions::default()).unwrap();
    println!(
        "an empty store: {} KiB resident",
        (resident() - before) >> 10
    );
    store.close().await;
    load(folder.path()).await;
    memory().await;
    fan_out(500, 2000, true).await;
    fan_out(10_000, 20_000, false).await;
    history(folder.path()).await;
    for writers in [1, 64] {
        let memory = Arc::new(MemoryBackend::new());
        commits("memory", memory, writers, StoreOptions::default()).await;
        let open = |name| Arc::new(Sqlite::open(folder.path().join(name)).unwrap());
        let file = open(format!("{writers}.db"));
        commits("sqlite", file, writers, StoreOptions::default()).await;
        let options = StoreOptions {
            retain_revisions: 5000,
            ..StoreOptions::default()
        };
        let file = open(format!("{writers}-compacted.db"));
        commits("sqlite with compaction", file, writers, options).await;
    }
}
