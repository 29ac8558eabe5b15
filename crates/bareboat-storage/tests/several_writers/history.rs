//! Tests of stores with failing connections to one log. The results are checked against the log, which has the order of
//! all writes.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bareboat_storage::{
    Backend, CommitError, EventKind, MemoryBackend, PageLimit, Stop, Store, StoreOptions,
    WatchSpec, Write,
};

use super::shaky::Shaky;
use super::{number, object, wait_for};

const STORES: usize = 3;
const TASKS: usize = 9;
const KEYS: u64 = 5;

/// An operation of a client.
struct Operation {
    key: String,
    /// The content, unique among all operations; `None` for a deletion.
    content: Option<u64>,
    /// The revision that the operation replaces; 0 for a creation.
    found: u64,
    begun: Instant,
    ended: Instant,
    outcome: Outcome,
}

enum Outcome {
    Written(u64),
    Refused,
    Unknown,
}

async fn client(store: Store, task: u64, operations: u64) -> Vec<Operation> {
    let resource = store.resource("core/configmaps");
    let mut done = Vec::new();
    for n in 0..operations {
        let key = format!("k{}", (task * 7 + n * 3) % KEYS);
        let content = task * 1_000_000 + n;
        let found = resource.get(&key);
        let begun = Instant::now();
        let (write, content) = match &found {
            None => (
                Write::create(&resource, key.clone(), object(content)),
                Some(content),
            ),
            Some(found) if n % 4 == 0 => (Write::delete(&resource, found), None),
            Some(found) => (
                Write::replace(&resource, found, object(content)),
                Some(content),
            ),
        };
        let outcome = match store.commit(write).await {
            Ok(written) => Outcome::Written(written.revision),
            Err(CommitError::Unknown(_)) => Outcome::Unknown,
            Err(
                CommitError::AlreadyExists { .. }
                | CommitError::Conflict { .. }
                | CommitError::NotFound
                | CommitError::Unreachable,
            ) => Outcome::Refused,
            Err(other) => panic!("unexpected: {other}"),
        };
        done.push(Operation {
            key,
            content,
            found: found.map_or(0, |found| found.revision()),
            begun,
            ended: Instant::now(),
            outcome,
        });
        tokio::time::sleep(Duration::from_micros(300)).await;
    }
    done
}

/// A record of the log: its key, the revision that it replaced, its content.
type Row = (String, u64, Option<u64>);

fn rows(log: &MemoryBackend, after: u64) -> BTreeMap<u64, Row> {
    let limit = PageLimit {
        changes: usize::MAX,
        bytes: usize::MAX,
    };
    let last = log.mark().unwrap().last;
    let page = log.read_since(None, after, last, limit, &Stop::default());
    let changes = page.unwrap().changes.into_iter();
    changes
        .map(|change| {
            let record = change.record;
            let content = record.value.map(|value| number(&value.to_bytes()));
            (
                record.revision,
                (record.key.to_string(), record.prev, content),
            )
        })
        .collect()
}

/// Checks every operation against the log.
fn check(operations: &[Operation], rows: &BTreeMap<u64, Row>, after: u64) {
    let revisions: Vec<u64> = rows.keys().copied().collect();
    let expected: Vec<u64> = (after + 1..=after + rows.len() as u64).collect();
    assert_eq!(revisions, expected, "revisions are consecutive");
    // Each record replaces the newest record of its key.
    let mut heads: BTreeMap<&str, u64> = BTreeMap::new();
    for (revision, (key, prev, content)) in rows {
        assert_eq!(heads.get(&**key).copied().unwrap_or(0), *prev, "{revision}");
        match content {
            Some(_) => heads.insert(key, *revision),
            None => heads.remove(&**key),
        };
    }
    let mut contents: BTreeMap<u64, u64> = BTreeMap::new();
    for (revision, (_, _, content)) in rows {
        if let Some(content) = content {
            assert!(
                contents.insert(*content, *revision).is_none(),
                "written twice"
            );
        }
    }
    let mut written: Vec<(Instant, Instant, u64)> = Vec::new();
    for operation in operations {
        match operation.outcome {
            Outcome::Written(revision) => {
                let row = &rows[&revision];
                let own = (operation.key.clone(), operation.found, operation.content);
                assert_eq!(*row, own, "{revision}");
                written.push((operation.begun, operation.ended, revision));
            }
            Outcome::Refused => {
                let found = operation.content.and_then(|own| contents.get(&own));
                assert!(found.is_none(), "a refused write is in the log");
            }
            Outcome::Unknown => {}
        }
    }
    // Real time: an operation that was answered before another began has a lower revision.
    written.sort_by_key(|(_, ended, _)| *ended);
    let mut starts: Vec<_> = written.iter().collect();
    starts.sort_by_key(|(begun, ..)| *begun);
    let (mut next, mut highest) = (0, 0);
    for (begun, _, revision) in starts {
        while next < written.len() && written[next].1 < *begun {
            highest = highest.max(written[next].2);
            next += 1;
        }
        assert!(*revision > highest, "{revision} is below {highest}");
    }
}

async fn run(seed: u64, faults: u64, operations: u64) {
    let log = MemoryBackend::new().shared();
    let after = log.mark().unwrap().last;
    let connections: Vec<_> = (0..STORES as u64)
        .map(|n| Shaky::new(&log, seed + n + 1, faults))
        .collect();
    let stores: Vec<Store> = connections
        .iter()
        .map(|shaky| Store::open(shaky.clone(), StoreOptions::default()).unwrap())
        .collect();
    let watchers: Vec<_> = stores
        .iter()
        .map(|store| {
            let resource = store.resource("core/configmaps");
            resource.watch(WatchSpec::all(after)).unwrap()
        })
        .collect();
    let clients: Vec<_> = (0..TASKS)
        .map(|task| {
            let store = stores[task % STORES].clone();
            tokio::spawn(client(store, task as u64, operations))
        })
        .collect();
    let mut all = Vec::new();
    for client in clients {
        all.extend(client.await.unwrap());
    }
    for shaky in &connections {
        shaky.faults.store(0, Ordering::SeqCst);
    }
    // The next write of a store resolves its batch with an unknown outcome.
    for (store, content) in stores.iter().zip(9_000_000..) {
        let resource = store.resource("core/secrets");
        let write = Write::create(&resource, "end", object(content));
        store
            .commit(write.expecting(bareboat_storage::Expect::Any))
            .await
            .unwrap();
    }
    let last = log.mark().unwrap().last;
    for store in &stores {
        wait_for(|| store.visible() == last).await;
        assert!(store.poison().is_none());
    }
    let rows = rows(&log, after);
    let of_clients: BTreeMap<u64, Row> = rows
        .iter()
        .filter(|(_, (key, ..))| key != "end")
        .map(|(revision, row)| (*revision, row.clone()))
        .collect();
    assert_eq!(rows.len() - of_clients.len(), STORES);
    check(&all, &rows, after);
    // Every watcher received every record once and in order.
    for mut watcher in watchers {
        let mut reported = Vec::new();
        while reported.len() < of_clients.len() {
            for event in watcher.next_batch(64).await.unwrap() {
                let content =
                    (event.kind != EventKind::Deleted).then(|| number(event.entry.json()));
                reported.push((event.rev, (event.key().to_owned(), content)));
            }
        }
        let expected: Vec<_> = of_clients
            .iter()
            .map(|(revision, (key, _, content))| (*revision, (key.clone(), *content)))
            .collect();
        assert_eq!(reported, expected);
    }
    if faults > 0 {
        let unknown: u64 = connections
            .iter()
            .map(|shaky| shaky.unknown.load(Ordering::Relaxed))
            .sum();
        assert!(unknown > 0, "no answer was lost");
    }
    let written = |operation: &&Operation| matches!(operation.outcome, Outcome::Written(_));
    assert!(all.iter().filter(written).count() > 20);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_log_explains_every_answer() {
    run(11, 0, 150).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_log_explains_every_answer_when_connections_fail() {
    for seed in [100, 200, 300] {
        run(seed, 20, 100).await;
    }
}

/// Checks that the checker finds each kind of error.
#[test]
fn the_checker_finds_lost_doubled_and_misplaced_writes() {
    let now = Instant::now();
    let later = now + Duration::from_secs(1);
    let operation = |content, found, revision, begun, ended| Operation {
        key: "k".into(),
        content: Some(content),
        found,
        begun,
        ended,
        outcome: Outcome::Written(revision),
    };
    let row = |prev, content| ("k".to_owned(), prev, Some(content));
    let good = BTreeMap::from([(2, row(0, 1)), (3, row(2, 2))]);
    let two = |first: u64, second: u64| {
        vec![
            operation(1, 0, first, now, now),
            operation(2, first, second, later, later),
        ]
    };
    check(&two(2, 3), &good, 1);
    let fails = |operations: Vec<Operation>, rows: &BTreeMap<u64, Row>| {
        let check = std::panic::AssertUnwindSafe(|| check(&operations, rows, 1));
        std::panic::catch_unwind(check).is_err()
    };
    assert!(fails(two(2, 3), &BTreeMap::from([(2, row(0, 1))])), "lost");
    let doubled = BTreeMap::from([(2, row(0, 1)), (3, row(2, 2)), (4, row(3, 2))]);
    assert!(fails(two(2, 3), &doubled), "doubled");
    let gap = BTreeMap::from([(2, row(0, 1)), (4, row(2, 2))]);
    assert!(fails(two(2, 4), &gap), "a gap");
    let stale = BTreeMap::from([(2, row(0, 1)), (3, row(0, 2))]);
    assert!(fails(two(2, 3), &stale), "a stale decision");
    let backwards = vec![
        operation(1, 0, 2, later, later),
        operation(2, 2, 3, now, now),
    ];
    assert!(fails(backwards, &good), "an order against time");
}
