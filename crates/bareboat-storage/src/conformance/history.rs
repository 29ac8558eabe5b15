//! Tests of snapshots, exact lists of past states, restarts, compaction.

use super::*;
use crate::{Appended, Batch, PageLimit, Record, SnapshotError, Stop};

/// Checks that a snapshot does not change during writes.
pub fn snapshots_never_change(site: &dyn Site) {
    run(async {
        let store = open(site);
        let resource = store.resource("core/configmaps");
        scribble(&store, 40, 7).await;
        let snapshot = resource.snapshot();
        let then = state_of(&snapshot);
        assert_eq!(snapshot.revision(), store.visible());
        scribble(&store, 40, 8).await;
        assert_eq!(state_of(&snapshot), then);
        let keys: Vec<_> = snapshot
            .range("ns1/", None)
            .map(|e| e.key().to_owned())
            .collect();
        assert!(keys.is_sorted() && keys.iter().all(|key| key.starts_with("ns1/")));
        let rest = snapshot.range("ns1/", keys.first().map(String::as_str));
        assert_eq!(rest.count(), keys.len().saturating_sub(1));
        assert_eq!(snapshot.count("ns1/", None), keys.len());
        store.close().await;
    });
}

async fn history_is_exact(store: &Store, model: &Model) {
    let resource = store.resource("core/configmaps");
    for (revision, state) in &model.states {
        let snapshot = resource
            .snapshot_at(*revision)
            .await
            .expect("not compacted");
        assert_eq!(snapshot.revision(), *revision);
        assert_eq!(&state_of(&snapshot), state, "as of {revision}");
    }
    let future = resource.snapshot_at(store.visible() + 1).await;
    assert!(matches!(future, Err(SnapshotError::Future { .. })));
}

/// Checks that every past state can be listed by undoing recent events.
pub fn past_states_are_exact_from_memory(site: &dyn Site) {
    run(async {
        let store = open(site);
        let model = scribble(&store, 150, 42).await;
        history_is_exact(&store, &model).await;
        store.close().await;
    });
}

/// Checks that every past state can be listed from the log.
pub fn past_states_are_exact_from_the_log(site: &dyn Site) {
    run(async {
        let store = open_with(site, forgetful());
        let model = scribble(&store, 150, 43).await;
        history_is_exact(&store, &model).await;
        store.close().await;
    });
}

/// Checks that the log keeps who wrote a record, and its logical cluster.
pub fn records_keep_their_actor_and_cluster(site: &dyn Site) {
    let backend = site.open();
    let record = |revision, prev, cluster: &str, actor: Option<&str>, value| Record {
        revision,
        prev,
        cluster: cluster.into(),
        resource: "core/configmaps".into(),
        key: "a/b".into(),
        actor: actor.map(Into::into),
        value,
    };
    let base = backend.mark().expect("the log can be read");
    let (first, alice) = (base.last + 1, Some(r#"{"user":"alice \u00e9 'x'"}"#));
    let value = || Some(crate::Value::new(object("a/b", 1)));
    let records = vec![
        record(first, 0, "", alice, value()),
        record(first + 1, 0, "team-a", None, value()),
        record(first + 2, first, "", Some(""), None),
    ];
    let batch = Batch {
        id: 1,
        writer: 2,
        records: records.clone(),
    };
    let end = match backend.append(&base, &batch) {
        Ok(Appended::Done(end)) => end,
        other => panic!("{other:?}"),
    };
    assert_eq!(end.last, first + 2);
    let whole = PageLimit {
        changes: 10,
        bytes: 1 << 20,
    };
    let read = |backend: &dyn Backend, resource| {
        let stop = Stop::default();
        let page = backend.read_since(resource, base.last, end.last, whole, &stop);
        let changes = page.expect("the history can be read").changes;
        changes.into_iter().map(|change| change.record).collect()
    };
    let all: Vec<Record> = read(&*backend, None);
    assert_eq!(all, records);
    let own: Vec<Record> = read(&*backend, Some("core/configmaps"));
    assert_eq!(own, [records[0].clone(), records[2].clone()]);
    backend.close().expect("the log can be closed");
    drop(backend);
    let backend = site.open();
    let mut loaded = Vec::new();
    backend
        .load(base.last, &mut |record| loaded.push(record))
        .expect("the log can be read");
    assert_eq!(loaded, records);
}

/// Checks that committed objects, their revisions and their history survive a restart.
pub fn a_restart_keeps_everything(site: &dyn Site) {
    run(async {
        let store = open(site);
        let model = scribble(&store, 200, 44).await;
        let before = state_of(&store.resource("core/configmaps").snapshot());
        let last = store.visible();
        store.close().await;
        let store = open(site);
        assert_eq!(store.visible(), last);
        let names: Vec<_> = store
            .resources()
            .iter()
            .map(|r| r.name().to_owned())
            .collect();
        assert!(names.contains(&"apps/deployments".to_owned()));
        let resource = store.resource("core/configmaps");
        assert_eq!(state_of(&resource.snapshot()), before);
        history_is_exact(&store, &model).await;
        assert_eq!(put(&store, &resource, "ns/new", 1).await.revision, last + 1);
        store.close().await;
    });
}

/// Checks that opening reads the state and later records, but no records that were replaced before.
pub fn opening_skips_replaced_records(site: &dyn Site) {
    run(async {
        let store = open(site);
        let model = scribble(&store, 300, 50).await;
        store.close().await;
        let backend = site.open();
        let last = backend.mark().expect("the log is read").last;
        for after in [last - 250, last - 100, last - 1, last] {
            let (mut state, mut later) = (BTreeMap::new(), Vec::new());
            let mut previous = 0;
            backend
                .load(after, &mut |record| {
                    assert!(record.revision > previous, "in order");
                    previous = record.revision;
                    if record.revision > after {
                        later.push(record.revision);
                    } else if &*record.resource == "core/configmaps" {
                        let value = record.value.expect("no tombstones");
                        let entry = value.entry(&record.key, record.revision);
                        let entry = entry.expect("an object");
                        let seen = (entry.revision(), content(&entry));
                        let known = state.insert(entry.key().to_owned(), seen);
                        assert!(known.is_none(), "each key once");
                    }
                })
                .expect("the log is read");
            assert_eq!(Some(&state), model.states.get(&after), "as of {after}");
            assert_eq!(later.len() as u64, last - after);
        }
        backend.close().expect("the log is closed");
    });
}

/// Checks that the counter never decreases, even if the last record is compacted.
pub fn a_restart_keeps_counting_after_a_compacted_deletion(site: &dyn Site) {
    run(async {
        let store = open(site);
        let resource = store.resource("core/configmaps");
        put(&store, &resource, "ns/x", 1).await;
        let last = delete(&store, &resource, "ns/x").await.revision;
        store.compact(last).await.expect("compaction");
        store.close().await;
        let store = open(site);
        assert_eq!((store.visible(), store.floor()), (last, last));
        let resource = store.resource("core/configmaps");
        assert_eq!(put(&store, &resource, "ns/x", 1).await.revision, last + 1);
        store.close().await;
    });
}

/// Checks that reads below the floor are refused, and that reads from the floor on are exact,
/// before and after a restart.
pub fn compaction_deletes_only_below_the_floor(site: &dyn Site) {
    run(async {
        let options = StoreOptions {
            compact_rows: 16,
            ..forgetful()
        };
        let mut store = open_with(site, options.clone());
        let mut model = scribble(&store, 200, 45).await;
        let revisions: Vec<u64> = model.states.keys().copied().collect();
        for floor in [
            revisions[60],
            revisions[140],
            revisions[140],
            revisions[200],
        ] {
            let size = store.stats().backend.bytes;
            store.compact(floor).await.expect("compaction");
            assert_eq!(store.floor(), floor);
            assert!(size == 0 || store.stats().backend.bytes > 0);
            let resource = store.resource("core/configmaps");
            let below = resource.watch(WatchSpec::all(floor - 1));
            assert!(
                matches!(below.err(), Some(crate::WatchError::Expired { floor: f }) if f == floor)
            );
            let below = resource.snapshot_at(floor - 1).await;
            assert!(matches!(below, Err(SnapshotError::Expired { floor: f }) if f == floor));
            model.states.retain(|revision, _| *revision >= floor);
            history_is_exact(&store, &model).await;
            // The states before an event at the floor are compacted, so only later events are
            // compared.
            model.events.retain(|(revision, ..)| *revision > floor);
            resumes_everywhere(&store, &model).await;
            store.close().await;
            store = open_with(site, options.clone());
            assert_eq!(store.floor(), floor);
            history_is_exact(&store, &model).await;
        }
        store.close().await;
    });
}

/// Checks that the floor rises when there are too many revisions.
pub fn compaction_by_count_runs_by_itself(site: &dyn Site) {
    run(async {
        let options = StoreOptions {
            retain_revisions: 50,
            ..StoreOptions::default()
        };
        let store = open_with(site, options);
        let first = store.visible();
        scribble(&store, 200, 46).await;
        assert!(store.floor() > first);
        assert!(store.visible() - store.floor() <= 50 + 50 / 8 + 1);
        let resource = store.resource("core/configmaps");
        assert!(resource.stats().events <= 60);
        assert!(resource.watch(WatchSpec::all(first)).is_err());
        store.close().await;
    });
}

/// Checks that expired history is compacted although there are no more writes.
pub fn compaction_by_age_runs_by_itself(site: &dyn Site) {
    run(async {
        let options = StoreOptions {
            retain_for: Duration::from_millis(50),
            compact_every: Duration::from_millis(10),
            ..StoreOptions::default()
        };
        let store = open_with(site, options);
        scribble(&store, 30, 47).await;
        let last = store.visible();
        // The time limit of all tests ends this wait if the history is never compacted.
        while store.floor() < last || store.resource("core/configmaps").stats().events > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(store.floor(), last);
        store.close().await;
    });
}

/// Checks that a restart does not make history younger: what expired while no store was open is compacted at once, and
/// what did not is kept.
pub fn history_expires_by_its_time_after_a_restart(site: &dyn Site) {
    const RETAIN: Duration = Duration::from_secs(4);
    run(async {
        let store = open(site);
        scribble(&store, 20, 48).await;
        let (floor, old) = (store.floor(), store.visible());
        store.close().await;
        tokio::time::sleep(RETAIN + Duration::from_millis(500)).await;
        // It is younger than ten minutes.
        let store = open(site);
        assert_eq!(store.floor(), floor);
        scribble(&store, 20, 49).await;
        let last = store.visible();
        store.close().await;
        let options = StoreOptions {
            retain_for: RETAIN,
            compact_every: Duration::from_millis(10),
            ..StoreOptions::default()
        };
        let store = open_with(site, options);
        let opened = std::time::Instant::now();
        while store.floor() < old {
            assert!(
                opened.elapsed() < RETAIN,
                "the history is as old as the store was open"
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let floor = store.floor();
        assert!(floor < last || opened.elapsed() > RETAIN / 2, "{floor}");
        // The rest expires as well. The time limit of all tests ends this wait.
        while store.floor() < last {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        store.close().await;
    });
}

/// Checks that a pinned snapshot can be read although its revision was compacted.
pub fn pinned_snapshots_outlive_compaction(site: &dyn Site) {
    run(async {
        let options = StoreOptions {
            max_pins: 2,
            ..StoreOptions::default()
        };
        let store = open_with(site, options);
        let resource = store.resource("core/configmaps");
        let mut pinned = Vec::new();
        for n in 0..3 {
            put(&store, &resource, "ns/x", n).await;
            let snapshot = resource.snapshot();
            resource.pin(&snapshot);
            pinned.push(snapshot.revision());
        }
        store.compact(store.visible()).await.expect("compaction");
        let first = resource.snapshot_at(pinned[0]).await;
        assert!(
            matches!(first, Err(SnapshotError::Expired { .. })),
            "one too many"
        );
        let second = resource.snapshot_at(pinned[1]).await.expect("pinned");
        assert_eq!(second.get("ns/x").map(|entry| content(entry)), Some(1));
        store.close().await;
    });
}

/// Checks that repeated requests for a snapshot do not keep it forever.
pub fn a_pin_is_not_renewed(site: &dyn Site) {
    run(async {
        let options = StoreOptions {
            pin_for: Duration::from_millis(50),
            ..StoreOptions::default()
        };
        let store = open_with(site, options);
        let resource = store.resource("core/configmaps");
        put(&store, &resource, "ns/x", 0).await;
        let snapshot = resource.snapshot();
        resource.pin(&snapshot);
        put(&store, &resource, "ns/x", 1).await;
        store.compact(store.visible()).await.expect("compaction");
        let deadline = std::time::Instant::now() + Duration::from_secs(300);
        while let Some(pinned) = resource.pinned(snapshot.revision()) {
            assert!(std::time::Instant::now() < deadline, "it is still there");
            resource.pin(&pinned);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let gone = resource.snapshot_at(snapshot.revision()).await;
        assert!(matches!(gone, Err(SnapshotError::Expired { .. })));
        store.close().await;
    });
}
