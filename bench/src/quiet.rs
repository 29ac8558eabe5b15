//! Processor time of an idle server with objects and watchers.

use std::time::{Duration, Instant};

use futures_util::future::try_join_all;

use crate::bench::{Bench, namespace};
use crate::http1::{self, Connection};
use crate::load::Load;
use crate::rows::{Measuring, config_map};

const QUIET: &str = "bench-quiet";

/// Number of objects.
const OBJECTS: usize = 1_000;

/// Number of watchers.
const WATCHERS: usize = 100;

pub(crate) fn quiet<'a>(bench: &'a mut Bench<'_>) -> Measuring<'a> {
    Box::pin(async move {
        bench.post("/api/v1/namespaces", namespace(QUIET)).await?;
        let collection = format!("/api/v1/namespaces/{QUIET}/configmaps");
        let load = Load {
            operations: OBJECTS,
            limit: Duration::from_secs(300),
            ..bench.load(16, OBJECTS)
        };
        let request = |at: usize| bench.request("POST", &collection, &config_map(at));
        load.run(&bench.server, request).await?;
        let path = format!("{collection}?watch=true&timeoutSeconds=600");
        let request = http1::request(&bench.server.access, "GET", &path, "application/json", b"");
        let watchers = (0..WATCHERS).map(|_| async {
            let connection = Connection::open(&bench.server.access, 4 * 1024).await?;
            connection.watch(&request).await
        });
        // Kept open and not read: no events follow.
        let _watchers = try_join_all(watchers).await?;
        bench.settle().await?;
        let (begun, before) = (Instant::now(), bench.server.cpu()?);
        let span = Duration::from_secs(if bench.args.quick { 5 } else { 20 });
        tokio::time::sleep(span).await;
        let used = bench.server.cpu()?.since(before);
        let share = used.as_secs_f64() / begun.elapsed().as_secs_f64();
        bench.figures.set("quiet", share * 100.0);
        Ok(())
    })
}
