//! Creation and lists on the same etcd as kube-apiserver.

use std::time::Duration;

use anyhow::{Result, bail};

use super::database::{Database, Engine};
use super::table::{Table, Target};
use super::{Running, start, start_in};
use crate::args::{Args, Side};
use crate::bench::{NAMESPACE, folder, items};
use crate::load::{Load, Outcome};
use crate::server::Programs;

pub(super) async fn measure(args: &Args, programs: &Programs, table: &mut Table) -> Result<()> {
    if !programs.peers.join("kube-apiserver").exists() {
        table.left_out("etcd", "run scripts/peers.sh servers");
        return Ok(());
    }
    let Some(database) = Database::start(Engine::Etcd) else {
        table.left_out("etcd", "run scripts/peers.sh servers");
        return Ok(());
    };
    let flags = [format!(
        "--etcd-servers=http://127.0.0.1:{}",
        database.port()
    )];
    let theirs = start_in(args, programs, Side::Theirs, folder(args)?, &flags).await?;
    let (theirs_create, theirs_list) = rows(args, &theirs).await?;
    drop(theirs);
    let ours = start(args, programs, &database).await?;
    let (create, list) = rows(args, &ours).await?;
    for (name, create, list) in [
        ("kube-apiserver", &theirs_create, &theirs_list),
        ("ours", &create, &list),
    ] {
        table.add(
            &format!("etcd, creates by 64 clients, {name}"),
            create.rate(),
            "/s",
            Target::None,
        );
        table.add(
            &format!("etcd, lists of all objects, {name}"),
            list.rate(),
            "/s",
            Target::None,
        );
    }
    let ratio = create.rate() / theirs_create.rate();
    table.add(
        "etcd, creates against kube-apiserver",
        ratio,
        "×",
        Target::AtLeast(5.0),
    );
    let ratio = list.rate() / theirs_list.rate();
    table.add(
        "etcd, lists against kube-apiserver",
        ratio,
        "×",
        Target::AtLeast(20.0),
    );
    Ok(())
}

/// Creates all objects, then lists them.
async fn rows(args: &Args, server: &Running<'_>) -> Result<(Outcome, Outcome)> {
    server.prepare().await?;
    let count = args.scaled(args.objects);
    let load = Load {
        clients: 64,
        operations: count,
        limit: Duration::from_secs(90),
        buffer: 16 * 1024,
    };
    let created = server.create(load, "item").await?;
    if created.operations < count {
        bail!("{} of {count} objects were created", created.operations);
    }
    server.bench.settle().await?;
    let request = server.bench.request("GET", &items(NAMESPACE), b"");
    let load = Load {
        clients: 4,
        operations: 1_000,
        limit: Duration::from_secs(10),
        buffer: 256 * 1024,
    };
    let listed = load.run(&server.bench.server, |_| request.clone()).await?;
    Ok((created, listed))
}
