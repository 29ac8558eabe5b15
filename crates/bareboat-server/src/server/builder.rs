//! Builds a server from its parts.

mod error;
#[cfg(feature = "dynamic")]
mod extensions;
mod hooks;
mod limits;
mod operation;
#[cfg(feature = "outbound")]
mod outward;
#[cfg(not(feature = "dynamic"))]
mod without_extensions;

pub use error::BuildError;
#[cfg(feature = "dynamic")]
use extensions::Extensions;
#[cfg(not(feature = "dynamic"))]
use without_extensions::Extensions;

use super::Server;
use super::documents::Documents;
use super::health::{Check, Health};
use super::hooks::Hooks;
use super::pages::Page;
use super::registration::{connections_of, register};
use super::state::{Ending, Limits, State, UnderWay};
use super::version;
use super::webhook_paths::WebhookPaths;
use crate::admission::Chain;
use crate::annex::Annexes;
use crate::audit::Audit;
use crate::authn::{AnonymousAccess, Authenticator, FirstOf};
use crate::authz::{Authorizer, MastersOnly};
use crate::clock::Clock;
use crate::connections::{self, ConnectionLimits};
use crate::flow::{self, Flow, FlowControl};
use crate::kinds::catalog::{Backing, Catalog};
use crate::kinds::computed::Computed;
use crate::kinds::connector::Connector;
use crate::kinds::stored_kind::StoredKind;
use crate::metrics::Metrics;
use crate::openapi::{Descriptions, Messages, Sources};
use crate::outbound::Outward;
use crate::protobuf::{MessageByName, MetaMessages};
use crate::proxy::Proxy;
use crate::revocation::Revocations;
use crate::spans::SpanExporter;
use crate::work::Threads;
use bareboat_api::admission::{Mutator, Validator};
use bareboat_api::kind::{Kind, Subresource};
use bareboat_api::{Str, Value};
use bareboat_storage::{MemoryBackend, Observer, Store, StoreOptions};
use prometheus::core::Collector;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tokio::sync::watch;

/// Builds a server.
///
/// By default, a server stores objects in memory, has no authenticator and allows only the group `system:masters`.
/// Parts are used in the order in which they are added.
///
/// ```
/// # mod bareboat { pub mod server { pub use bareboat_server::*; } }
/// use bareboat::server::Server;
/// use bareboat::server::authn::Anonymous;
/// use bareboat::server::authz::AllowAll;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Server::builder()
///     .authenticator(Anonymous)
///     .authorizer(AllowAll)
///     .max_in_flight(100, 50)
///     .build()?;
/// let address = server.listen("127.0.0.1:0".parse()?, None).await?;
/// println!("listening on http://{address}");
/// server.shut_down().await;
/// # Ok(()) }
/// ```
pub struct ServerBuilder {
    store: Option<Store>,
    kinds: Vec<Kind>,
    kinds_elsewhere: Vec<(Kind, Store)>,
    hooks: Hooks,
    computed: Vec<Computed>,
    connectors: Vec<([String; 3], Connector)>,
    outward: Outward,
    extensions: Extensions,
    authn: FirstOf,
    anonymous: AnonymousAccess,
    revocations: Revocations,
    authorizer: Arc<dyn Authorizer>,
    admission: Chain,
    message_by_name: Option<MessageByName>,
    messages: Option<Messages>,
    descriptions: Option<Descriptions>,
    checks: Vec<(String, Check)>,
    pages: BTreeMap<String, Page>,
    webhook_paths: WebhookPaths,
    annexes: Annexes,
    observers: Vec<(String, Arc<dyn Observer>)>,
    collectors: Vec<Box<dyn Collector>>,
    audit: Option<Arc<Audit>>,
    spans: Option<Arc<dyn SpanExporter>>,
    limits: Limits,
    clock: Clock,
    inflight: (usize, usize),
    flow_control: Option<FlowControl>,
    connections: ConnectionLimits,
    version: Value,
}

bareboat_api::opaque_debug!(ServerBuilder);

impl Default for ServerBuilder {
    fn default() -> Self {
        ServerBuilder {
            store: None,
            kinds: Vec::new(),
            kinds_elsewhere: Vec::new(),
            hooks: Hooks::default(),
            computed: Vec::new(),
            connectors: Vec::new(),
            outward: Default::default(),
            extensions: Default::default(),
            authn: FirstOf::default(),
            anonymous: AnonymousAccess::default(),
            revocations: Revocations::default(),
            authorizer: Arc::new(MastersOnly),
            admission: Chain::default(),
            message_by_name: None,
            messages: None,
            descriptions: None,
            checks: Vec::new(),
            pages: BTreeMap::new(),
            webhook_paths: WebhookPaths::default(),
            annexes: Vec::new(),
            observers: Vec::new(),
            collectors: Vec::new(),
            audit: None,
            spans: None,
            limits: Limits {
                request: Duration::from_secs(60),
                write: Duration::from_secs(34),
                slow: Some(Duration::from_secs(1)),
                drain: Duration::from_secs(10),
                goodbye: Duration::from_secs(1),
            },
            clock: Clock::default(),
            inflight: (400, 200),
            flow_control: flow::default_control(),
            connections: ConnectionLimits::default(),
            version: version::current(),
        }
    }
}

impl ServerBuilder {
    /// Sets the store; the default is in memory.
    #[must_use]
    pub fn storage(mut self, store: Store) -> Self {
        self.store = Some(store);
        self
    }

    /// Serves a stored kind.
    #[must_use]
    pub fn kind(mut self, kind: Kind) -> Self {
        self.kinds.push(kind);
        self
    }

    /// Serves several stored kinds.
    #[must_use]
    pub fn kinds(mut self, kinds: impl IntoIterator<Item = Kind>) -> Self {
        self.kinds.extend(kinds);
        self
    }

    /// Serves a computed kind.
    #[must_use]
    pub fn computed(mut self, computed: Computed) -> Self {
        self.computed.push(computed);
        self
    }

    /// Adds a subresource to every version of a kind that was added before, and replaces one with the same name. A
    /// missing kind is ignored, because profiles differ in their kinds.
    #[must_use]
    pub fn subresource(mut self, group: &str, plural: &str, part: &Subresource) -> Self {
        let kinds = self.kinds.iter_mut();
        for kind in kinds.filter(|kind| kind.group == group && kind.names.plural == plural) {
            for version in &mut kind.versions {
                version.subresources.retain(|known| known.name != part.name);
                version.subresources.push(part.clone());
            }
        }
        self
    }

    /// Sets the handler of a connect subresource of a stored kind.
    #[must_use]
    pub fn connect(
        mut self,
        group: &str,
        plural: &str,
        subresource: &str,
        connector: Connector,
    ) -> Self {
        let place = [group, plural, subresource].map(str::to_owned);
        self.connectors.push((place, connector));
        self
    }

    /// Adds an authenticator.
    #[must_use]
    pub fn authenticator(mut self, authenticator: impl Authenticator + 'static) -> Self {
        self.authn.push(Arc::new(authenticator));
        self
    }

    /// Sets which requests without credentials are accepted; the default is those for health and version.
    #[must_use]
    pub fn anonymous_access(mut self, access: &AnonymousAccess) -> Self {
        self.anonymous = access.clone();
        self
    }

    /// Returns the revocations, which end streams of clients that lost their permission. Parts that know when rights
    /// change keep a clone.
    pub fn revocations(&self) -> &Revocations {
        &self.revocations
    }

    /// Replaces the authorizer; `make` gets the current one.
    #[must_use]
    pub fn map_authorizer<A: Authorizer + 'static>(
        mut self,
        make: impl FnOnce(Arc<dyn Authorizer>) -> A,
    ) -> Self {
        self.authorizer = Arc::new(make(self.authorizer));
        self
    }

    /// Sets the authorizer; members of `system:masters` are always allowed.
    #[must_use]
    pub fn authorizer(mut self, authorizer: impl Authorizer + 'static) -> Self {
        self.authorizer = Arc::new(authorizer);
        self
    }

    /// Adds a mutator, which may change every write.
    #[must_use]
    pub fn mutator(mut self, mutator: impl Mutator + 'static) -> Self {
        self.admission.mutators.push(Arc::new(mutator));
        self
    }

    /// Adds a validator, which may refuse every write.
    #[must_use]
    pub fn validator(mut self, validator: impl Validator + 'static) -> Self {
        self.admission.validators.push(Arc::new(validator));
        self
    }

    /// Enables protobuf, with messages found by name, and by group, version and kind.
    #[must_use]
    pub fn protobuf(mut self, by_name: MessageByName, by_kind: Messages) -> Self {
        self.message_by_name = Some(by_name);
        self.messages = Some(by_kind);
        self
    }

    /// Sets the descriptions of built-in kinds for OpenAPI documents.
    #[must_use]
    pub fn descriptions(mut self, descriptions: Descriptions) -> Self {
        self.descriptions = Some(descriptions);
        self
    }

    /// Adds a readiness check.
    #[must_use]
    pub fn ready_check(
        mut self,
        name: &str,
        check: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.checks.push((name.to_owned(), Arc::new(check)));
        self
    }

    /// Adds a view of a resource of the store (such as `core/services`) that is updated inside each commit.
    #[must_use]
    pub fn observe(mut self, resource: &str, observer: Arc<dyn Observer>) -> Self {
        self.observers.push((resource.to_owned(), observer));
        self
    }

    /// Adds metrics to the server's own.
    #[must_use]
    pub fn collector(mut self, collector: impl Collector + 'static) -> Self {
        self.collectors.push(Box::new(collector));
        self
    }

    /// Builds the server.
    pub fn build(self) -> Result<Server, BuildError> {
        let store = match self.store {
            Some(store) => store,
            None => Store::open(Arc::new(MemoryBackend::new()), StoreOptions::default())
                .map_err(BuildError::Store)?,
        };
        let catalog = Arc::new(Catalog::default());
        let outgoing = self.outward.connect(&store);
        let mut admission = self.admission;
        let elsewhere = self.kinds_elsewhere.iter().map(|(kind, _)| kind);
        admission.note_kinds(self.kinds.iter().chain(elsewhere));
        let mut collectors = self.collectors;
        let extensions = self.extensions;
        let installed = extensions.install(&mut admission, &catalog, &store, &outgoing);
        let mut extended = installed.map_err(BuildError::Metrics)?;
        collectors.extend(extended.collectors());
        let mut connectors = self.connectors;
        let mut other_stores = Vec::new();
        let kinds = self.kinds.into_iter().chain(extended.kind());
        let kinds = kinds.map(|kind| (kind, store.clone()));
        for (kind, own) in kinds.chain(self.kinds_elsewhere) {
            let connections = connections_of(&kind, &mut connectors)?;
            let served = StoredKind::new(kind, &own).with_connections(connections);
            if !own.is_same(&store) {
                other_stores.push(own);
            }
            register(&catalog, Backing::Stored(Arc::new(served)))?;
        }
        if let Some((place, _)) = connectors.first() {
            return Err(BuildError::NoSuchSubresource(place.join("/")));
        }
        for computed in self.computed {
            register(&catalog, Backing::Computed(Arc::new(computed)))?;
        }
        let aggregation = extended.observe(&store);
        for (resource, observer) in self.observers {
            store.observe(&resource, observer);
        }
        let mut health = Health::default();
        health.add_live("ping", Arc::new(|| Ok(())));
        let poison = store.clone();
        health.add_live(
            "store",
            Arc::new(move || poison.poison().map_or(Ok(()), |why| Err(why.to_string()))),
        );
        super::fresh::add_check(&mut health, &store);
        let mut hooks = self.hooks;
        for (name, check) in self.checks.into_iter().chain(hooks.checks()) {
            health.add_ready(name, check);
        }
        self.authn.attach(&self.revocations);
        let ending = watch::Sender::new(false);
        let under_way = UnderWay::default();
        let proxy = Proxy::new(outgoing.outbound, Ending::of(&ending), under_way.clone());
        let shutdown = ending.subscribe();
        let open = move || {
            if *shutdown.borrow() {
                Err("the server is shutting down".to_owned())
            } else {
                Ok(())
            }
        };
        health.add_ready("shutdown", Arc::new(open));
        let sources = Sources {
            title: Str::const_new("Kubernetes"),
            version: Str::const_new("v1.36.4"),
            descriptions: self.descriptions,
            messages: self.messages,
        };
        let flow = Flow::build(self.flow_control, self.inflight);
        collectors.extend(flow.collector());
        Ok(Server {
            state: Arc::new(State {
                store,
                other_stores,
                hooks,
                catalog,
                aggregation,
                credential_headers: self.authn.credential_headers(),
                authn: self.authn,
                anonymous: self.anonymous,
                revocations: self.revocations,
                authorizer: self.authorizer,
                admission,
                messages: self
                    .message_by_name
                    .map_or_else(MetaMessages::default, MetaMessages::new),
                flow,
                threads: Threads::new(),
                proxy,
                reach: outgoing.reach,
                connections: Arc::new(connections::Connections::new(self.connections)),
                audit: self.audit,
                spans: self.spans,
                metrics: Metrics::new(collectors).map_err(BuildError::Metrics)?,
                documents: Documents::new(sources),
                health,
                pages: self.pages,
                webhook_paths: self.webhook_paths,
                annexes: self.annexes,
                limits: self.limits,
                clock: self.clock,
                version: self.version,
                under_way,
                ending,
                closed: AtomicBool::new(false),
            }),
        })
    }
}
