//! Compares storage engines: the same load on servers whose objects are in SQLite, PostgreSQL, MariaDB or etcd, beside
//! kine and kube-apiserver on the same databases. Databases run on this machine, with their data in temporary folders.

mod creates;
mod database;
mod etcd;
mod events;
mod idle;
mod kine;
mod restart;
mod table;
mod writers;

use anyhow::Result;

use crate::args::{Args, EngineRow, Side};
use crate::bench::{self, Bench, NAMESPACE, items, namespace};
use crate::load::{Load, Outcome};
use crate::objects;
use crate::report::Figures;
use crate::server::{Programs, Server};
use database::{Database, Engine};
use table::Table;

/// Measures the selected rows, prints them, and returns how many targets were missed.
pub(crate) async fn run(args: &Args) -> Result<usize> {
    let programs = Programs::find(args, Side::Ours)?;
    let mut table = Table::default();
    for row in &args.engines {
        eprintln!("bench: {row:?}");
        let measured = match row {
            EngineRow::Creates => creates::measure(args, &programs, &mut table).await,
            EngineRow::Kine => kine::measure(args, &programs, &mut table).await,
            EngineRow::Etcd => etcd::measure(args, &programs, &mut table).await,
            EngineRow::Events => events::measure(args, &programs, &mut table).await,
            EngineRow::Writers => writers::measure(args, &programs, &mut table).await,
            EngineRow::Restart => restart::measure(args, &programs, &mut table).await,
            EngineRow::Idle => idle::measure(args, &programs, &mut table).await,
        };
        // A row that fails must not stop the others.
        if let Err(error) = measured {
            eprintln!("bench: {row:?} failed: {error:#}");
            table.failed(&format!("{row:?}").to_lowercase());
        }
    }
    Ok(table.print())
}

/// A server of ours over a database, with its folder.
struct Running<'a> {
    bench: Bench<'a>,
    _folder: tempfile::TempDir,
}

/// Starts a server of ours over a database.
async fn start<'a>(
    args: &'a Args,
    programs: &'a Programs,
    database: &Database,
) -> Result<Running<'a>> {
    let folder = bench::folder(args)?;
    start_in(args, programs, Side::Ours, folder, &database.flags()).await
}

/// Starts a server with flags and its data in a folder.
async fn start_in<'a>(
    args: &'a Args,
    programs: &'a Programs,
    side: Side,
    folder: tempfile::TempDir,
    flags: &[String],
) -> Result<Running<'a>> {
    let server = Server::start(side, programs, folder.path(), flags).await?;
    let bench = Bench {
        args,
        programs,
        server,
        figures: Figures::default(),
        item: objects::item(),
    };
    Ok(Running {
        bench,
        _folder: folder,
    })
}

impl Running<'_> {
    /// Makes the namespace and the kind of the standard collection.
    async fn prepare(&self) -> Result<()> {
        let bench = &self.bench;
        bench
            .post("/api/v1/namespaces", namespace(NAMESPACE))
            .await?;
        bench.define(&objects::item_definition()).await
    }

    /// Creates objects whose names begin with `prefix`.
    async fn create(&self, load: Load, prefix: &str) -> Result<Outcome> {
        let (bench, collection) = (&self.bench, items(NAMESPACE));
        let request = |at: usize| {
            let body = bench.item.render(&format!("{prefix}-{at:06}"), at);
            bench.request("POST", &collection, &body)
        };
        load.run(&bench.server, request).await
    }
}

/// Returns the engines that can be started here, without those that are missing.
fn available(wanted: &[Engine]) -> Vec<Database> {
    available_by(wanted, Database::start)
}

fn available_by(wanted: &[Engine], start: fn(Engine) -> Option<Database>) -> Vec<Database> {
    let start = |engine: &Engine| {
        let started = start(*engine);
        if started.is_none() {
            eprintln!("bench: {} is not installed", engine.name());
        }
        started
    };
    wanted.iter().filter_map(start).collect()
}
