//! What the listener puts into the queue.

use super::*;
use bareboat_storage::{Expect, MemoryBackend, StoreOptions, Write, WriteOp};
use std::collections::HashSet;

async fn create(store: &Store, resource: &str, key: &str, rest: &str) {
    let (namespace, name) = key.split_once('/').expect("a key");
    let value = format!(
        r#"{{"apiVersion":"v1","kind":"X","metadata":{{"name":"{name}","namespace":"{namespace}","uid":"{name}"}}{rest}}}"#
    );
    let write = Write::create(&store.resource(resource), key, value.into());
    store.commit(write).await.expect("it is stored");
}

async fn delete(store: &Store, resource: &str, key: &str) {
    let write = Write {
        resource: store.resource(resource),
        key: key.into(),
        expect: Expect::Any,
        change: WriteOp::Delete,
        actor: None,
        depends_on: Vec::new(),
        part_of: None,
    };
    store.commit(write).await.expect("it is deleted");
}

#[tokio::test]
async fn accounts_that_are_gone_cost_one_look_at_a_namespace() {
    let store =
        Store::open(Arc::new(MemoryBackend::new()), StoreOptions::default()).expect("a store");
    let names: Vec<String> = (0..30).map(|index| format!("a/n{index}")).collect();
    for name in &names {
        create(&store, ACCOUNTS, name, "").await;
        create(&store, SECRETS, name, &format!(r#","type":"{TYPE}""#)).await;
    }
    create(&store, ACCOUNTS, "b/robot", "").await;
    let mut feed = store.feed(None).expect("a feed");
    for name in &names {
        delete(&store, ACCOUNTS, name).await;
    }
    delete(&store, ACCOUNTS, "b/robot").await;
    let queue = Queue::new();
    let mut listener = SecretListener {
        queue: queue.clone(),
    };
    let mut seen = 0;
    while seen < names.len() + 1 {
        for (resource, event) in feed.next_batch(256).await.expect("events") {
            listener.on_event(&resource, &event);
            seen += 1;
        }
    }
    let expected = ["a", "b"].map(|namespace| Task::Sort(namespace.into()));
    assert_eq!(queue.keys(), HashSet::from(expected));
}
