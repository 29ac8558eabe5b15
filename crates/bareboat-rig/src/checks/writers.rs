//! Checks of many writers of one object.

use std::time::{Duration, Instant};

use bareboat_storage::{CommitError, Write};

use super::{FRESH, RESOURCE, Shared, number, object, open, run};
use crate::plan;

/// Clients of three stores change one object; no change is lost, and no client waits much longer than the others.
pub fn one_hot_object_starves_no_client(database: &dyn Shared) {
    run(async {
        let stores = [0, 1, 2].map(|_| open(database, database.port(), "hot"));
        let resource = stores[0].resource(RESOURCE);
        let first = Write::create(&resource, "hot", object(0));
        stores[0].commit(first).await.unwrap();
        let (clients, changes) = (plan::count(12, 64), plan::count(15, 300));
        let tasks: Vec<_> = (0..clients)
            .map(|task| {
                let store = stores[task as usize % 3].clone();
                tokio::spawn(async move {
                    assert!(store.freshen(FRESH).await.unwrap());
                    let resource = store.resource(RESOURCE);
                    let start = Instant::now();
                    let mut found = resource.get("hot").unwrap();
                    for _ in 0..changes {
                        loop {
                            let next = object(number(found.json()) + 1);
                            match store.commit(Write::replace(&resource, &found, next)).await {
                                Ok(done) => {
                                    found = done.entry;
                                    break;
                                }
                                Err(CommitError::Conflict { found: Some(now) }) => found = now,
                                Err(other) => panic!("unexpected: {other}"),
                            }
                        }
                    }
                    start.elapsed()
                })
            })
            .collect();
        let mut waits: Vec<Duration> = Vec::new();
        for task in tasks {
            waits.push(task.await.unwrap());
        }
        waits.sort();
        let (median, slowest) = (waits[waits.len() / 2], waits[waits.len() - 1]);
        let rate = (clients * changes) as f64 / slowest.as_secs_f64();
        println!("{rate:.0} changes a second; median {median:?}, slowest client {slowest:?}");
        assert!(slowest <= median * 10);
        for store in &stores {
            assert!(store.freshen(FRESH).await.unwrap());
            let last = store.resource(RESOURCE).get("hot").unwrap();
            assert_eq!(number(last.json()), clients * changes);
            store.close().await;
        }
    });
}
