//! Tests of watches, feeds and observers.

use super::*;
use crate::{FeedError, Observer, WatchError};

/// Checks that a watch resumes from every revision, out of the ring.
pub fn watches_resume_from_any_revision_in_memory(site: &dyn Site) {
    run(async {
        let store = open(site);
        let model = scribble(&store, 150, 1).await;
        resumes_everywhere(&store, &model).await;
        store.close().await;
    });
}

/// Checks that a watch resumes from every revision, out of the log.
pub fn watches_resume_from_any_revision_in_the_log(site: &dyn Site) {
    run(async {
        let store = open_with(site, forgetful());
        let model = scribble(&store, 150, 2).await;
        resumes_everywhere(&store, &model).await;
        store.close().await;
    });
}

/// Checks that a watch resumes from every revision after a restart, partly from the log and partly
/// from loaded events.
pub fn watches_resume_after_a_restart(site: &dyn Site) {
    run(async {
        let store = open(site);
        let model = scribble(&store, 150, 3).await;
        store.close().await;
        let options = StoreOptions {
            ring_preload: 60,
            ..StoreOptions::default()
        };
        let store = open_with(site, options);
        resumes_everywhere(&store, &model).await;
        store.close().await;
    });
}

/// Checks that a watcher that catches up from the log during writes sees every event once and in
/// order.
pub fn watches_resume_during_writes(site: &dyn Site) {
    run(async {
        let options = StoreOptions {
            // About twenty events: enough for a watcher to join, too few for it to start from.
            ring_bytes: 8 << 10,
            ring_floor_bytes: 0,
            ..StoreOptions::default()
        };
        let store = open_with(site, options);
        let start = store.visible();
        scribble(&store, 700, 4).await;
        let writer = tokio::spawn({
            let store = store.clone();
            async move { scribble(&store, 300, 5).await }
        });
        let resource = store.resource("core/configmaps");
        let mut revisions = Vec::new();
        let mut state = State::new();
        let mut watcher = resource
            .watch(WatchSpec::all(start))
            .expect("not compacted");
        let mut follow = |events: Vec<Arc<Event>>| {
            for event in events {
                revisions.push(event.rev);
                match event.kind {
                    EventKind::Deleted => state.remove(event.key()),
                    _ => {
                        let now = (event.entry.revision(), content(&event.entry));
                        state.insert(event.key().to_owned(), now)
                    }
                };
            }
        };
        // A watcher may be too slow for so short a ring; then it starts again at its last position.
        let mut at = start;
        while !writer.is_finished() || at < resource.changed_at() {
            match tokio::time::timeout(Duration::from_millis(50), watcher.next_batch(16)).await {
                Ok(Ok(events)) => {
                    at = events.last().map_or(at, |event| event.rev);
                    follow(events);
                }
                Ok(Err(WatchError::Lagged)) => {
                    watcher = resource.watch(WatchSpec::all(at)).expect("not compacted");
                }
                Ok(Err(other)) => panic!("unexpected: {other}"),
                Err(_) => {}
            }
        }
        assert!(revisions.is_sorted_by(|a, b| a < b));
        assert_eq!(state, state_of(&resource.snapshot()));
        store.close().await;
    });
}

/// Checks that namespace, name and label select events by their old and new states.
pub fn watchers_see_only_events_in_their_scope(site: &dyn Site) {
    run(async {
        let store = open(site);
        let resource = store.resource("core/configmaps");
        let start = store.visible();
        let specs = [
            (WatchSpec::all(start), 5),
            (WatchSpec::namespace(start, "a"), 4),
            (WatchSpec::name(start, "a/x"), 3),
            (WatchSpec::all(start).with_label("tier", "gold"), 3),
            (
                WatchSpec::namespace(start, "b").with_label("tier", "gold"),
                0,
            ),
            (WatchSpec::name(start, "a/x").with_label("tier", "gold"), 2),
            (WatchSpec::namespace(start, "nobody"), 0),
        ];
        let watch = |spec: &WatchSpec| resource.watch(spec.clone()).expect("not compacted");
        let mut early: Vec<_> = specs.iter().map(|(spec, _)| watch(spec)).collect();
        for (key, tier) in [
            ("a/x", "none"),
            ("a/x", "gold"),
            ("a/x", "none"),
            ("a/y", "gold"),
            ("b/x", "none"),
        ] {
            let value = labelled(key, 1, tier);
            let write = Write::create(&resource, key, value).expecting(Expect::Any);
            store.commit(write).await.expect("an unconditional write");
        }
        let mut late: Vec<_> = specs.iter().map(|(spec, _)| watch(spec)).collect();
        for watchers in [&mut early, &mut late] {
            for (watcher, (spec, count)) in watchers.iter_mut().zip(&specs) {
                assert_eq!(take(watcher, *count).await.len(), *count, "{spec:?}");
                assert!(is_quiet(watcher).await, "{spec:?}");
                assert_eq!(watcher.progress(), store.visible());
            }
        }
        assert_eq!(resource.stats().watchers, 2 * specs.len());
        drop((early, late));
        assert_eq!(resource.stats().watchers, 0);
        store.close().await;
    });
}

/// Checks that a watcher is closed when its due events leave the ring, and that one without due
/// events stays.
pub fn a_slow_watcher_is_closed_and_an_idle_one_is_not(site: &dyn Site) {
    run(async {
        let options = StoreOptions {
            ring_bytes: 4 << 10,
            ring_floor_bytes: 0,
            ..StoreOptions::default()
        };
        let store = open_with(site, options);
        let resource = store.resource("core/configmaps");
        let now = store.visible();
        let mut slow = resource.watch(WatchSpec::all(now)).expect("from now");
        let mut idle = resource
            .watch(WatchSpec::namespace(now, "idle"))
            .expect("from now");
        for n in 0..200 {
            put(&store, &resource, "busy/x", n).await;
        }
        assert!(matches!(slow.next_batch(1).await, Err(WatchError::Lagged)));
        assert!(is_quiet(&mut idle).await);
        put(&store, &resource, "idle/x", 1).await;
        assert_eq!(take(&mut idle, 1).await[0].key(), "idle/x");
        store.close().await;
    });
}

/// Checks that progress is the visible revision for a watcher without due events, and never beyond
/// due events.
pub fn bookmarks_never_pass_due_events(site: &dyn Site) {
    run(async {
        let store = open(site);
        let resource = store.resource("core/configmaps");
        let start = store.visible();
        let mut watcher = resource.watch(WatchSpec::all(start)).expect("from now");
        assert_eq!(watcher.progress(), start);
        put(&store, &resource, "ns/x", 1).await;
        put(&store, &resource, "ns/x", 2).await;
        assert_eq!(watcher.progress(), start);
        let first = watcher.next_batch(1).await.expect("due")[0].rev;
        assert_eq!(watcher.progress(), first);
        watcher.next_batch(1).await.expect("due");
        put(&store, &store.resource("apps/deployments"), "ns/x", 1).await;
        assert_eq!(watcher.progress(), store.visible());
        store.close().await;
    });
}

/// Checks that a feed has the events of all resources in order, from a revision or from now.
pub fn the_feed_has_all_events_in_order(site: &dyn Site) {
    run(async {
        let store = open(site);
        let start = store.visible();
        let mut live = store.feed(None).expect("from now");
        scribble(&store, 100, 6).await;
        let mut late = store.feed(Some(start)).expect("recent enough");
        for feed in [&mut live, &mut late] {
            let mut revisions = Vec::new();
            while revisions.len() < 100 {
                let batch = feed.next_batch(9).await.expect("events are due");
                revisions.extend(batch.iter().map(|(_, event)| event.rev));
            }
            let expected: Vec<u64> = (start + 1..=store.visible()).collect();
            assert_eq!(revisions, expected);
        }
        store.close().await;
        assert_eq!(live.next_batch(1).await.err(), Some(FeedError::Closed));
    });
}

/// Checks that a feed that missed events returns one error and continues with new events.
pub fn a_slow_feed_gets_one_error(site: &dyn Site) {
    run(async {
        let store = open_with(site, forgetful());
        let mut feed = store.feed(None).expect("from now");
        scribble(&store, 10, 9).await;
        assert_eq!(feed.next_batch(1).await.err(), Some(FeedError::Lagged));
        let done = put(&store, &store.resource("core/configmaps"), "ns/x", 1).await;
        let batch = feed.next_batch(9).await.expect("it goes on");
        assert_eq!(batch[0].1.rev, done.revision);
        store.close().await;
    });
}

#[derive(Default)]
struct Seen(parking_lot::Mutex<State>);

impl Observer for Seen {
    fn reset(&self, snapshot: &Snapshot) {
        *self.0.lock() = state_of(snapshot);
    }

    fn changed(&self, event: &Arc<Event>) {
        let mut state = self.0.lock();
        match event.kind {
            EventKind::Deleted => state.remove(event.key()),
            _ => state.insert(event.key().to_owned(), (event.rev, content(&event.entry))),
        };
    }
}

/// Checks that every view contains a write before the write is answered.
pub fn observers_see_a_write_before_its_answer(site: &dyn Site) {
    run(async {
        let store = open(site);
        let resource = store.resource("core/configmaps");
        scribble(&store, 30, 10).await;
        let seen = Arc::new(Seen::default());
        store.observe("core/configmaps", seen.clone());
        for n in 0..20 {
            put(&store, &resource, &format!("ns/{n}"), n).await;
            assert_eq!(*seen.0.lock(), state_of(&resource.snapshot()));
        }
        store.close().await;
    });
}

/// Checks that closing ends waits and refuses new writes.
pub fn closing_ends_watches_and_writes(site: &dyn Site) {
    run(async {
        let store = open(site);
        let resource = store.resource("core/configmaps");
        put(&store, &resource, "ns/x", 1).await;
        let mut watcher = resource
            .watch(WatchSpec::all(store.visible()))
            .expect("from now");
        let waiting = tokio::spawn(async move { watcher.next_batch(1).await.err() });
        tokio::task::yield_now().await;
        store.close().await;
        let ended = waiting.await.expect("no panic");
        assert!(matches!(ended, Some(WatchError::Closed)));
        let write = Write::create(&resource, "ns/y", object("ns/y", 1));
        let refused = store.commit(write).await;
        assert!(matches!(refused, Err(crate::CommitError::Closed)));
        assert!(resource.get("ns/x").is_some(), "reads go on");
    });
}
