//! Watchers: their memory when idle, and the cost of one event for each of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures_util::future::try_join_all;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::bench::{Bench, items, namespace};
use crate::http1::{self, Connection};
use crate::rows::Measuring;

const WATCHED: &str = "bench-watched";

/// Number of objects that change at once.
const BURST: usize = 8;

/// Counts deliveries and wakes tasks that wait for a number of them.
#[derive(Default)]
struct Deliveries {
    seen: AtomicUsize,
    wanted: AtomicUsize,
    enough: Notify,
}

impl Deliveries {
    fn add(&self, events: usize) {
        let seen = self.seen.fetch_add(events, Ordering::Relaxed) + events;
        if seen >= self.wanted.load(Ordering::Relaxed) {
            self.enough.notify_one();
        }
    }

    /// Waits until `wanted` events have been delivered in total.
    async fn reach(&self, wanted: usize) -> Result<()> {
        self.wanted.store(wanted, Ordering::Relaxed);
        let deadline = Duration::from_secs(20);
        while self.seen.load(Ordering::Relaxed) < wanted {
            if tokio::time::timeout(deadline, self.enough.notified())
                .await
                .is_err()
            {
                bail!(
                    "{} of {wanted} events were delivered",
                    self.seen.load(Ordering::Relaxed)
                );
            }
        }
        Ok(())
    }
}

pub(crate) fn watch<'a>(bench: &'a mut Bench<'_>) -> Measuring<'a> {
    Box::pin(async move {
        bench.post("/api/v1/namespaces", namespace(WATCHED)).await?;
        for at in 0..BURST {
            let body = bench.item.render(&format!("watched-{at}"), at);
            bench
                .post(&items(WATCHED), serde_json::from_slice(&body)?)
                .await?;
        }
        let writers = (0..BURST).map(|_| Connection::open(&bench.server.access, 16 * 1024));
        let mut writers = try_join_all(writers).await?;
        let (ones, eights) = (bench.args.scaled(300), bench.args.scaled(100));

        // The cost of the writes without watchers, which differs between the two kinds of rounds.
        let nobody = Deliveries::default();
        let mut change = WatchedChange { bench, number: 0 };
        let alone_one = change.rounds(&mut writers[..1], ones, 0, &nobody).await?;
        let alone_eight = change.rounds(&mut writers, eights, 0, &nobody).await?;
        let numbered = change.number;

        bench.settle().await?;
        let before = bench.server.resident()?;
        let deliveries = Arc::new(Deliveries::default());
        let watchers = open(bench, &deliveries).await?;
        let count = watchers.len();
        bench.settle().await?;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let weight = bench.server.resident()?.saturating_sub(before) as f64 / 1024.0 / count as f64;

        let mut change = WatchedChange {
            bench,
            number: numbered,
        };
        let one = change
            .rounds(&mut writers[..1], ones, count, &deliveries)
            .await?;
        let eight = change
            .rounds(&mut writers, eights, count, &deliveries)
            .await?;
        drop(watchers);

        bench.figures.set("watcher", weight);
        for (id, with, without) in [
            ("watch.one", one, alone_one),
            ("watch.eight", eight, alone_eight),
        ] {
            let per_event = with.cpu_per_event.as_secs_f64() * 1e6;
            let write = without.cpu_per_event.as_secs_f64() * 1e6;
            bench.figures.set(id, per_event / count as f64);
            bench.figures.set(
                &format!("{id}.net"),
                (per_event - write).max(0.0) / count as f64,
            );
            bench
                .figures
                .set(&format!("{id}.all"), with.median.as_secs_f64() * 1e6);
        }
        Ok(())
    })
}

/// Opens all watchers, each on its own connection, and counts their events.
async fn open(bench: &Bench<'_>, deliveries: &Arc<Deliveries>) -> Result<JoinSet<Result<()>>> {
    let list = bench.get(&format!("{}?limit=1", items(WATCHED))).await?;
    let version = list["metadata"]["resourceVersion"]
        .as_str()
        .context("a list has a resourceVersion")?;
    let path = format!(
        "{}?watch=1&resourceVersion={version}&timeoutSeconds=3600",
        items(WATCHED)
    );
    let request = bench.request("GET", &path, b"");
    let mut watchers = JoinSet::new();
    let mut left = bench.args.watchers;
    while left > 0 {
        // Opened in small groups, so that no server rejects them.
        let group = left.min(20);
        left -= group;
        let streams = (0..group).map(|_| async {
            let connection = Connection::open(&bench.server.access, 16 * 1024).await?;
            connection.watch(&request).await
        });
        for mut events in try_join_all(streams).await? {
            let deliveries = Arc::clone(deliveries);
            watchers.spawn(async move {
                loop {
                    deliveries.add(events.next().await?);
                }
            });
        }
    }
    Ok(watchers)
}

/// Changes objects in rounds.
struct WatchedChange<'a, 'b> {
    bench: &'a Bench<'b>,
    number: usize,
}

/// The cost of rounds of changes.
#[derive(Clone, Copy)]
struct Cost {
    cpu_per_event: Duration,
    median: Duration,
}

impl WatchedChange<'_, '_> {
    /// In each round every writer changes one object; the round ends when all watchers have the events.
    async fn rounds(
        &mut self,
        writers: &mut [Connection],
        rounds: usize,
        watchers: usize,
        deliveries: &Deliveries,
    ) -> Result<Cost> {
        let server = &self.bench.server;
        let before = server.cpu()?;
        let deadline = Instant::now() + Duration::from_secs(self.bench.args.row_seconds);
        let mut taken = Vec::with_capacity(rounds);
        let mut events = 0;
        let mut expected = deliveries.seen.load(Ordering::Relaxed);
        while taken.len() < rounds && Instant::now() < deadline {
            let number = self.number;
            self.number += 1;
            events += writers.len();
            expected += writers.len() * watchers;
            let begun = Instant::now();
            let writes = writers
                .iter_mut()
                .enumerate()
                .map(|(at, writer)| async move {
                    let path = format!("{}/watched-{at}", items(WATCHED));
                    let body = format!(r#"{{"spec":{{"field03":{number}}}}}"#);
                    let kind = "application/merge-patch+json";
                    let request =
                        http1::request(&server.access, "PATCH", &path, kind, body.as_bytes());
                    let answer = writer.send(&request).await?;
                    if answer.status != 200 {
                        bail!(
                            "status {}: {}",
                            answer.status,
                            String::from_utf8_lossy(&answer.body)
                        );
                    }
                    Ok(())
                });
            try_join_all(writes).await?;
            deliveries.reach(expected).await?;
            taken.push(begun.elapsed());
        }
        taken.sort_unstable();
        let cpu = server.cpu()?.since(before);
        let median = taken.get(taken.len() / 2).copied().unwrap_or_default();
        Ok(Cost {
            cpu_per_event: cpu / u32::try_from(events.max(1))?,
            median,
        })
    }
}
