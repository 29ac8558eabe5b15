//! How long an event takes to a watcher on another server.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::database::Engine;
use super::table::{Table, Target};
use super::writers::several;
use super::{Running, available};
use crate::args::Args;
use crate::bench::{NAMESPACE, items};
use crate::http1::Connection;
use crate::server::Programs;

pub(super) async fn measure(args: &Args, programs: &Programs, table: &mut Table) -> Result<()> {
    for database in available(&[Engine::Postgres, Engine::Mariadb, Engine::Etcd]) {
        let servers = several(args, programs, &database, 2).await?;
        servers[0].prepare().await?;
        let events = args.scaled(1_000);
        let (mut sent, mut answered) = deliver(&servers[0], &servers[1], events).await?;
        sent.sort_unstable();
        answered.sort_unstable();
        let at = |all: &[Duration], share: f64| {
            let last = all.len().saturating_sub(1) as f64;
            all.get((last * share).round() as usize)
                .map_or(0.0, |time| time.as_secs_f64() * 1e3)
        };
        let name = database.engine.name();
        let most = match database.engine {
            Engine::Mariadb => 20.0,
            _ => 10.0,
        };
        let label = format!("event on another server, {name}: median from the request");
        table.add(&label, at(&sent, 0.5), "ms", Target::AtMost(most));
        table.add("… 99th percentile", at(&sent, 0.99), "ms", Target::None);
        table.add(
            "… median from the answer",
            at(&answered, 0.5),
            "ms",
            Target::None,
        );
        table.add("… 99th percentile", at(&answered, 0.99), "ms", Target::None);
    }
    Ok(())
}

/// Opens a watch on a server from now on.
pub(super) async fn watch(on: &Running<'_>) -> Result<crate::http1::Events> {
    let list = on
        .bench
        .get(&format!("{}?limit=1", items(NAMESPACE)))
        .await?;
    let version = list["metadata"]["resourceVersion"].as_str();
    let version = version.context("a list has a resourceVersion")?;
    let path = format!(
        "{}?watch=1&resourceVersion={version}&timeoutSeconds=3600",
        items(NAMESPACE)
    );
    let connection = Connection::open(&on.bench.server.access, 16 * 1024).await?;
    connection.watch(&on.bench.request("GET", &path, b"")).await
}

/// Creates objects on one server, each after the event of the last; returns the times from each request and from each
/// answer to the event on another server.
async fn deliver(
    from: &Running<'_>,
    to: &Running<'_>,
    count: usize,
) -> Result<(Vec<Duration>, Vec<Duration>)> {
    let mut events = watch(to).await?;
    let mut writer = Connection::open(&from.bench.server.access, 16 * 1024).await?;
    let (mut sent, mut answered) = (Vec::new(), Vec::new());
    for at in 0..count {
        let body = from.bench.item.render(&format!("event-{at:06}"), at);
        let request = from.bench.request("POST", &items(NAMESPACE), &body);
        let begun = Instant::now();
        let write = async {
            let answer = writer.send(&request).await?;
            if answer.status != 201 {
                bail!("status {}", answer.status);
            }
            Ok(Instant::now())
        };
        let event = async {
            while events.next().await? == 0 {}
            anyhow::Ok(Instant::now())
        };
        let both = futures_util::future::try_join(write, event);
        let both = tokio::time::timeout(Duration::from_secs(20), both).await;
        let (answer, event) = both.context("an event did not arrive")??;
        sent.push(event - begun);
        answered.push(event.saturating_duration_since(answer));
        // Not in step with any poll.
        tokio::time::sleep(Duration::from_micros(1_700 + (at as u64 * 977) % 23_000)).await;
    }
    Ok((sent, answered))
}
