//! Building a server: data and parts in, a value out.

use super::Server;
use super::documents::Documents;
use super::health::{Check, Health};
use super::pages::Page;
use super::state::{Ending, Limits, State, UnderWay};
use crate::admission::Chain;
use crate::authn::{Authenticator, FirstOf};
use crate::authz::{Authorizer, MastersOnly};
use crate::connections::{self, ConnectionLimits};
use crate::flow::Flow;
use crate::kinds::catalog::{Catalog, Serving};
use crate::kinds::computed::Computed;
use crate::kinds::connector::{Connections, Connector};
use crate::kinds::custom::{self, CustomKinds};
use crate::kinds::served::Served;
use crate::metrics::Metrics;
use crate::openapi::{Descriptions, Messages, Sources};
use crate::outbound::Outbound;
use crate::protobuf::{Lookup, MetaMessages};
use crate::proxy::Proxy;
use crate::tls::ClientIdentity;
use crate::work::Threads;
use bareboat_api::admission::{Mutator, Validator};
use bareboat_api::kind::{Kind, Subresource};
use bareboat_api::{Str, Value};
use bareboat_storage::{MemoryBackend, Observer, OpenError, Store, StoreOptions};
use prometheus::core::Collector;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Why a server could not be built.
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// The store could not be opened.
    Store(OpenError),
    /// Two kinds want the same place in URLs.
    SameResource(String),
    /// A kind has no version.
    NoVersion(String),
    /// Somebody answers for a subresource that no kind has as a connection.
    NoSuchSubresource(String),
    /// Whoever is to answer for a subresource cannot be called.
    Remote {
        /// The subresource.
        subresource: String,
        /// What is wrong.
        why: String,
    },
    /// Two metrics have the same name.
    Metrics(prometheus::Error),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::Store(_) => f.write_str("the store could not be opened"),
            BuildError::SameResource(name) => write!(f, "two kinds are called {name}"),
            BuildError::NoVersion(name) => write!(f, "the kind {name} has no version"),
            BuildError::NoSuchSubresource(name) => {
                write!(f, "no stored kind has the connection {name}")
            }
            BuildError::Metrics(_) => f.write_str("the metrics do not fit together"),
            BuildError::Remote { subresource, why } => {
                write!(
                    f,
                    "whoever is to answer for {subresource} cannot be called: {why}"
                )
            }
        }
    }
}

impl std::error::Error for BuildError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            BuildError::Store(error) => Some(error),
            BuildError::Metrics(error) => Some(error),
            _ => None,
        }
    }
}

/// A server in the making.
pub struct ServerBuilder {
    store: Option<Store>,
    kinds: Vec<Kind>,
    computed: Vec<Computed>,
    connectors: Vec<([String; 3], Connector)>,
    identity: Option<ClientIdentity>,
    definitions: Option<Kind>,
    authn: FirstOf,
    authorizer: Arc<dyn Authorizer>,
    admission: Chain,
    lookup: Option<Lookup>,
    messages: Option<Messages>,
    descriptions: Option<Descriptions>,
    checks: Vec<(String, Check)>,
    pages: BTreeMap<String, Page>,
    observers: Vec<(String, Arc<dyn Observer>)>,
    collectors: Vec<Box<dyn Collector>>,
    limits: Limits,
    inflight: (usize, usize),
    connections: ConnectionLimits,
    version: Value,
}

impl Default for ServerBuilder {
    fn default() -> Self {
        ServerBuilder {
            store: None,
            kinds: Vec::new(),
            computed: Vec::new(),
            connectors: Vec::new(),
            identity: None,
            definitions: None,
            authn: FirstOf::default(),
            authorizer: Arc::new(MastersOnly),
            admission: Chain::default(),
            lookup: None,
            messages: None,
            descriptions: None,
            checks: Vec::new(),
            pages: BTreeMap::new(),
            observers: Vec::new(),
            collectors: Vec::new(),
            limits: Limits {
                request: Duration::from_secs(60),
                write: Duration::from_secs(34),
                drain: Duration::from_secs(10),
            },
            inflight: (400, 200),
            connections: ConnectionLimits::default(),
            version: version(),
        }
    }
}

/// What `/version` says: the Kubernetes version whose API this is, as clients parse it.
fn version() -> Value {
    bareboat_api::value!({
        "major": "1",
        "minor": "36",
        "gitVersion": (concat!("v1.36.4+bareboat-", env!("CARGO_PKG_VERSION"))),
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "rustc",
        "platform": (format!("{}/{}", std::env::consts::OS, go_architecture())),
    })
}

/// The architecture under the name Go gives it, as clients expect it here.
fn go_architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

impl ServerBuilder {
    /// Stores objects here; in memory if nothing is said.
    #[must_use]
    pub fn storage(mut self, store: Store) -> Self {
        self.store = Some(store);
        self
    }

    /// Serves a kind out of the store.
    #[must_use]
    pub fn kind(mut self, kind: Kind) -> Self {
        self.kinds.push(kind);
        self
    }

    /// Serves several kinds out of the store.
    #[must_use]
    pub fn kinds(mut self, kinds: impl IntoIterator<Item = Kind>) -> Self {
        self.kinds.extend(kinds);
        self
    }

    /// Serves a kind that a program computes.
    #[must_use]
    pub fn computed(mut self, computed: Computed) -> Self {
        self.computed.push(computed);
        self
    }

    /// Adds a subresource to every version of a kind that was added before this. It takes the place of one with the same
    /// name. A kind that is not there is left out: profiles differ in the kinds they have.
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

    /// Serves a document at a path that is not a resource, such as `/.well-known/openid-configuration`.
    #[must_use]
    pub fn page(mut self, path: &str, page: Page) -> Self {
        self.pages.insert(path.to_owned(), page);
        self
    }

    /// Says who answers for a subresource that a stored kind has as a connection.
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

    /// The certificate by which those whom requests are passed on to know this server, and so believe who is asking.
    #[must_use]
    pub fn client_identity(mut self, identity: ClientIdentity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Serves custom kinds; `definitions` is the kind CustomResourceDefinition itself.
    #[must_use]
    pub fn custom_resources(mut self, definitions: Kind) -> Self {
        self.definitions = Some(definitions);
        self
    }

    /// One more way to find out who asks.
    #[must_use]
    pub fn authenticator(mut self, authenticator: impl Authenticator + 'static) -> Self {
        self.authn.push(Arc::new(authenticator));
        self
    }

    /// Decides who may do what; members of `system:masters` always may.
    #[must_use]
    pub fn authorizer(mut self, authorizer: impl Authorizer + 'static) -> Self {
        self.authorizer = Arc::new(authorizer);
        self
    }

    /// May change every write.
    #[must_use]
    pub fn mutator(mut self, mutator: impl Mutator + 'static) -> Self {
        self.admission.mutators.push(Arc::new(mutator));
        self
    }

    /// May refuse every write.
    #[must_use]
    pub fn validator(mut self, validator: impl Validator + 'static) -> Self {
        self.admission.validators.push(Arc::new(validator));
        self
    }

    /// Speaks protobuf with the messages of a table of facts, found by name, and by group, version and kind.
    #[must_use]
    pub fn protobuf(mut self, by_name: Lookup, by_kind: Messages) -> Self {
        self.lookup = Some(by_name);
        self.messages = Some(by_kind);
        self
    }

    /// Describes fields of built-in kinds in OpenAPI documents.
    #[must_use]
    pub fn descriptions(mut self, descriptions: Descriptions) -> Self {
        self.descriptions = Some(descriptions);
        self
    }

    /// Something that must hold before the server calls itself ready.
    #[must_use]
    pub fn ready_check(
        mut self,
        name: &str,
        check: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.checks.push((name.to_owned(), Arc::new(check)));
        self
    }

    /// A view on a resource of the store (such as `core/services`) that is kept up to date inside each commit.
    #[must_use]
    pub fn observe(mut self, resource: &str, observer: Arc<dyn Observer>) -> Self {
        self.observers.push((resource.to_owned(), observer));
        self
    }

    /// Metrics that are printed together with the server's own.
    #[must_use]
    pub fn collector(mut self, collector: impl Collector + 'static) -> Self {
        self.collectors.push(Box::new(collector));
        self
    }

    /// How many reads and how many writes may be under way at once.
    #[must_use]
    pub fn max_in_flight(mut self, reads: usize, writes: usize) -> Self {
        self.inflight = (reads, writes);
        self
    }

    /// How many connections may be open; never more than the process may have files, less a reserve.
    #[must_use]
    pub fn max_connections(mut self, total: usize) -> Self {
        self.connections.total = Some(total);
        self
    }

    /// How many of them may be open before they have brought a request with credentials.
    #[must_use]
    pub fn max_unauthenticated_connections(mut self, total: usize) -> Self {
        self.connections.unauthenticated = Some(total);
        self
    }

    /// How many of those may come from one address.
    #[must_use]
    pub fn max_unauthenticated_connections_per_address(mut self, each: usize) -> Self {
        self.connections.per_address = each.max(1);
        self
    }

    /// How long a client may take nothing of what it is sent before it is cut off.
    #[must_use]
    pub fn stalled_client_timeout(mut self, limit: Duration) -> Self {
        self.connections.stalled = limit;
        self
    }

    /// How long a connection may be open without a request: before it has shown credentials, and afterwards.
    #[must_use]
    pub fn idle_connection_timeout(mut self, unauthenticated: Duration, known: Duration) -> Self {
        self.connections.silent = unauthenticated;
        self.connections.idle = known;
        self
    }

    /// How long an ordinary request may take.
    #[must_use]
    pub fn request_timeout(mut self, limit: Duration) -> Self {
        self.limits.request = limit;
        self.limits.write = self.limits.write.min(limit);
        self
    }

    /// Makes the server.
    pub fn build(self) -> Result<Server, BuildError> {
        let store = match self.store {
            Some(store) => store,
            None => Store::open(Arc::new(MemoryBackend::new()), StoreOptions::default())
                .map_err(BuildError::Store)?,
        };
        let catalog = Arc::new(Catalog::default());
        let outbound = Arc::new(Outbound::new(&store, self.identity));
        let custom = self.definitions.map(|mut kind| {
            let custom = Arc::new(CustomKinds::new(&catalog, &store, &outbound));
            kind.strategy = Arc::new(custom.strategy());
            (kind, custom)
        });
        let (definitions, custom) =
            custom.map_or((None, None), |(kind, custom)| (Some(kind), Some(custom)));
        let mut connectors = self.connectors;
        for kind in self.kinds.into_iter().chain(definitions) {
            let connections = connections_of(&kind, &mut connectors)?;
            let served = Served::new(kind, &store).with_connections(connections);
            register(&catalog, Serving::Stored(Arc::new(served)))?;
        }
        if let Some((place, _)) = connectors.first() {
            return Err(BuildError::NoSuchSubresource(place.join("/")));
        }
        for computed in self.computed {
            register(&catalog, Serving::Computed(Arc::new(computed)))?;
        }
        if let Some(custom) = custom {
            store.observe(custom::STORE, custom);
        }
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
        for (name, check) in self.checks {
            health.add_ready(name, check);
        }
        let ending = watch::Sender::new(false);
        let under_way = UnderWay::default();
        let proxy = Proxy::new(outbound, Ending::of(&ending), under_way.clone());
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
        Ok(Server {
            state: Arc::new(State {
                store,
                catalog,
                authn: self.authn,
                authorizer: self.authorizer,
                admission: self.admission,
                messages: self
                    .lookup
                    .map_or_else(MetaMessages::default, MetaMessages::new),
                flow: Flow::new(self.inflight.0, self.inflight.1),
                threads: Threads::new(),
                proxy,
                connections: Arc::new(connections::Connections::new(self.connections)),
                metrics: Metrics::new(self.collectors).map_err(BuildError::Metrics)?,
                documents: Documents::new(sources),
                health,
                pages: self.pages,
                limits: self.limits,
                version: self.version,
                under_way,
                ending,
            }),
        })
    }
}

/// Who answers for the connections of a kind; those that found their kind are taken out.
fn connections_of(
    kind: &Kind,
    connectors: &mut Vec<([String; 3], Connector)>,
) -> Result<Connections, BuildError> {
    let mut connections = Connections::default();
    let mut others = Vec::new();
    for (place, connector) in connectors.drain(..) {
        let [group, plural, subresource] = &place;
        if *group != kind.group || *plural != kind.names.plural {
            others.push((place, connector));
            continue;
        }
        connector.check().map_err(|error| BuildError::Remote {
            subresource: place.join("/"),
            why: error.to_string(),
        })?;
        if !connections.add_to(kind, subresource, connector) {
            return Err(BuildError::NoSuchSubresource(place.join("/")));
        }
    }
    *connectors = others;
    Ok(connections)
}

fn register(catalog: &Catalog, serving: Serving) -> Result<(), BuildError> {
    let kind = serving.kind();
    let name = kind.group_resource().to_string();
    if kind.versions.is_empty() {
        return Err(BuildError::NoVersion(name));
    }
    if catalog
        .table()
        .find(&kind.group, &kind.names.plural)
        .is_some()
    {
        return Err(BuildError::SameResource(name));
    }
    catalog.insert(serving);
    Ok(())
}
