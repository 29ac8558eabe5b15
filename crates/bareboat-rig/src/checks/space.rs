//! The check of a full disk, for engines whose tests can make one.

use std::time::{Duration, Instant};

use bareboat_storage::{CommitError, Expect, Store, WatchSpec, Write};
use bytes::Bytes;

use crate::plan;

use super::{FRESH, RESOURCE, digits, object, run};

/// Returns an object that cannot be compressed to much less.
fn large(n: u64, bytes: usize) -> Bytes {
    let filler = digits(n, bytes);
    format!(r#"{{"apiVersion":"v1","kind":"X","metadata":{{"name":"x"}},"p":"{filler}{n}"}}"#)
        .into()
}

/// Fills the disk of a store: writes are refused soon, reads and watches go on, and when there is space again writes
/// succeed without a restart. Objects have about `bytes` bytes.
pub fn a_full_disk_fails_writes_and_not_reads(
    store: &Store,
    bytes: usize,
    make_space: impl FnOnce(),
) {
    run(async {
        let resource = store.resource(RESOURCE);
        let first = store.commit(Write::create(&resource, "first", object(1)));
        let first = first.await.unwrap();
        let mut watcher = resource.watch(WatchSpec::all(first.revision)).unwrap();
        let mut written = 0;
        let refused = loop {
            let start = Instant::now();
            let write = Write::create(&resource, format!("k{written}"), large(written, bytes));
            match store.commit(write).await {
                Ok(_) => written += 1,
                Err(error) => break (error, start.elapsed()),
            }
            assert!(written < 20_000, "there is no limit");
        };
        println!(
            "{written} writes, then {:?} after {:?}",
            refused.0, refused.1
        );
        assert!(matches!(refused.0, CommitError::Full), "{:?}", refused.0);
        let soon = plan::bound(Duration::from_secs(10), Duration::from_secs(1));
        assert!(refused.1 < soon, "{:?}", refused.1);
        assert!(store.poison().is_none());
        assert!(store.freshen(FRESH).await.unwrap());
        assert_eq!(resource.len() as u64, written + 1);
        let mut seen = 0;
        while seen < written {
            seen += watcher.next_batch(100).await.unwrap().len() as u64;
        }
        // It stays so until there is space.
        let again = Write::create(&resource, "again", large(0, bytes)).expecting(Expect::Any);
        assert!(store.commit(again).await.is_err());
        make_space();
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let write = Write::create(&resource, "after", large(1, bytes)).expecting(Expect::Any);
            match store.commit(write).await {
                Ok(_) => break,
                Err(error) => assert!(Instant::now() < deadline, "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let events = watcher.next_batch(9).await.unwrap();
        assert_eq!(events[0].key(), "after");
    });
}
