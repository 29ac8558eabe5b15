//! Statements of one idle server.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::database::{Database, Engine};
use super::events::watch;
use super::table::{Table, Target};
use super::{available_by, start};
use crate::args::Args;
use crate::server::Programs;

pub(super) async fn measure(args: &Args, programs: &Programs, table: &mut Table) -> Result<()> {
    let time = Duration::from_secs(if args.quick { 4 } else { 15 });
    let engines = [Engine::Postgres, Engine::Mariadb, Engine::Etcd];
    for database in available_by(&engines, Database::counting) {
        let server = start(args, programs, &database).await?;
        server.prepare().await?;
        server.bench.settle().await?;
        tokio::time::sleep(Duration::from_secs(3)).await;
        let name = database.engine.name();
        let (without, with) = match database.engine {
            Engine::Mariadb => (13.0, 53.0),
            _ => (3.0, 3.0),
        };
        let rate = statements(&database, time).await?;
        let label = format!("statements of an idle server, {name}");
        table.add(&label, rate, "/s", Target::AtMost(without));
        // Opening the watch makes the reads of this connection end.
        let mut events = watch(&server).await?;
        let waiting = async {
            loop {
                if events.next().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        };
        let rate = tokio::select! {
            rate = statements(&database, time) => rate?,
            () = waiting => 0.0,
        };
        table.add("… with a watch", rate, "/s", Target::AtMost(with));
    }
    Ok(())
}

/// Counts statements for some time; those of the two readings are subtracted.
async fn statements(database: &Database, time: Duration) -> Result<f64> {
    let before = database.statements()?;
    let begun = Instant::now();
    tokio::time::sleep(time).await;
    let taken = begun.elapsed().as_secs_f64();
    let own = match database.engine {
        // The session that reads the counter and its settings.
        Engine::Mariadb => 1,
        _ => 0,
    };
    let after = database.statements()?;
    Ok(after.saturating_sub(before).saturating_sub(own) as f64 / taken)
}
