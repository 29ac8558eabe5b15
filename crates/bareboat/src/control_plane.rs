//! Everything `bareboat serve` serves: built-in kinds, custom kinds, admission, protobuf, controllers.

use crate::admission::{self, UnknownPlugin, Webhooks};
use crate::fairness;
use crate::issued::{self, IssuedCertificates};
use crate::rbac::Rbac;
use crate::reviews;
use bareboat_api::kind::SubresourceRole;
use bareboat_api::{Kind, Value};
use bareboat_builtin::admission::PodSecurityConfiguration;
use bareboat_builtin::services::{self, Claims, ServiceEndpoints, ServiceRanges};
use bareboat_builtin::{describe, facts, kinds};
#[cfg(feature = "controllers")]
use bareboat_controllers::{Controllers, KubernetesService, Options};
#[cfg(feature = "controllers")]
use bareboat_server::Server;
use bareboat_server::ServerBuilder;
use bareboat_storage::{Entry, Event, EventKind, Observer, Snapshot};
#[cfg(feature = "streams")]
use bareboat_streams::{Connector, KubeletSettings, KubeletUrl, Kubelets, SUBRESOURCES};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Settings of the default control plane.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Settings {
    /// The ranges for service addresses and node ports.
    pub services: ServiceRanges,
    /// Which built-in kinds are served.
    pub profile: Profile,
    /// Whether services are reached by their endpoints only, never by their cluster IPs.
    pub endpoints_only: bool,
    /// The disabled admission plug-ins, from [`admission::PLUGINS`].
    pub disabled_admission: BTreeSet<&'static str>,
    /// The policies of pods in namespaces without labels, and exemptions.
    pub pod_security: PodSecurityConfiguration,
    /// How kubelets are called.
    #[cfg(feature = "streams")]
    pub kubelets: KubeletSettings,
    #[cfg(feature = "streams")]
    connectors: Vec<(String, String, Connector)>,
    /// The server's credentials for webhooks.
    pub webhooks: Webhooks,
}

impl Settings {
    /// Sets the profile.
    #[must_use]
    pub fn profile(mut self, profile: Profile) -> Settings {
        self.profile = profile;
        self
    }

    /// Sets the ranges for services.
    #[must_use]
    pub fn services(mut self, ranges: ServiceRanges) -> Settings {
        self.services = ranges;
        self
    }

    /// Sets how kubelets are called.
    #[cfg(feature = "streams")]
    #[must_use]
    pub fn kubelets(mut self, kubelets: KubeletSettings) -> Settings {
        self.kubelets = kubelets;
        self
    }

    /// Serves a subresource of [`crate::streams::SUBRESOURCES`], such as `exec` of `pods`, with a connector instead of
    /// kubelets.
    #[cfg(feature = "streams")]
    #[must_use]
    pub fn stream(mut self, plural: &str, subresource: &str, connector: Connector) -> Settings {
        let place = (plural.to_owned(), subresource.to_owned(), connector);
        self.connectors.push(place);
        self
    }

    /// Sets whether services are reached by their endpoints only. By default the cluster IP of a service without
    /// endpoints is tried.
    #[must_use]
    pub fn endpoints_only(mut self, only: bool) -> Settings {
        self.endpoints_only = only;
        self
    }

    /// Sets the server's credentials for webhooks.
    #[must_use]
    pub fn webhooks(mut self, webhooks: Webhooks) -> Settings {
        self.webhooks = webhooks;
        self
    }

    /// Disables admission plug-ins.
    pub fn without_admission<'a>(
        mut self,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Result<Settings, UnknownPlugin> {
        for name in names {
            self.disabled_admission.insert(admission::plugin(name)?);
        }
        Ok(self)
    }

    /// Sets the policies of pods in namespaces without labels, and exemptions.
    #[must_use]
    pub fn pod_security(mut self, configuration: PodSecurityConfiguration) -> Settings {
        self.pod_security = configuration;
        self
    }

    /// Returns the service `default/kubernetes` of a server with these settings, for [`Options::kubernetes`].
    #[cfg(feature = "controllers")]
    pub fn kubernetes(&self, port: u16) -> KubernetesService {
        KubernetesService {
            networks: self.services.networks(),
            address: self.services.first_address(),
            port,
            endpoint: None,
        }
    }
}

/// The kind CustomResourceDefinition.
const DEFINITIONS: (&str, &str) = ("apiextensions.k8s.io", "customresourcedefinitions");

/// The set of built-in kinds that a control plane serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Every built-in kind.
    #[default]
    Full,
    /// The kinds that a control plane for custom kinds needs, without those for containers, networks and volumes.
    Bare,
}

/// The error for an unknown profile name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown profile {0}; the profiles are full and bare")]
pub struct UnknownProfile(pub String);

impl std::str::FromStr for Profile {
    type Err = UnknownProfile;

    fn from_str(text: &str) -> Result<Profile, UnknownProfile> {
        match text {
            "full" => Ok(Profile::Full),
            "bare" => Ok(Profile::Bare),
            _ => Err(UnknownProfile(text.to_owned())),
        }
    }
}

/// Adds the default control plane to a server.
///
/// ```no_run
/// use bareboat::prelude::*;
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Server::builder()
///     .storage(open_sqlite("state.db", StoreOptions::default())?)
///     .control_plane()
///     .authenticator(StaticTokens::parse("secret,admin,1,system:masters")?)
///     .build()?;
/// let controllers = bareboat::control_plane::start(&server).await;
/// server.listen("127.0.0.1:8080".parse()?, None).await?;
/// // kubectl --server http://127.0.0.1:8080 --token secret get namespaces
/// # drop(controllers);
/// # Ok(()) }
/// ```
pub trait ControlPlane: Sized {
    /// Serves the built-in kinds and custom kinds, with admission and protobuf. RBAC authorizes requests, unless an
    /// authorizer is set after this.
    #[must_use]
    fn control_plane(self) -> Self {
        self.control_plane_with(&Settings::default())
    }

    /// Like [`Self::control_plane`], with settings.
    #[must_use]
    fn control_plane_with(self, settings: &Settings) -> Self;
}

impl ControlPlane for ServerBuilder {
    fn control_plane_with(self, settings: &Settings) -> Self {
        let profile = settings.profile;
        let claims = Claims::new(settings.services.clone());
        let mut builder = fairness::install(Rbac::new().install(self))
            .service_resolver(ServiceEndpoints::new(settings.endpoints_only))
            .aggregation()
            .protobuf(facts::message, facts::kind)
            .descriptions(describe::definition);
        // The metric names are constants and valid, so this does not fail.
        if let Ok(issued) = IssuedCertificates::new() {
            builder = builder
                .observe(issued::STORE, Arc::new(issued.clone()))
                .collector(issued);
        }
        if profile == Profile::Full {
            builder = builder
                .observe(SERVICES.2, watching(&claims, Claims::note, Claims::forget))
                .observe(
                    ADDRESSES,
                    watching(&claims, Claims::note_address, Claims::forget_addresses),
                )
                .observe(
                    NETWORKS,
                    watching(&claims, Claims::note_networks, Claims::forget_networks),
                );
        }
        builder = admission::install(
            builder,
            profile,
            &settings.disabled_admission,
            &settings.pod_security,
            &settings.webhooks,
        );
        #[cfg(feature = "streams")]
        if profile == Profile::Full {
            builder = connected(builder, settings);
        }
        let served = |kind: &Kind| profile == Profile::Full || kinds::is_bare(kind);
        for kind in kinds::all().into_iter().filter(served) {
            let place = (kind.group.as_str(), kind.names.plural.as_str());
            builder = match reviews::computed(without_missing_parts(kind.clone())) {
                Ok(review) => builder.computed(review),
                Err(kind) if place == (SERVICES.0, SERVICES.1) => {
                    builder.kind(services::allocating(*kind, &claims))
                }
                Err(kind) if place == DEFINITIONS => builder.custom_resources(*kind),
                Err(kind) => builder.kind(*kind),
            };
        }
        builder
    }
}

/// Group, plural and storage resource of Service.
const SERVICES: (&str, &str, &str) = ("", "services", "core/services");

/// The storage resource of IPAddresses.
const ADDRESSES: &str = "networking.k8s.io/ipaddresses";
/// The storage resource of ServiceCIDRs.
const NETWORKS: &str = "networking.k8s.io/servicecidrs";

/// Reports stored objects of one resource to the service allocator.
struct Watching {
    claims: Arc<Claims>,
    note: fn(&Claims, &str, Option<&Value>),
    forget: fn(&Claims),
}

fn watching(
    claims: &Arc<Claims>,
    note: fn(&Claims, &str, Option<&Value>),
    forget: fn(&Claims),
) -> Arc<dyn Observer> {
    Arc::new(Watching {
        claims: claims.clone(),
        note,
        forget,
    })
}

impl Watching {
    fn tell(&self, entry: &Entry) {
        match bareboat_wire::json::parse(entry.json()) {
            Ok(parsed) => (self.note)(&self.claims, entry.key(), Some(&parsed.value)),
            // An unreadable object is not served, so it claims nothing.
            Err(error) => {
                tracing::error!(key = entry.key(), %error, "a stored object does not parse");
            }
        }
    }
}

impl Observer for Watching {
    fn reset(&self, snapshot: &Snapshot) {
        (self.forget)(&self.claims);
        for entry in snapshot.range("", None) {
            self.tell(entry);
        }
    }

    fn changed(&self, event: &Arc<Event>) {
        match event.kind {
            EventKind::Deleted => (self.note)(&self.claims, event.key(), None),
            _ => self.tell(&event.entry),
        }
    }
}

/// Adds the connectors of streams: the program's own, or kubelets.
#[cfg(feature = "streams")]
fn connected(mut builder: ServerBuilder, settings: &Settings) -> ServerBuilder {
    let kubelets = Kubelets::new(settings.kubelets.clone());
    for (group, plural, subresource) in SUBRESOURCES {
        let mut own = settings.connectors.iter().rev();
        let own = own.find(|(of, name, _)| of == plural && name == subresource);
        let connector = match own {
            Some((_, _, connector)) => Some(connector.clone()),
            None => kubelets.connector(plural, subresource),
        };
        if let Some(connector) = connector {
            builder = builder.connect(group, plural, subresource, connector);
        }
    }
    builder.validator(KubeletUrl)
}

/// Removes subresources that nothing serves: actions without an implementation and, without the feature `streams`,
/// connections.
fn without_missing_parts(mut kind: Kind) -> Kind {
    for version in &mut kind.versions {
        version.subresources.retain(|part| match part.role {
            SubresourceRole::Action => part.action.is_some(),
            SubresourceRole::Connect { .. } => cfg!(feature = "streams"),
            _ => true,
        });
    }
    kind
}

/// The usual port of API servers.
#[cfg(feature = "controllers")]
const USUAL_PORT: u16 = 6443;

/// Creates the initial objects and starts the controllers.
#[cfg(feature = "controllers")]
pub async fn start(server: &Server) -> Controllers {
    let options = Options {
        kubernetes: Some(Settings::default().kubernetes(USUAL_PORT)),
        ..Options::default()
    };
    start_with(server, options).await
}

/// Like [`start`], with options for the controllers.
#[cfg(feature = "controllers")]
pub async fn start_with(server: &Server, options: Options) -> Controllers {
    Controllers::start_with(server.clone(), options).await
}
