//! Durable creation by 64 clients, on each SQL engine, against SQLite.

use std::time::Duration;

use anyhow::Result;

use super::database::Engine;
use super::table::{Table, Target};
use super::{available, start};
use crate::args::Args;
use crate::load::Load;
use crate::server::Programs;

/// How often each engine is measured, in turn; the best round counts.
const ROUNDS: usize = 2;

pub(super) async fn measure(args: &Args, programs: &Programs, table: &mut Table) -> Result<()> {
    let count = args.scaled(args.objects);
    let load = Load {
        clients: 64,
        operations: count,
        limit: Duration::from_secs(60),
        buffer: 16 * 1024,
    };
    let databases = available(&[Engine::Sqlite, Engine::Postgres, Engine::Mariadb]);
    let mut best = vec![(0.0f64, 0.0f64, 0.0f64); databases.len()];
    let mut servers = Vec::new();
    for database in &databases {
        let server = start(args, programs, database).await?;
        server.prepare().await?;
        servers.push(server);
    }
    for round in 0..ROUNDS {
        for ((database, server), best) in databases.iter().zip(&servers).zip(&mut best) {
            server.bench.settle().await?;
            let before = database.cpu()?;
            let outcome = server.create(load, &format!("round{round}")).await?;
            let spent = (database.cpu()? - before).as_secs_f64() * 1e6 / count as f64;
            if outcome.rate() > best.0 {
                *best = (outcome.rate(), outcome.cpu_micros(), spent);
            }
        }
    }
    let sqlite = best.first().map_or(0.0, |best| best.0);
    for (database, (rate, own, spent)) in databases.iter().zip(best) {
        let name = database.engine.name();
        table.add(
            &format!("creates, 64 clients, {name}"),
            rate,
            "/s",
            Target::None,
        );
        table.add(
            &format!("… server CPU a create, {name}"),
            own,
            "µs",
            Target::None,
        );
        let least = match database.engine {
            Engine::Postgres => 0.7,
            Engine::Mariadb => 0.4,
            _ => continue,
        };
        table.add(
            &format!("… database CPU a create, {name}"),
            spent,
            "µs",
            Target::None,
        );
        let ratio = rate / sqlite;
        table.add(
            &format!("… {name} against SQLite"),
            ratio,
            "×",
            Target::AtLeast(least),
        );
    }
    Ok(())
}
