//! What every request of a server shares.

use super::documents::Documents;
use super::health::Health;
use super::pages::Page;
use crate::admission::Chain;
use crate::authn::FirstOf;
use crate::authz::{self, Authorizer};
use crate::connections::Connections;
use crate::flow::Flow;
use crate::kinds::catalog::Catalog;
use crate::kinds::served::parse_entry;
use crate::metrics::Metrics;
use crate::protobuf::MetaMessages;
use crate::proxy::Proxy;
use crate::request::info::RequestInfo;
use crate::work::Threads;
use bareboat_api::admission::{Brief, Right, World};
use bareboat_api::kind::{BoxFuture, User};
use bareboat_api::{Object, Str};
use bareboat_storage::Store;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// What may be set about requests.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// How long an ordinary request may take.
    pub(crate) request: Duration,
    /// How long a write may take.
    pub(crate) write: Duration,
    /// How long a shutdown waits for requests.
    pub(crate) drain: Duration,
}

/// What every request shares.
pub(crate) struct State {
    pub(crate) store: Store,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) authn: FirstOf,
    pub(crate) authorizer: Arc<dyn Authorizer>,
    pub(crate) admission: Chain,
    pub(crate) messages: MetaMessages,
    pub(crate) flow: Flow,
    pub(crate) threads: Threads,
    pub(crate) proxy: Proxy,
    pub(crate) connections: Arc<Connections>,
    pub(crate) metrics: Metrics,
    pub(crate) documents: Documents,
    pub(crate) health: Health,
    pub(crate) pages: BTreeMap<String, Page>,
    pub(crate) limits: Limits,
    /// What `/version` says.
    pub(crate) version: bareboat_api::Value,
    pub(crate) under_way: UnderWay,
    pub(crate) ending: watch::Sender<bool>,
}

/// How much is under way that a shutdown waits for.
#[derive(Clone, Default)]
pub(crate) struct UnderWay(Arc<AtomicUsize>);

/// Counts as under way while it is held.
pub(crate) struct Counted(UnderWay);

impl UnderWay {
    pub(crate) fn enter(&self) -> Counted {
        self.0.fetch_add(1, Ordering::Relaxed);
        Counted(self.clone())
    }

    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Tells when a server begins to shut down.
#[derive(Clone)]
pub(crate) struct Ending(watch::Receiver<bool>);

impl Ending {
    pub(crate) fn of(sender: &watch::Sender<bool>) -> Ending {
        Ending(sender.subscribe())
    }

    /// Waits for it.
    pub(crate) async fn begun(mut self) {
        // An error means that the server is gone, which is as ended as can be.
        let _ = self.0.wait_for(|ending| *ending).await;
    }
}

impl State {
    pub(crate) fn ending(&self) -> Ending {
        Ending::of(&self.ending)
    }

    pub(crate) fn is_ending(&self) -> bool {
        *self.ending.borrow()
    }

    pub(crate) async fn shut_down(&self) {
        self.ending.send_replace(true);
        let begun = std::time::Instant::now();
        while self.under_way.count() > 0 && begun.elapsed() < self.limits.drain {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        self.store.close().await;
    }
}

fn key(namespace: &str, name: &str) -> String {
    if namespace.is_empty() {
        name.to_owned()
    } else {
        format!("{namespace}/{name}")
    }
}

impl World for State {
    fn brief(&self, store: &str, namespace: &str, name: &str) -> Option<Brief> {
        let entry = self.store.resource(store).get(&key(namespace, name))?;
        let facets = entry.facets();
        Some(Brief {
            uid: Str::new(&facets.uid),
            terminating: facets.deletion_timestamp.is_some(),
        })
    }

    fn get(&self, store: &str, namespace: &str, name: &str) -> Option<Object> {
        let entry = self.store.resource(store).get(&key(namespace, name))?;
        parse_entry(&entry).ok()
    }

    fn list(&self, store: &str, namespace: &str) -> Vec<Object> {
        let snapshot = self.store.resource(store).snapshot();
        let prefix = key(namespace, "");
        snapshot
            .range(&prefix, None)
            .filter_map(|entry| parse_entry(entry).ok())
            .collect()
    }

    fn may<'a>(&'a self, user: &'a User, right: Right<'a>) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let info = RequestInfo::of_right(right);
            let asked = authz::also(self.authorizer.as_ref(), user, &info).await;
            asked.is_ok()
        })
    }
}
