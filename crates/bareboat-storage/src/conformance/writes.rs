//! Tests of conflicts, order, many writers, transactions.

use super::*;
use crate::{CommitError, Whole};

/// Checks that of many creators of one key one wins, and the others receive its entry.
pub fn one_of_many_creators_wins(site: &dyn Site) {
    run(async {
        let store = open(site);
        let resource = store.resource("core/configmaps");
        let tasks: Vec<_> = (0..50)
            .map(|n| {
                let (store, resource) = (store.clone(), resource.clone());
                tokio::spawn(async move {
                    store
                        .commit(Write::create(&resource, "ns/one", object("ns/one", n)))
                        .await
                })
            })
            .collect();
        let (mut won, mut seen) = (Vec::new(), Vec::new());
        for task in tasks {
            match task.await.expect("no panic") {
                Ok(done) => won.push(done.revision),
                Err(CommitError::AlreadyExists { found }) => seen.push(found.revision()),
                Err(other) => panic!("unexpected: {other}"),
            }
        }
        assert_eq!(won.len(), 1);
        assert!(seen.iter().all(|revision| *revision == won[0]));
        store.close().await;
    });
}

/// Checks that counters incremented by many writers at once lose no increment.
pub fn compare_and_swap_loses_no_update(site: &dyn Site) {
    const TASKS: u64 = 8;
    const RAISES: u64 = 20;
    run(async {
        let store = open(site);
        let resource = store.resource("core/configmaps");
        put(&store, &resource, "ns/counter", 0).await;
        let tasks: Vec<_> = (0..TASKS)
            .map(|_| {
                let (store, resource) = (store.clone(), resource.clone());
                tokio::spawn(async move {
                    let mut found = resource.get("ns/counter").expect("it was created");
                    let mut raised = 0;
                    while raised < RAISES {
                        let next = object("ns/counter", content(&found) + 1);
                        match store.commit(Write::replace(&resource, &found, next)).await {
                            Ok(done) => {
                                raised += 1;
                                found = done.entry;
                            }
                            Err(CommitError::Conflict { found: Some(now) }) => {
                                assert!(now.revision() > found.revision());
                                found = now;
                            }
                            Err(other) => panic!("unexpected: {other}"),
                        }
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.expect("no panic");
        }
        let last = resource.get("ns/counter").expect("it is there");
        assert_eq!(content(&last), TASKS * RAISES);
        store.close().await;
    });
}

/// Checks each expectation with and without an object.
pub fn expectations_are_checked(site: &dyn Site) {
    run(async {
        let store = open(site);
        let resource = store.resource("core/configmaps");
        let there = put(&store, &resource, "ns/there", 1).await.revision;
        let value = object("ns/there", 2);
        let create = |key: &str| Write::create(&resource, key, value.clone());
        let remove = |key: &str| Write {
            change: crate::WriteOp::Delete,
            ..create(key)
        };
        let check = |write: Write| {
            let (store, rehearsed) = (&store, store.rehearse(write.clone()));
            async move {
                let done = store.commit(write).await;
                assert_eq!(
                    rehearsed.is_ok(),
                    done.is_ok(),
                    "a rehearsal tells the truth"
                );
                done
            }
        };
        use CommitError::{AlreadyExists, Conflict, NotFound};
        use Expect::{Absent, Any, Present, Revision};
        let lost = check(create("ns/there").expecting(Absent)).await;
        assert!(matches!(lost, Err(AlreadyExists { found }) if found.revision() == there));
        let lost = check(create("ns/there").expecting(Revision(there - 1))).await;
        assert!(matches!(lost, Err(Conflict { found: Some(found) }) if found.revision() == there));
        let lost = check(create("ns/gone").expecting(Revision(there))).await;
        assert!(matches!(lost, Err(Conflict { found: None })));
        let lost = check(create("ns/gone").expecting(Present)).await;
        assert!(matches!(lost, Err(NotFound)));
        let lost = check(remove("ns/gone").expecting(Any)).await;
        assert!(matches!(lost, Err(NotFound)));
        let done = check(create("ns/there").expecting(Revision(there))).await;
        let replaced = done.expect("the revision is right");
        assert_eq!(replaced.previous.map(|e| e.revision()), Some(there));
        check(create("ns/there").expecting(Present))
            .await
            .expect("it is there");
        let gone = check(remove("ns/there").expecting(Any))
            .await
            .expect("it is there");
        assert_eq!(gone.revision, gone.entry.revision() + 1);
        check(create("ns/there").expecting(Any))
            .await
            .expect("anything goes");
        let long = vec![b' '; StoreOptions::default().max_value_bytes + 1];
        let lost = store
            .commit(Write::create(&resource, "ns/long", long.into()))
            .await;
        assert!(matches!(lost, Err(CommitError::TooLarge { .. })));
        let lost = store
            .commit(Write::create(
                &resource,
                "ns/odd",
                Bytes::from_static(b"{}"),
            ))
            .await;
        assert!(matches!(lost, Err(CommitError::Malformed(_))));
        store.close().await;
    });
}

/// Checks that revisions increase over all resources, and that the visible revision is never older
/// than an answer.
pub fn revisions_rise_and_are_never_zero(site: &dyn Site) {
    run(async {
        let store = open(site);
        let mut last = store.visible();
        assert!(last > 0);
        for n in 0..20 {
            let resource = store.resource(if n % 2 == 0 {
                "core/configmaps"
            } else {
                "apps/a"
            });
            let done = put(&store, &resource, "ns/x", n).await;
            assert!(done.revision > last);
            assert!(store.visible() >= done.revision);
            last = done.revision;
        }
        let waited = store.wait_for(last + 1, Duration::from_millis(20)).await;
        assert!(!waited, "nothing came");
        let resource = store.resource("core/configmaps");
        let wait = store.wait_for(last + 1, Duration::from_secs(60));
        let (waited, _) = tokio::join!(wait, put(&store, &resource, "ns/x", 99));
        assert!(waited);
        store.close().await;
    });
}

/// Checks that an entry's bytes are the stored ones with the resourceVersion.
pub fn wire_bytes_contain_the_revision(site: &dyn Site) {
    run(async {
        let store = open(site);
        let resource = store.resource("core/configmaps");
        let stored = object("ns/x", 5);
        let done = store
            .commit(Write::create(&resource, "ns/x", stored.clone()))
            .await;
        let done = done.expect("a creation");
        store.close().await;
        let store = open(site);
        let loaded = store
            .resource("core/configmaps")
            .get("ns/x")
            .expect("it was stored");
        let member = format!(
            r#""metadata":{{"resourceVersion":"{}","name""#,
            done.revision
        );
        let expected = std::str::from_utf8(&stored)
            .expect("text")
            .replace(r#""metadata":{"name""#, &member);
        for entry in [&done.entry, &loaded] {
            assert_eq!(entry.json(), &expected);
            assert!(entry.persisted_eq(&stored));
            assert!(!entry.persisted_eq(&object("ns/x", 6)));
        }
        store.close().await;
    });
}

/// Checks that thousands of concurrent writes are all committed, each at its own revision.
pub fn thousands_of_concurrent_writes_are_committed(site: &dyn Site) {
    run(async {
        let options = StoreOptions {
            max_queue: 300,
            max_batch: 100,
            ..StoreOptions::default()
        };
        let store = open_with(site, options);
        let resource = store.resource("core/configmaps");
        let tasks: Vec<_> = (0..3000)
            .map(|n| {
                let (store, resource) = (store.clone(), resource.clone());
                tokio::spawn(async move {
                    let key = format!("ns/{n}");
                    put(&store, &resource, &key, n).await.revision
                })
            })
            .collect();
        let mut revisions = std::collections::BTreeSet::new();
        for task in tasks {
            revisions.insert(task.await.expect("no panic"));
        }
        assert_eq!(revisions.len(), 3000);
        assert_eq!(resource.len(), 3000);
        assert_eq!(resource.snapshot().count("ns/", Some("ns/2")), 888 + 999);
        store.close().await;
        let store = open(site);
        assert_eq!(store.resource("core/configmaps").len(), 3000);
        store.close().await;
    });
}

/// Checks that dropping the future of a queued write does not undo it.
pub fn a_dropped_future_does_not_cancel_a_queued_write(site: &dyn Site) {
    run(async {
        let store = open(site);
        let resource = store.resource("core/configmaps");
        for n in 0..20 {
            let key = format!("ns/{n}");
            let mut commit = Box::pin(put(&store, &resource, &key, n));
            // One poll queues the write.
            let once = std::future::poll_fn(|cx| std::task::Poll::Ready(commit.as_mut().poll(cx)));
            let _ = once.await;
            drop(commit);
        }
        put(&store, &resource, "ns/last", 0).await;
        assert_eq!(resource.len(), 21);
        store.close().await;
    });
}

/// Checks that a failed transaction stores nothing, and that a successful one is one step.
pub fn transactions_happen_together_or_not_at_all(site: &dyn Site) {
    run(async {
        let store = open(site);
        let resource = store.resource("core/configmaps");
        let other = store.resource("apps/deployments");
        put(&store, &resource, "ns/taken", 0).await;
        let before = store.visible();
        let create = |resource, key: &str| Write::create(resource, key, object(key, 1));
        let writes = vec![
            create(&resource, "ns/a"),
            create(&other, "ns/b"),
            create(&resource, "ns/a").expecting(Expect::Revision(before + 1)),
            create(&resource, "ns/taken"),
        ];
        let failed = store
            .commit_many(writes.clone())
            .await
            .expect_err("a key is taken");
        assert_eq!(failed.index, 3);
        assert_eq!(store.visible(), before);
        assert!(resource.get("ns/a").is_none() && other.is_empty());
        let done = store
            .commit_many(writes[..3].to_vec())
            .await
            .expect("nothing is taken");
        let revisions: Vec<_> = done.iter().map(|done| done.revision).collect();
        assert_eq!(revisions, [before + 1, before + 2, before + 3]);
        assert_eq!(resource.get("ns/a").map(|e| e.revision()), Some(before + 3));
        store.close().await;
    });
}

/// Checks that nothing is created in an object that is being deleted, or gone.
pub fn parts_of_what_is_deleted_are_refused(site: &dyn Site) {
    run(async {
        let store = open(site);
        let wholes = store.resource("example.com/wholes");
        let parts = store.resource("example.com/parts");
        let whole = || Whole {
            resource: wholes.clone(),
            key: "one".into(),
        };
        let part = |key: &str| Write::create(&parts, key, object(key, 1)).being_part_of(whole());
        let refused = |result: Result<Committed, CommitError>| {
            assert!(matches!(result, Err(CommitError::Ending)), "{result:?}");
        };
        refused(store.commit(part("ns/early")).await);
        put(&store, &wholes, "one", 1).await;
        store.commit(part("ns/good")).await.expect("it is there");
        let ending = r#"{"apiVersion":"v1","kind":"Whole","metadata":{"name":"one","uid":"u","deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["x"]}}"#;
        let found = wholes.get("one").expect("it is there");
        let ending = Write::replace(&wholes, &found, ending.into());
        // In one transaction, too.
        let together = store
            .commit_many(vec![ending.clone(), part("ns/same")])
            .await;
        let error = together.expect_err("it is being deleted").error;
        assert!(matches!(error, CommitError::Ending), "{error}");
        store.commit(ending).await.expect("it is replaced");
        refused(store.commit(part("ns/late")).await);
        assert!(matches!(
            store.rehearse(part("ns/late")),
            Err(CommitError::Ending)
        ));
        delete(&store, &wholes, "one").await;
        refused(store.commit(part("ns/later")).await);
        assert_eq!(parts.len(), 1);
        store.close().await;
    });
}
