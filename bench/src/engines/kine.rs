//! Against kine on PostgreSQL: its statements, sent by 64 sessions, and kube-apiserver over kine itself.
//!
//! For a creation kine reads the newest row of the name, inserts a row, and reads new rows back for its watches. The
//! statements and indexes here are those of kine 0.13.

use std::cell::Cell;
use std::process::Command;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use bareboat_sql::Postgres;
use bareboat_storage::{Appended, Backend as _, Batch, Record, Value};
use futures_util::future::try_join_all;
use tokio_postgres::{Client, NoTls};

use super::database::{Database, Engine};
use super::table::{Table, Target};
use super::{start, start_in};
use crate::args::{Args, Side};
use crate::bench::folder;
use crate::load::Load;
use crate::process::Process;
use crate::server::{Programs, free_port};

const SESSIONS: usize = 64;
const SCHEMA: &str = "CREATE TABLE kine (id BIGSERIAL PRIMARY KEY, name text COLLATE \"C\", created INTEGER,
        deleted INTEGER, create_revision BIGINT, prev_revision BIGINT, lease INTEGER, value bytea, old_value bytea);
    CREATE INDEX ON kine (name);
    CREATE INDEX ON kine (name, id);
    CREATE INDEX ON kine (id, deleted);
    CREATE INDEX ON kine (prev_revision);
    CREATE UNIQUE INDEX ON kine (name, prev_revision);
    CREATE INDEX ON kine (name, id DESC, deleted)";
const NEWEST: &str = "SELECT (SELECT MAX(r.id) FROM kine r),
        (SELECT MAX(c.prev_revision) FROM kine c WHERE c.name = 'compact_rev_key'), m.*
    FROM (SELECT DISTINCT ON (name) k.id AS theid, k.name, k.created, k.deleted, k.create_revision, k.prev_revision,
            k.lease, k.value, k.old_value
        FROM kine k WHERE k.name LIKE $1 ORDER BY k.name, theid DESC) m
    WHERE m.deleted = 0 OR $2 ORDER BY m.name, m.theid DESC LIMIT 1";
const INSERT: &str = "INSERT INTO kine (name, created, deleted, create_revision, prev_revision, lease, value, old_value)
    VALUES ($1, 1, 0, 0, $2, 0, $3, NULL) RETURNING id";
const AFTER: &str = "SELECT (SELECT MAX(r.id) FROM kine r),
        (SELECT MAX(c.prev_revision) FROM kine c WHERE c.name = 'compact_rev_key'),
        k.id, k.name, k.created, k.deleted, k.create_revision, k.prev_revision, k.lease, k.value, k.old_value
    FROM kine k WHERE k.name LIKE '%' AND k.id > $1 ORDER BY k.id LIMIT 500";

pub(super) async fn measure(args: &Args, programs: &Programs, table: &mut Table) -> Result<()> {
    let Some(database) = Database::start(Engine::Postgres) else {
        table.left_out("kine", "PostgreSQL is not installed");
        return Ok(());
    };
    let time = Duration::from_secs(if args.quick { 2 } else { 8 });
    let (theirs, theirs_cpu) = replay(&database, time).await?;
    table.add(
        "kine's statements, 64 sessions: creates",
        theirs,
        "/s",
        Target::None,
    );
    table.add("… database CPU a create", theirs_cpu, "µs", Target::None);
    let (rate, cpu) = append(&database, time)?;
    table.add(
        "our appends, batches of 64: creates",
        rate,
        "/s",
        Target::None,
    );
    table.add(
        "… against kine's statements",
        rate / theirs,
        "×",
        Target::AtLeast(5.0),
    );
    table.add("… database CPU a create", cpu, "µs", Target::None);
    table.add("… of kine's", cpu / theirs_cpu, "×", Target::AtMost(0.1));
    let load = Load {
        clients: 64,
        operations: args.scaled(args.objects),
        limit: time,
        buffer: 16 * 1024,
    };
    let server = start(args, programs, &database).await?;
    server.prepare().await?;
    let before = database.cpu()?;
    let whole = server.create(load, "whole").await?;
    let spent = (database.cpu()? - before).as_secs_f64() * 1e6 / whole.operations as f64;
    table.add(
        "our whole server, 64 clients: creates",
        whole.rate(),
        "/s",
        Target::None,
    );
    table.add(
        "… against kine's statements alone",
        whole.rate() / theirs,
        "×",
        Target::None,
    );
    table.add("… database CPU a create", spent, "µs", Target::None);
    drop(server);
    if !programs.peers.join("kine").exists() || !programs.peers.join("kube-apiserver").exists() {
        table.left_out(
            "kube-apiserver over kine",
            "run scripts/peers.sh servers kine",
        );
        return Ok(());
    }
    let folder = folder(args)?;
    let port = free_port()?;
    let mut kine = Command::new(programs.peers.join("kine"));
    let address = format!(
        "postgres://postgres@127.0.0.1:{}/kine?sslmode=disable",
        database.port()
    );
    kine.arg(format!("--endpoint={address}"))
        .arg(format!("--listen-address=127.0.0.1:{port}"))
        .arg("--metrics-bind-address=0");
    let _kine = Process::spawn("kine", &mut kine, &folder.path().join("kine.log"))?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let flags = [format!("--etcd-servers=http://127.0.0.1:{port}")];
    let theirs = start_in(args, programs, Side::Theirs, folder, &flags).await?;
    theirs.prepare().await?;
    let before = database.cpu()?;
    let created = theirs.create(load, "kine").await?;
    let spent = (database.cpu()? - before).as_secs_f64() * 1e6 / created.operations as f64;
    table.add(
        "kube-apiserver over kine, 64 clients: creates",
        created.rate(),
        "/s",
        Target::None,
    );
    table.add("… database CPU a create", spent, "µs", Target::None);
    let ratio = whole.rate() / created.rate();
    table.add(
        "ours against kube-apiserver over kine",
        ratio,
        "×",
        Target::AtLeast(20.0),
    );
    Ok(())
}

async fn connect(database: &Database) -> Result<Client> {
    let address = format!(
        "host=127.0.0.1 port={} user=postgres dbname=postgres",
        database.port()
    );
    let (client, connection) = tokio_postgres::connect(&address, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// Sends the statements of creations for some time; returns creations per second and the database's CPU of each.
async fn replay(database: &Database, time: Duration) -> Result<(f64, f64)> {
    connect(database).await?.batch_execute(SCHEMA).await?;
    let sessions = try_join_all((0..SESSIONS).map(|_| connect(database))).await?;
    let value = vec![b'x'; 1024];
    let created = Rc::new(Cell::new(0u64));
    let before = database.cpu()?;
    let begun = Instant::now();
    let create = async |session: Client| -> Result<()> {
        let (newest, insert) = (
            session.prepare(NEWEST).await?,
            session.prepare(INSERT).await?,
        );
        while begun.elapsed() < time {
            let number = created.get();
            created.set(number + 1);
            let name = format!("/registry/bench/items/bench/item-{number:08}");
            let found = session.query_opt(&newest, &[&name, &true]).await?;
            let prev: i64 = found.map_or(0, |row| row.get(2));
            session.query_one(&insert, &[&name, &prev, &value]).await?;
        }
        Ok(())
    };
    let poll = async {
        let session = connect(database).await?;
        let after = session.prepare(AFTER).await?;
        let mut last = 0i64;
        while begun.elapsed() < time {
            let rows = session.query(&after, &[&last]).await?;
            match rows.last() {
                Some(row) => last = row.get(2),
                None => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        }
        anyhow::Ok(())
    };
    let creating = try_join_all(sessions.into_iter().map(create));
    futures_util::future::try_join(creating, poll).await?;
    let (count, taken) = (created.get() as f64, begun.elapsed().as_secs_f64());
    let cpu = (database.cpu()? - before).as_secs_f64() * 1e6;
    Ok((count / taken, cpu / count))
}

/// Appends batches of 64 records for some time, as a server with 64 clients does.
fn append(database: &Database, time: Duration) -> Result<(f64, f64)> {
    // Not the schema of a server: these records are no objects.
    let url = format!(
        "postgres://postgres@127.0.0.1:{}/postgres?schema=appends",
        database.port()
    );
    let log = Postgres::open(&url)?;
    let mut end = log.load(u64::MAX >> 1, &mut |_| {})?;
    let value = format!(r#"{{"kind":"Item","data":"{}"}}"#, "x".repeat(1000));
    let (begun, before, first) = (Instant::now(), database.cpu()?, end.last);
    while begun.elapsed() < time {
        let record = |at: u64| Record {
            revision: end.last + 1 + at,
            prev: 0,
            cluster: "".into(),
            resource: "bench/items".into(),
            key: format!("bench/item-{:08}", end.last + at).into(),
            actor: Some(r#"{"user":"admin"}"#.into()),
            value: Some(Value::new(value.clone().into())),
        };
        let batch = Batch {
            id: u128::from(end.last) << 64 | 1,
            writer: 1,
            records: (0..SESSIONS as u64).map(record).collect(),
        };
        match log.append(&end, &batch)? {
            Appended::Done(mark) => end = mark,
            Appended::Moved(_) => bail!("something else writes to the log"),
        }
    }
    let (count, taken) = ((end.last - first) as f64, begun.elapsed().as_secs_f64());
    let cpu = (database.cpu()? - before).as_secs_f64() * 1e6;
    log.close()?;
    Ok((count / taken, cpu / count))
}
