//! State shared by all requests of a server.

use super::documents::Documents;
use super::health::Health;
use super::hooks::Hooks;
use super::pages::Page;
use super::paths;
use super::webhook_paths::WebhookPaths;
use crate::admission::Chain;
use crate::aggregation::Aggregation;
use crate::annex::Annexes;
use crate::audit::Audit;
use crate::authn::{AnonymousAccess, CredentialHeaders, FirstOf};
use crate::authz::{self, Authorizer};
use crate::clock::Clock;
use crate::connections::Connections;
use crate::flow::Flow;
use crate::kinds::catalog::Catalog;
use crate::lookup::StoreLookup;
use crate::metrics::Metrics;
use crate::outbound::Reach;
use crate::protobuf::MetaMessages;
use crate::proxy::Proxy;
use crate::request::info::RequestInfo;
use crate::revocation::{Revocations, Standing};
use crate::spans::SpanExporter;
use crate::work::Threads;
use bareboat_api::Object;
use bareboat_api::admission::{Brief, Lookup, Right, ServedResource};
use bareboat_api::kind::{BoxFuture, User};
use bareboat_storage::Store;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// The time between two looks at what is still running.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// Time limits of requests.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// How long an ordinary request may take.
    pub(crate) request: Duration,
    /// How long a write may take.
    pub(crate) write: Duration,
    /// Requests that take longer are logged; `None` logs none.
    pub(crate) slow: Option<Duration>,
    /// How long a shutdown waits for requests.
    pub(crate) drain: Duration,
    /// How long a shutdown waits for open connections without requests.
    pub(crate) goodbye: Duration,
}

/// State shared by all requests.
pub(crate) struct State {
    pub(crate) store: Store,
    /// The stores of kinds that have their own.
    pub(crate) other_stores: Vec<Store>,
    pub(crate) hooks: Hooks,
    pub(crate) catalog: Arc<Catalog>,
    /// Groups and versions of other servers.
    pub(crate) aggregation: Arc<Aggregation>,
    pub(crate) authn: FirstOf,
    pub(crate) anonymous: AnonymousAccess,
    /// Headers that are removed after authentication.
    pub(crate) credential_headers: CredentialHeaders,
    pub(crate) revocations: Revocations,
    pub(crate) authorizer: Arc<dyn Authorizer>,
    pub(crate) admission: Chain,
    pub(crate) messages: MetaMessages,
    pub(crate) flow: Flow,
    pub(crate) threads: Threads,
    pub(crate) proxy: Proxy,
    /// Where the server may connect to.
    pub(crate) reach: Arc<Reach>,
    pub(crate) connections: Arc<Connections>,
    pub(crate) metrics: Metrics,
    pub(crate) documents: Documents,
    pub(crate) health: Health,
    pub(crate) pages: BTreeMap<String, Page>,
    pub(crate) webhook_paths: WebhookPaths,
    /// Functions that answer everything below some paths.
    pub(crate) annexes: Annexes,
    pub(crate) limits: Limits,
    pub(crate) clock: Clock,
    /// The answer of `/version`.
    pub(crate) version: bareboat_api::Value,
    /// Audits requests, if enabled.
    pub(crate) audit: Option<Arc<Audit>>,
    /// Takes spans of requests, if distributed tracing is enabled.
    pub(crate) spans: Option<Arc<dyn SpanExporter>>,
    pub(crate) under_way: UnderWay,
    pub(crate) ending: watch::Sender<bool>,
    /// Set when the shutdown has stopped waiting for requests. From then on requests of connections get 503.
    pub(crate) closed: AtomicBool,
}

impl State {
    /// Returns whether a path needs no credentials: health, version, and webhooks, whose callers have none.
    pub(crate) fn is_public(&self, path: &str) -> bool {
        paths::is_public(path) || self.webhook_paths.has(path)
    }
}

/// Counts running work that a shutdown waits for.
#[derive(Clone, Default)]
pub(crate) struct UnderWay(Arc<AtomicUsize>);

/// Counts as running until it is dropped.
pub(crate) struct Counted(Arc<AtomicUsize>);

impl UnderWay {
    pub(crate) fn enter(&self) -> Counted {
        self.0.fetch_add(1, Ordering::SeqCst);
        Counted(self.0.clone())
    }

    /// Returns how much work is running.
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Resolves when a server starts to shut down.
///
/// For a stream, also when its client loses its permission.
#[derive(Clone)]
pub(crate) struct Ending {
    server: watch::Receiver<bool>,
    stream: Option<Arc<Standing>>,
}

impl Ending {
    pub(crate) fn of(sender: &watch::Sender<bool>) -> Ending {
        Ending {
            server: sender.subscribe(),
            stream: None,
        }
    }

    /// Also resolves when the client of this stream loses its permission.
    #[must_use]
    pub(crate) fn or_of(mut self, stream: Option<Arc<Standing>>) -> Ending {
        self.stream = stream;
        self
    }

    /// Waits until the server starts to shut down or the client of the stream loses its permission.
    pub(crate) async fn begun(mut self) {
        // An error means that the server is gone.
        let server = self.server.wait_for(|ending| *ending);
        match &self.stream {
            None => drop(server.await),
            Some(stream) => tokio::select! {
                ended = server => drop(ended),
                () = stream.revoked() => {}
            },
        }
    }
}

impl State {
    pub(crate) fn ending(&self) -> Ending {
        Ending::of(&self.ending)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    pub(crate) async fn shut_down(&self) {
        self.ending.send_replace(true);
        let begun = Instant::now();
        self.drain(begun).await;
        self.closed.store(true, Ordering::SeqCst);
        // A request may have come in before that, and after the last look at the count.
        while self.under_way.count() > 0 && begun.elapsed() < self.limits.drain {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        self.hooks.finish(self.limits.drain).await;
        if let Some(audit) = &self.audit {
            audit.flush().await;
        }
        if let Some(spans) = &self.spans {
            spans.flush().await;
        }
        for store in self.other_stores.iter().chain([&self.store]) {
            store.close().await;
        }
    }

    /// Waits for running requests, and then a moment for open connections: a client may have sent a request before it learns that its
    /// connection ends, and may still be reading an answer.
    async fn drain(&self, begun: Instant) {
        // Looks are counted instead of time: while the process stands still, nothing that clients have sent arrives.
        let goodbye = self.limits.goodbye.as_millis() / LOOK_AGAIN.as_millis();
        let mut quiet = 0;
        while begun.elapsed() < self.limits.drain {
            let (open, ..) = self.connections.counts();
            let busy = self.under_way.count() > 0 || self.connections.are_read();
            quiet = if busy { 0 } else { quiet + 1 };
            // A connection may have been accepted and not been counted at the first look.
            if quiet > goodbye || (quiet > 1 && open == 0) {
                return;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }
}

impl Lookup for State {
    fn brief(&self, store: &str, namespace: &str, name: &str) -> Option<Brief> {
        StoreLookup(&self.store).brief(store, namespace, name)
    }

    fn get(&self, store: &str, namespace: &str, name: &str) -> Option<Object> {
        StoreLookup(&self.store).get(store, namespace, name)
    }

    fn list(&self, store: &str, namespace: &str) -> Vec<Object> {
        StoreLookup(&self.store).list(store, namespace)
    }

    fn list_labelled(&self, store: &str, namespace: &str, label: (&str, &str)) -> Vec<Object> {
        StoreLookup(&self.store).list_labelled(store, namespace, label)
    }

    fn list_first<'a>(
        &'a self,
        store: &'a str,
        namespace: &'a str,
        most: usize,
    ) -> BoxFuture<'a, (Vec<Object>, usize)> {
        Box::pin(async move {
            let lookup = StoreLookup(&self.store);
            lookup.list_first(store, namespace, most).await
        })
    }

    fn resource(&self, group: &str, kind: &str) -> Option<ServedResource> {
        let table = self.catalog.table();
        let kind = table.find_kind(group, kind)?.kind();
        Some(ServedResource {
            plural: kind.names.plural.clone(),
            namespaced: kind.namespaced(),
        })
    }

    fn may<'a>(&'a self, user: &'a User, right: Right<'a>) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let info = RequestInfo::of_right(right);
            let asked = authz::also(self.authorizer.as_ref(), user, &info).await;
            asked.is_ok()
        })
    }
}
