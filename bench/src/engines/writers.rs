//! Three servers that all write to one store, against one server with the same number of clients.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures_util::future::try_join_all;

use super::database::{Database, Engine};
use super::table::{Table, Target};
use super::{Running, available, start_in};
use crate::args::{Args, Side};
use crate::bench::folder;
use crate::load::Load;
use crate::server::Programs;

pub(super) async fn measure(args: &Args, programs: &Programs, table: &mut Table) -> Result<()> {
    for database in available(&[Engine::Postgres, Engine::Mariadb, Engine::Etcd]) {
        let servers = several(args, programs, &database, 3).await?;
        servers[0].prepare().await?;
        let time = Duration::from_secs(if args.quick { 2 } else { 6 });
        let load = |clients: usize| Load {
            clients,
            operations: usize::MAX,
            limit: time,
            buffer: 16 * 1024,
        };
        let one = servers[0].create(load(64), "one").await?;
        let names = ["a", "b", "c"];
        let each = servers.iter().zip(names).zip([22, 21, 21]);
        let each = each.map(|((server, name), clients)| server.create(load(clients), name));
        let all = try_join_all(each).await?;
        let rates: Vec<f64> = all.iter().map(|outcome| outcome.rate()).collect();
        let sum: f64 = rates.iter().sum();
        let least = rates.iter().copied().fold(f64::MAX, f64::min);
        let name = database.engine.name();
        table.add(
            &format!("one writing server, {name}"),
            one.rate(),
            "/s",
            Target::None,
        );
        table.add(
            &format!("three writing servers, {name}"),
            sum,
            "/s",
            Target::None,
        );
        let target = match database.engine {
            Engine::Postgres => Target::AtLeast(0.4),
            _ => Target::None,
        };
        table.add("… against one", sum / one.rate(), "×", target);
        table.add(
            "… slowest server of a third",
            least * 3.0 / sum,
            "×",
            Target::AtLeast(0.2),
        );
    }
    Ok(())
}

/// Starts several servers on one store, with the same keys.
pub(super) async fn several<'a>(
    args: &'a Args,
    programs: &'a Programs,
    database: &Database,
    count: usize,
) -> Result<Vec<Running<'a>>> {
    let keys = folder(args)?;
    let program = programs.bareboat.as_ref().context("no bareboat binary")?;
    let made = keys.path().join("keys");
    let output = Command::new(program)
        .arg("init-shared")
        .arg(&made)
        .output()?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr));
    }
    let mut servers = Vec::new();
    for _ in 0..count {
        let folder = folder(args)?;
        let copied = Command::new("cp")
            .arg("-rp")
            .arg(made.join("certificates"))
            .arg(folder.path())
            .status()?;
        if !copied.success() {
            bail!("the keys cannot be copied");
        }
        servers.push(start_in(args, programs, Side::Ours, folder, &database.flags()).await?);
    }
    Ok(servers)
}
