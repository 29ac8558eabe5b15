//! Restart with many objects.

use std::time::Duration;

use anyhow::{Result, bail};

use super::database::Engine;
use super::table::{Table, Target};
use super::{available, start_in};
use crate::args::{Args, Side};
use crate::bench::folder;
use crate::load::Load;
use crate::server::{Programs, Server};

const RESTARTS: usize = 3;

pub(super) async fn measure(args: &Args, programs: &Programs, table: &mut Table) -> Result<()> {
    let count = args.scaled(100_000);
    for database in available(&[Engine::Sqlite, Engine::Postgres]) {
        let folder = folder(args)?;
        let dir = folder.path().to_owned();
        let server = start_in(args, programs, Side::Ours, folder, &database.flags()).await?;
        server.prepare().await?;
        let load = Load {
            clients: 64,
            operations: count,
            limit: Duration::from_secs(110),
            buffer: 16 * 1024,
        };
        let created = server.create(load, "many").await?;
        if created.operations < count {
            bail!("{} of {count} objects were created", created.operations);
        }
        let super::Running { bench, _folder } = server;
        // The process is killed: the next one recovers.
        drop(bench);
        let mut taken = Vec::new();
        for _ in 0..RESTARTS {
            let server = Server::start(Side::Ours, programs, &dir, &database.flags()).await?;
            taken.push(server.ready_after.as_secs_f64());
        }
        taken.sort_by(f64::total_cmp);
        let most = match database.engine {
            Engine::Sqlite => 1.0,
            _ => 2.0,
        };
        let label = format!(
            "restart after kill -9, {count} objects, {}",
            database.engine.name()
        );
        table.add(&label, taken[taken.len() / 2], "s", Target::AtMost(most));
    }
    Ok(())
}
