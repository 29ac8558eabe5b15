//! Checks of order and freshness: stores of one log have one history, and read what others wrote.

use std::sync::Arc;
use std::time::Duration;

use bareboat_storage::{Expect, Store, WatchSpec, Write};

use super::{FRESH, RESOURCE, Shared, number, object, open, run};
use crate::plan;
use crate::proxy::Proxy;

/// Collects all events of a store after a revision up to another one.
async fn events(store: &Store, after: u64, upto: u64) -> Vec<(u64, u64)> {
    let mut watcher = store
        .resource(RESOURCE)
        .watch(WatchSpec::all(after))
        .unwrap();
    let mut seen: Vec<(u64, u64)> = Vec::new();
    while seen.last().is_none_or(|(revision, _)| *revision < upto) {
        let next = watcher.next_batch(500).await.unwrap();
        seen.extend(
            next.iter()
                .map(|event| (event.rev, number(event.entry.json()))),
        );
    }
    seen
}

/// Two stores write at the same time: both have the same digest, and watchers of both see the same events.
pub fn two_stores_have_the_same_history(database: &dyn Shared) {
    run(async {
        let engines = [0, 1].map(|_| database.open(&database.url(database.port(), "order_same")));
        let stores = engines
            .each_ref()
            .map(|engine| Store::open(engine.clone(), Default::default()).unwrap());
        let after = stores[0].visible();
        let writes = plan::count(2_000, 100_000);
        let watching: Vec<_> = stores
            .iter()
            .map(|store| {
                let store = store.clone();
                tokio::spawn(async move { events(&store, after, after + writes).await })
            })
            .collect();
        let tasks: Vec<_> = (0..20)
            .map(|task| {
                let store = stores[task as usize % 2].clone();
                tokio::spawn(async move {
                    let resource = store.resource(RESOURCE);
                    for n in 0..writes / 20 {
                        let key = format!("k{}", (task * 31 + n) % 500);
                        let write = Write::create(&resource, key, object(task * 1_000_000 + n));
                        store.commit(write.expecting(Expect::Any)).await.unwrap();
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        let mut seen = Vec::new();
        for (store, watching) in stores.iter().zip(watching) {
            assert!(store.freshen(FRESH).await.unwrap());
            assert_eq!(store.visible(), after + writes);
            seen.push(watching.await.unwrap());
        }
        let revisions = seen[0].iter().map(|(revision, _)| *revision);
        assert!(
            revisions.eq(after + 1..=after + writes),
            "a gap or a repetition"
        );
        assert!(seen[0] == seen[1]);
        let marks = engines.each_ref().map(|engine| engine.mark().unwrap());
        assert_eq!(marks[0], marks[1]);
        println!("{writes} writes, {:?}", marks[0]);
        for store in &stores {
            store.close().await;
        }
    });
}

/// A store whose connection is slow still reads everything that others were answered before.
pub fn a_slow_store_reads_what_others_wrote(database: &dyn Shared) {
    run(async {
        let proxy = Proxy::to(database.port());
        let writer = open(database, database.port(), "order_slow");
        let reader = open(database, proxy.port, "order_slow");
        proxy.set_delay(Duration::from_millis(plan::count(50, 200)));
        let reads = plan::count(200, 100_000);
        // Many tasks: they share what waits for the slow connection.
        let tasks: Vec<_> = (0..50_u64)
            .map(|task| {
                let (writer, reader) = (writer.clone(), reader.clone());
                tokio::spawn(async move {
                    let here = writer.resource(RESOURCE);
                    let there = reader.resource(RESOURCE);
                    for n in 0..reads / 50 {
                        let key: Arc<str> = format!("k{task}").into();
                        let write = Write::create(&here, key.clone(), object(n));
                        let done = writer.commit(write.expecting(Expect::Any)).await.unwrap();
                        assert!(reader.freshen(FRESH).await.unwrap());
                        let found = there.get(&key).unwrap();
                        assert_eq!(found.revision(), done.revision);
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        proxy.set_delay(Duration::ZERO);
        writer.close().await;
        reader.close().await;
    });
}
