//! Checks of the largest objects and batches.

use bareboat_storage::{CommitError, Write};
use bytes::Bytes;

use super::{RESOURCE, Shared, open, run};
use crate::plan;

fn of_size(bytes: usize) -> Bytes {
    let head = r#"{"apiVersion":"v1","kind":"X","metadata":{"name":"x"},"p":""#;
    let filler = "p".repeat(bytes - head.len() - 2);
    format!("{head}{filler}\"}}").into()
}

/// An object of exactly the limit is stored, one byte more is refused with the limit in the message, and many large
/// objects at once are split into several batches.
pub fn objects_at_the_limit_are_stored_and_larger_ones_refused(database: &dyn Shared) {
    run(async {
        let engine = database.open(&database.url(database.port(), "limits"));
        let limit = engine.limits().value_bytes;
        engine.close().unwrap();
        let store = open(database, database.port(), "limits");
        let limit = limit.min(store.max_value_bytes());
        let resource = store.resource(RESOURCE);
        for (key, size) in [("below", limit - 1), ("at", limit)] {
            let write = Write::create(&resource, key, of_size(size));
            store.commit(write).await.unwrap();
            assert_eq!(
                resource.get(key).unwrap().persisted().0.len()
                    + resource.get(key).unwrap().persisted().1.len(),
                size
            );
        }
        let write = Write::create(&resource, "above", of_size(limit + 1));
        let refused = store.commit(write).await.unwrap_err();
        assert!(
            matches!(refused, CommitError::TooLarge { .. }),
            "{refused:?}"
        );
        assert!(
            refused.to_string().contains(&limit.to_string()),
            "{refused}"
        );
        // More than any engine takes in one batch.
        let many = plan::count(128, 1024);
        let tasks: Vec<_> = (0..many)
            .map(|n| {
                let store = store.clone();
                tokio::spawn(async move {
                    let resource = store.resource(RESOURCE);
                    let write = Write::create(&resource, format!("m{n}"), of_size(100 << 10));
                    store.commit(write).await.unwrap();
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(resource.len() as u64, many + 2);
        store.close().await;
        // What another store reads.
        let again = open(database, database.port(), "limits");
        assert_eq!(again.resource(RESOURCE).len() as u64, many + 2);
        again.close().await;
    });
}
