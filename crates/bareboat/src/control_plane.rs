//! Everything `bareboat serve` serves: built-in kinds, custom kinds, admission, protobuf, controllers.

use crate::certificates::{self, IssuedCertificates};
use crate::rbac::Rbac;
use crate::reviews;
use bareboat_api::kind::SubresourceRole;
use bareboat_api::{Kind, Value};
use bareboat_builtin::admission::{
    CertificateSubject, ClaimGrowth, Completion, DefaultClass, LimitRanger, NamespaceLifecycle,
    PodResize, Priority, RuntimeClass, SigningRequests,
};
use bareboat_builtin::services::{self, Claims, ServiceRanges};
use bareboat_builtin::{describe, facts, kinds};
use bareboat_controllers::{Controllers, KubernetesService, Options};
use bareboat_server::{Server, ServerBuilder};
use bareboat_sqlite::{Sqlite, SqliteError};
use bareboat_storage::{
    Entry, Event, EventKind, Observer, OpenError, Snapshot, Store, StoreOptions,
};
use std::path::Path;
use std::sync::Arc;

/// Why the embedded store could not be opened.
#[derive(Debug)]
pub enum OpenSqliteError {
    /// The file cannot be used.
    File(SqliteError),
    /// What is in it cannot be read.
    Content(OpenError),
}

impl std::fmt::Display for OpenSqliteError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            OpenSqliteError::File(error) => error.fmt(f),
            OpenSqliteError::Content(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for OpenSqliteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            OpenSqliteError::File(error) => error.source(),
            OpenSqliteError::Content(error) => error.source(),
        }
    }
}

/// Opens the embedded store in a file, or makes it.
pub fn open_sqlite(
    path: impl AsRef<Path>,
    options: StoreOptions,
) -> Result<Store, OpenSqliteError> {
    let backend = Sqlite::open(path).map_err(OpenSqliteError::File)?;
    Store::open(Arc::new(backend), options).map_err(OpenSqliteError::Content)
}

/// What can be chosen about the default control plane.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Settings {
    /// Where addresses and node ports of services come from.
    pub services: ServiceRanges,
    /// How many of the built-in kinds are served.
    pub profile: Profile,
}

impl Settings {
    /// The same with another profile.
    #[must_use]
    pub fn profile(mut self, profile: Profile) -> Settings {
        self.profile = profile;
        self
    }

    /// The same with other ranges for services.
    #[must_use]
    pub fn services(mut self, ranges: ServiceRanges) -> Settings {
        self.services = ranges;
        self
    }

    /// The service `default/kubernetes` of a server with these settings, for [`Options::kubernetes`].
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

/// How much a control plane serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Every built-in kind, as operators expect.
    #[default]
    Full,
    /// What a control plane for kinds of your own needs, and nothing about containers, networks and volumes.
    Bare,
}

/// There is no profile of that name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownProfile(pub String);

impl std::fmt::Display for UnknownProfile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "there is no profile {}; there are full and bare", self.0)
    }
}

impl std::error::Error for UnknownProfile {}

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
pub trait ControlPlane: Sized {
    /// Serves the built-in kinds and custom kinds, with their admission and in protobuf. Roles and bindings decide
    /// who may do what, unless an authorizer is set after this.
    #[must_use]
    fn control_plane(self) -> Self {
        self.control_plane_with(&Settings::default())
    }

    /// The same, with choices of one's own.
    #[must_use]
    fn control_plane_with(self, settings: &Settings) -> Self;
}

impl ControlPlane for ServerBuilder {
    fn control_plane_with(self, settings: &Settings) -> Self {
        let profile = settings.profile;
        let claims = Claims::new(settings.services.clone());
        let mut builder = Rbac::new()
            .install(self)
            .mutator(NamespaceLifecycle)
            .validator(CertificateSubject)
            .validator(SigningRequests)
            .protobuf(facts::message, facts::kind)
            .descriptions(describe::definition);
        // The names are constants and fit together, so there is always something to count with.
        if let Ok(issued) = IssuedCertificates::new() {
            builder = builder
                .observe(certificates::STORE, Arc::new(issued.clone()))
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
                )
                .mutator(LimitRanger)
                .mutator(Priority)
                .mutator(Completion)
                .mutator(DefaultClass)
                .mutator(RuntimeClass)
                .validator(LimitRanger)
                .validator(Priority)
                .validator(ClaimGrowth)
                .validator(RuntimeClass)
                .validator(PodResize);
        }
        let served = |kind: &Kind| profile == Profile::Full || kinds::is_bare(kind);
        for kind in kinds::all().into_iter().filter(served) {
            let place = (kind.group.as_str(), kind.names.plural.as_str());
            builder = match reviews::computed(without_connections(kind.clone())) {
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

/// The kind Service, and its place in the store.
const SERVICES: (&str, &str, &str) = ("", "services", "core/services");

/// Where objects that tell of addresses are stored.
const ADDRESSES: &str = "networking.k8s.io/ipaddresses";
/// Where objects that tell of networks of services are stored.
const NETWORKS: &str = "networking.k8s.io/servicecidrs";

/// Tells the claims of services what is stored under one resource.
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
            // What cannot be read is served to nobody, and claims nothing.
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

/// A kind without the parts that need somebody who runs containers, or issues tokens.
fn without_connections(mut kind: Kind) -> Kind {
    for version in &mut kind.versions {
        version.subresources.retain(|part| match part.role {
            SubresourceRole::Action => part.action.is_some(),
            SubresourceRole::Connect { .. } => false,
            _ => true,
        });
    }
    kind
}

/// Where API servers usually listen.
const USUAL_PORT: u16 = 6443;

/// Creates what must be there from the start, and starts the controllers.
pub async fn start(server: &Server) -> Controllers {
    let options = Options {
        kubernetes: Some(Settings::default().kubernetes(USUAL_PORT)),
        ..Options::default()
    };
    start_with(server, options).await
}

/// The same, with controllers switched off or told what they cannot know.
pub async fn start_with(server: &Server, options: Options) -> Controllers {
    Controllers::start_with(server.clone(), options).await
}
