//! Tests of the counters of stores for metrics.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bareboat_storage::faults::{Fault, Faulty};
use bareboat_storage::{
    AppendResult, Expect, MemoryBackend, Resolution, Store, StoreActivity, Write,
};

use super::shaky::Shaky;
use super::{object, open, two, wait_for};

fn activity(store: &Store) -> StoreActivity {
    store.stats().activity
}

fn results(store: &Store, result: AppendResult) -> u64 {
    activity(store).append_results[result as usize]
}

fn resolved(store: &Store, resolution: Resolution) -> u64 {
    activity(store).resolutions[resolution as usize]
}

async fn put(store: &Store, key: &str) {
    let resource = store.resource("core/configmaps");
    let write = Write::create(&resource, key, object(1)).expecting(Expect::Any);
    store.commit(write).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn appends_are_counted_by_result() {
    let log = MemoryBackend::new().shared();
    let shaky = Shaky::new(&log, 7, 0);
    let store = open(shaky.clone());
    put(&store, "a").await;
    shaky.moved.store(100, Ordering::SeqCst);
    put(&store, "a").await;
    let counted = activity(&store);
    assert_eq!(results(&store, AppendResult::Stored), 2);
    assert_eq!(results(&store, AppendResult::Moved), 4);
    assert_eq!((counted.held_appends, counted.records), (1, 2));
    assert_eq!(counted.appends.counts.iter().sum::<u64>(), 6);
    assert!(counted.appends.sum > Duration::ZERO);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failures_and_what_became_of_unknown_outcomes_are_counted() {
    let faulty = Arc::new(Faulty::new(Arc::new(MemoryBackend::new().shared())));
    let store = open(faulty.clone());
    let resource = store.resource("core/configmaps");
    for (fault, key) in [(Fault::LostAnswer, "stored"), (Fault::LostRequest, "sent")] {
        faulty.set(Some(fault));
        let create = Write::create(&resource, key, object(1));
        assert!(store.commit(create).await.is_err());
        assert!(activity(&store).is_unresolved);
        faulty.set(None);
        wait_for(|| !activity(&store).is_unresolved).await;
    }
    // The repeated request stores the second batch.
    assert_eq!(resolved(&store, Resolution::Stored), 2);
    assert_eq!(resolved(&store, Resolution::Absent), 0);
    assert!(results(&store, AppendResult::Unknown) >= 2);
    assert_eq!(activity(&store).records, 2);
    faulty.set(Some(Fault::Unreachable));
    let create = Write::create(&resource, "no", object(1));
    assert!(store.commit(create).await.is_err());
    assert!(results(&store, AppendResult::Unreachable) >= 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_of_other_stores_and_barriers_are_counted() {
    let [here, there] = two();
    for key in ["a", "b", "c"] {
        put(&there, key).await;
    }
    assert!(here.freshen(Duration::from_secs(60)).await.unwrap());
    let counted = activity(&here);
    assert_eq!(counted.followed_records, 3);
    assert!((1..=3).contains(&counted.catch_ups));
    assert_eq!((counted.records, counted.behind), (0, 0));
    assert_eq!((counted.barrier_reads, counted.barrier_failures), (1, 0));
    assert_eq!(counted.barriers.counts.iter().sum::<u64>(), 1);
    assert_eq!(activity(&there).followed_records, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_epoch_and_the_age_of_the_history_are_known() {
    let log = MemoryBackend::new().shared();
    let store = open(Arc::new(log.clone()));
    let first = activity(&store);
    put(&store, "a").await;
    wait_for(|| activity(&store).floor_age > Duration::ZERO).await;
    let last = store.visible();
    store.compact(last).await.unwrap();
    wait_for(|| activity(&store).floor_age == Duration::ZERO).await;
    log.begin_epoch(0);
    wait_for(|| activity(&store).epoch == first.epoch + 1).await;
    assert_eq!((first.reloads, activity(&store).reloads), (0, 1));
}
