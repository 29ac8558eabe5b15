//! Checks of requests that arrive at an unexpected time.

use bareboat_storage::{PageLimit, Stop, Write};

use super::{FRESH, RESOURCE, Shared, object, open, run, wait_for};
use crate::plan;
use crate::proxy::{Cut, Proxy};

/// A connection is lost while its append is held back on the way; the store repeats the append over a new connection;
/// then the first one arrives.
pub fn a_request_that_arrives_late_changes_nothing(database: &dyn Shared) {
    run(async {
        let proxy = Proxy::to(database.port());
        let engine = database.open(&database.url(database.port(), "late"));
        let store = open(database, proxy.port, "late");
        let resource = store.resource(RESOURCE);
        let after = store.visible();
        let rounds = plan::count(5, 200);
        for n in 0..rounds {
            let key = format!("late-{n}-");
            proxy.cut(Cut::Late(key.clone().into_bytes()));
            let done = store.commit(Write::create(&resource, key, object(n))).await;
            assert_eq!(done.unwrap().revision, after + 2 * n + 1);
            assert!(proxy.has_cut());
            let next = Write::create(&resource, format!("next-{n}-"), object(n));
            // One more batch, so that the late one is not the last.
            store.commit(next).await.unwrap();
            proxy.release();
        }
        // Long enough for the last one to arrive.
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        assert!(store.freshen(FRESH).await.unwrap());
        let end = after + 2 * rounds;
        wait_for("the log has its length", || {
            engine.mark().unwrap().last >= end
        })
        .await;
        assert_eq!(engine.mark().unwrap().last, end);
        let limit = PageLimit {
            changes: usize::MAX,
            bytes: usize::MAX,
        };
        let page = engine.read_since(None, after, end, limit, &Stop::default());
        let changes = page.unwrap().changes;
        assert_eq!(changes.len() as u64, 2 * rounds);
        let revisions = changes.iter().map(|change| change.record.revision);
        assert!(revisions.eq(after + 1..=end));
        assert_eq!(resource.len() as u64, 2 * rounds);
        store.close().await;
        engine.close().unwrap();
    });
}
