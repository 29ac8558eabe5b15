//! Tests of the log in etcd, on a private server.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use bareboat_etcd::{Etcd, EtcdOptions};
use bareboat_storage::conformance::Site;
use bareboat_storage::{Backend, Store, StoreOptions};

mod faults;
mod keys;
mod lost;
mod member;
mod proxy;
mod replicas;
mod space;
mod trust;

fn object(n: u64) -> bytes::Bytes {
    format!(r#"{{"apiVersion":"v1","kind":"X","metadata":{{"name":"x"}},"n":{n}}}"#).into()
}

fn number(json: &[u8]) -> u64 {
    let text = std::str::from_utf8(json).unwrap();
    let (_, rest) = text.rsplit_once(':').unwrap();
    rest.trim_end_matches('}').parse().unwrap()
}

fn open(url: &str) -> Store {
    let options = EtcdOptions {
        patience: Duration::from_secs(20),
    };
    let backend = Etcd::open_with(url, options).unwrap();
    Store::open(Arc::new(backend), StoreOptions::default()).unwrap()
}

async fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Where the conformance suite runs: an etcd server, and a prefix.
struct Place {
    _lease: member::Lease,
    url: String,
}

impl Site for Place {
    fn open(&self) -> Arc<dyn Backend> {
        Arc::new(Etcd::open(&self.url).expect("etcd opens"))
    }
}

fn place() -> Place {
    let lease = member::lease();
    let url = lease.fresh();
    Place { _lease: lease, url }
}

mod conformance {
    bareboat_storage::conformance!(super::place);
    bareboat_storage::backup_conformance!(super::place);
}
