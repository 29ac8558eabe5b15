//! Tests of the log in PostgreSQL, on a private server.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use bareboat_sql::{Postgres as Engine, SqlOptions};
use bareboat_storage::conformance::Site;
use bareboat_storage::{Backend, Store, StoreOptions};

mod cluster;
#[path = "../shared/faults.rs"]
mod faults;
mod promotion;
#[path = "../shared/proxy.rs"]
mod proxy;
#[path = "../shared/replicas.rs"]
mod replicas;
mod tables;

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

fn database() -> impl Site {
    let url = cluster::shared().fresh();
    move || -> Arc<dyn Backend> { Arc::new(Engine::open(&url).expect("the database opens")) }
}

mod conformance {
    bareboat_storage::conformance!(super::database);
    bareboat_storage::backup_conformance!(super::database);
}
