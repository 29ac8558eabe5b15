//! Tests of the log in PostgreSQL, on a private server.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use bareboat_rig::alternating::Alternating;
use bareboat_rig::checks::Shared;
use bareboat_sql::{Postgres as Engine, SqlOptions};
use bareboat_storage::conformance::Site;
use bareboat_storage::{Backend, Store, StoreOptions};

mod cluster;
#[path = "../shared/faults.rs"]
mod faults;
mod notifications;
mod pooler;
mod promotion;
mod releases;
#[path = "../shared/replicas.rs"]
mod replicas;
mod space;
mod standby;
mod stopped;
mod tables;
mod trust;

/// An event reaches other stores within this time at the median, on a machine with little else to do.
const SOON: Duration = Duration::from_millis(10);

fn object(n: u64) -> bytes::Bytes {
    format!(r#"{{"apiVersion":"v1","kind":"X","metadata":{{"name":"x"}},"n":{n}}}"#).into()
}

fn number(json: &[u8]) -> u64 {
    let text = std::str::from_utf8(json).unwrap();
    let (_, rest) = text.rsplit_once(':').unwrap();
    rest.trim_end_matches('}').parse().unwrap()
}

fn open(url: &str) -> Store {
    let options = SqlOptions {
        patience: Duration::from_secs(20),
    };
    let backend = Engine::open_with(url, options).unwrap();
    Store::open(Arc::new(backend), StoreOptions::default()).unwrap()
}

async fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The server that most tests share. A child process that opens a store by its address starts no server.
struct Database;

impl Shared for Database {
    fn port(&self) -> u16 {
        cluster::shared().port
    }

    fn url(&self, port: u16, name: &str) -> String {
        cluster::shared().url(port, &format!("check_{name}"))
    }

    /// Autovacuum runs once a second at most, which is more than an hour of a short day.
    fn clean(&self, name: &str) {
        let vacuum = format!("VACUUM (SKIP_LOCKED) check_{name}.log");
        // The table may not exist yet.
        let _ = cluster::shared().ask(&vacuum);
    }

    fn size(&self, name: &str) -> u64 {
        let size = format!(
            "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c WHERE relkind = 'r' AND relnamespace = 'check_{name}'::regnamespace"
        );
        cluster::shared().ask(&size).unwrap().parse().unwrap()
    }

    fn open(&self, url: &str) -> Arc<dyn Backend> {
        let options = SqlOptions {
            patience: Duration::from_secs(20),
        };
        Arc::new(Engine::open_with(url, options).unwrap())
    }
}

mod checks {
    fn database() -> super::Database {
        super::Database
    }

    bareboat_rig::checks!(database);
}

/// Two engines on one log that are used in turn.
fn two_engines() -> impl Site {
    let url = cluster::shared().fresh();
    move || -> Arc<dyn Backend> {
        let engines = [0, 1].map(|_| -> Arc<dyn Backend> { Arc::new(Engine::open(&url).unwrap()) });
        Arc::new(Alternating::new(engines))
    }
}

mod alternating {
    bareboat_storage::conformance!(super::two_engines);
}

fn database() -> impl Site {
    let url = cluster::shared().fresh();
    move || -> Arc<dyn Backend> { Arc::new(Engine::open(&url).expect("the database opens")) }
}

mod conformance {
    bareboat_storage::conformance!(super::database);
    bareboat_storage::backup_conformance!(super::database);
    bareboat_storage::clock_conformance!(super::database);
}
