//! Databases for the servers: started in temporary folders, with the processor time of all their processes.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result};

#[allow(clippy::unwrap_used, dead_code)]
#[path = "../../../crates/bareboat-sql/tests/mariadb/cluster.rs"]
mod mariadb;
#[allow(clippy::unwrap_used, dead_code)]
#[path = "../../../crates/bareboat-etcd/tests/etcd/member.rs"]
mod member;
#[allow(clippy::unwrap_used, dead_code)]
#[path = "../../../crates/bareboat-sql/tests/postgres/cluster.rs"]
mod postgres;

/// A kind of store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Engine {
    Sqlite,
    Postgres,
    Mariadb,
    Etcd,
}

impl Engine {
    pub(super) fn name(self) -> &'static str {
        match self {
            Engine::Sqlite => "SQLite",
            Engine::Postgres => "PostgreSQL",
            Engine::Mariadb => "MariaDB",
            Engine::Etcd => "etcd",
        }
    }
}

enum Process {
    None,
    Postgres(postgres::Cluster),
    Mariadb(mariadb::Cluster),
    Etcd(member::Member),
}

/// A running database.
pub(super) struct Database {
    pub(super) engine: Engine,
    process: Process,
    url: Option<String>,
}

/// Settings of PostgreSQL for a small machine; the rest are its defaults, so commits are flushed.
const POSTGRES: [&str; 2] = ["shared_buffers=256MB", "max_wal_size=2GB"];
/// Counts statements, which costs a little for each of them.
const COUNTED: &str = "shared_preload_libraries=pg_stat_statements";
/// The same for MariaDB.
const MARIADB: [&str; 2] = ["innodb-buffer-pool-size=256M", "innodb-log-file-size=256M"];

impl Database {
    /// Starts a database; `None` if its programs are missing.
    pub(super) fn start(engine: Engine) -> Option<Database> {
        Self::start_with(engine, &POSTGRES)
    }

    /// Starts a database that counts its statements.
    pub(super) fn counting(engine: Engine) -> Option<Database> {
        Self::start_with(engine, &[POSTGRES[0], POSTGRES[1], COUNTED])
    }

    fn start_with(engine: Engine, postgres: &[&str]) -> Option<Database> {
        let (process, url) = match engine {
            Engine::Sqlite => (Process::None, None),
            Engine::Postgres => {
                let cluster = postgres::Cluster::start(postgres)?;
                cluster.ask("CREATE EXTENSION IF NOT EXISTS pg_stat_statements");
                let url = cluster.fresh();
                (Process::Postgres(cluster), Some(url))
            }
            Engine::Mariadb => {
                let cluster = mariadb::Cluster::start(&MARIADB)?;
                let url = cluster.fresh();
                (Process::Mariadb(cluster), Some(url))
            }
            Engine::Etcd => {
                let member = member::Member::start(&["--quota-backend-bytes=8589934592"])?;
                let url = member.fresh();
                (Process::Etcd(member), Some(url))
            }
        };
        Some(Database {
            engine,
            process,
            url,
        })
    }

    /// Returns the flags of a server of ours for this store.
    pub(super) fn flags(&self) -> Vec<String> {
        let url = self.url.iter();
        url.map(|url| format!("--storage={url}")).collect()
    }

    /// Returns the port of the database.
    pub(super) fn port(&self) -> u16 {
        match &self.process {
            Process::None => 0,
            Process::Postgres(cluster) => cluster.port,
            Process::Mariadb(cluster) => cluster.port,
            Process::Etcd(member) => member.port,
        }
    }

    /// Returns the processor time of the database, its children included.
    pub(super) fn cpu(&self) -> Result<Duration> {
        let pid = match &self.process {
            Process::None => return Ok(Duration::ZERO),
            Process::Postgres(cluster) => cluster.pid(),
            Process::Mariadb(cluster) => cluster.pid(),
            Process::Etcd(member) => member.pid(),
        };
        family(pid)
    }

    /// Returns how many statements the database has run so far; calls for etcd.
    pub(super) fn statements(&self) -> Result<u64> {
        let text = match &self.process {
            Process::None => Some("0".to_owned()),
            Process::Postgres(cluster) => cluster.ask(
                "SELECT sum(calls)::bigint FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat_statements%'",
            ),
            Process::Mariadb(cluster) => {
                let all = cluster.ask("SHOW GLOBAL STATUS LIKE 'Questions'");
                all.and_then(|line| Some(line.rsplit_once('|')?.1.to_owned()))
            }
            Process::Etcd(member) => Some(member.calls().to_string()),
        };
        let text = text.context("the counter of statements cannot be read")?;
        Ok(text.trim().parse()?)
    }
}

/// Returns the processor time of a process, its ended children, and its direct children.
fn family(parent: u32) -> Result<Duration> {
    let mut ticks = 0;
    for entry in fs::read_dir("/proc")?.flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<u32>().ok())
        else {
            continue;
        };
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else {
            continue;
        };
        let after = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        let fields: Vec<u64> = after
            .split_ascii_whitespace()
            .skip(1)
            .map(|field| field.parse().unwrap_or(0))
            .collect();
        let field = |at: usize| fields.get(at).copied().unwrap_or(0);
        if pid == parent {
            // Own time and that of children that have ended.
            ticks += field(10) + field(11) + field(12) + field(13);
        } else if field(0) == u64::from(parent) {
            ticks += field(10) + field(11);
        }
    }
    Ok(Duration::from_millis(ticks * 10))
}
