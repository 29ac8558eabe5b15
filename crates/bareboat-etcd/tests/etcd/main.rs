//! Tests of the log in etcd, on a private server.
#![allow(clippy::unwrap_used)]

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bareboat_etcd::{Etcd, EtcdOptions};
use bareboat_rig::alternating::Alternating;
use bareboat_rig::checks::Shared;
use bareboat_storage::conformance::Site;
use bareboat_storage::{Backend, Store, StoreOptions};

mod defects;
mod faults;
mod keys;
mod lost;
mod member;
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

/// A server for one test, started when it is needed. A child process that opens a store by its address starts none.
#[derive(Default)]
struct Database(OnceLock<member::Lease>, OnceLock<member::Member>);

/// The quota of a server for a day of updates. The rows of batches are kept for ten minutes by the clock, in which a
/// fast machine may write more than the default quota of 2 GiB.
const LARGE: &str = "--quota-backend-bytes=8589934592";

impl Database {
    fn member(&self) -> &member::Member {
        match self.1.get() {
            Some(own) => own,
            None => self.0.get_or_init(member::lease),
        }
    }
}

impl Shared for Database {
    fn port(&self) -> u16 {
        self.member().port
    }

    fn url(&self, port: u16, name: &str) -> String {
        self.member().url(port, &format!("check_{name}"))
    }

    /// Starts a server that no other test uses.
    fn prepare_day(&self) {
        let own = || member::Member::start(&[LARGE]).expect("etcd is built");
        self.1.get_or_init(own);
    }

    /// The row of a batch has the keys of its records. Batches of few records take more for each.
    fn kept_bytes(&self) -> u64 {
        450
    }

    /// The server has no other store. Files shrink only when they are defragmented.
    fn size(&self, _name: &str) -> u64 {
        self.member()
            .metric("etcd_mvcc_db_total_size_in_use_in_bytes") as u64
    }

    fn open(&self, url: &str) -> Arc<dyn Backend> {
        let options = EtcdOptions {
            patience: Duration::from_secs(20),
        };
        Arc::new(Etcd::open_with(url, options).unwrap())
    }
}

mod checks {
    bareboat_rig::checks!(super::Database::default);
}

/// Two engines on one log that are used in turn.
struct TwoEngines(Place);

impl Site for TwoEngines {
    fn open(&self) -> Arc<dyn Backend> {
        Arc::new(Alternating::new([self.0.open(), self.0.open()]))
    }
}

fn two_engines() -> TwoEngines {
    TwoEngines(place())
}

mod alternating {
    bareboat_storage::conformance!(super::two_engines);
}

mod conformance {
    bareboat_storage::conformance!(super::place);
    bareboat_storage::backup_conformance!(super::place);
    bareboat_storage::clock_conformance!(super::place);
}
