//! What a controller is, and the table of all controllers.
//!
//! A new controller is a file with a type that implements [`Controller`], and a line in [`ALL`]. Settings, metrics, users
//! and roles follow from the table.

use crate::Options;
use crate::feed::Listener;
use crate::identity::Identity;
use crate::queue::{Queue, Verdict};
use crate::startup::{Context, Startup};
use crate::{
    accounts, addresses, api_services, availability, bootstrap, certificates, default_roles,
    definitions, expiry, extension_authentication, flow_control, garbage, identity_lease,
    kubernetes, leader_election, namespaces, pods, policy_status, quotas, roles, root_ca,
    secret_tokens, service_cidrs,
};
use bareboat_api::kind::BoxFuture;
use bareboat_server::Server;
use bareboat_server::kinds::catalog::Table;
use std::future::Future;
use std::hash::Hash;
use std::sync::Arc;

/// Every controller, in the order in which they start.
pub(crate) static ALL: &[Entry] = &[
    Entry::step("bootstrap", bootstrap::run),
    Entry::step("default-roles", default_roles::run),
    Entry::of::<leader_election::Elector>(),
    Entry::of::<extension_authentication::Publisher>(),
    Entry::of::<kubernetes::ServiceKeeper>(),
    Entry::of::<flow_control::FlowConfigKeeper>(),
    Entry::of::<garbage::GarbageCollector>(),
    Entry::of::<namespaces::NamespaceCleaner>(),
    Entry::of::<definitions::DefinitionCleaner>(),
    Entry::of::<expiry::ExpiryController>(),
    Entry::of::<pods::PodReaper>(),
    Entry::of::<accounts::AccountCreator>(),
    Entry::of::<secret_tokens::TokenFiller>(),
    Entry::of::<root_ca::RootCaPublisher>(),
    Entry::of::<quotas::QuotaController>(),
    Entry::of::<roles::RoleAggregator>(),
    Entry::of::<addresses::AddressRepairer>(),
    Entry::of::<service_cidrs::CidrController>(),
    Entry::of::<api_services::ApiServiceRegistrar>(),
    Entry::of::<availability::AvailabilityController>(),
    Entry::of::<identity_lease::LeaseKeeper>(),
    Entry::of::<certificates::CertificateSigner>(),
    Entry::of::<policy_status::PolicyChecker>(),
];

/// A controller: its listener puts keys into a queue, and the controller reconciles them one by one.
pub(crate) trait Controller: Send + Sync + Sized + 'static {
    /// The name in settings, metrics and documentation.
    const NAME: &'static str;
    /// The name in managed fields and in the user agent.
    const MANAGER: &'static str;
    /// How many keys are reconciled at the same time.
    const PARALLEL: usize;
    /// Whether it works on every server that shares a store. The others work only on the server that leads.
    const EVERYWHERE: bool = false;

    /// The type of the queue's keys: names of objects, or jobs.
    type Key: Clone + Eq + Hash + Send + Sync + 'static;
    /// Reads the feed of stored changes and puts keys into the queue.
    type Listener: Listener + 'static;

    /// The user that it writes as, and what this user may do.
    fn identity(table: &Table) -> Identity;

    /// Whether there is anything to do on a server with these options.
    fn has_work(_server: &Server, _options: &Options) -> bool {
        true
    }

    /// Makes the controller, and the listener that fills its queue.
    fn new(context: &mut Context<'_>, queue: Arc<Queue<Self::Key>>) -> (Self, Self::Listener);

    /// Work that is finished before [`crate::Controllers::start`] returns.
    fn before_start(&self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// Looks at one key, compares what is with what should be, and writes the difference.
    fn reconcile(&self, key: Self::Key) -> impl Future<Output = Verdict> + Send;
}

/// A row of the table.
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    /// Nothing for steps of the start, which run as the server itself.
    identity: Option<fn(&Table) -> Identity>,
    has_work: fn(&Server, &Options) -> bool,
    start: for<'a> fn(&'a mut Startup) -> BoxFuture<'a, ()>,
}

impl Entry {
    const fn of<C: Controller>() -> Entry {
        Entry {
            name: C::NAME,
            identity: Some(C::identity),
            has_work: C::has_work,
            start: Startup::add::<C>,
        }
    }

    /// Something that is done once, at the start, by the server itself.
    const fn step(
        name: &'static str,
        run: for<'a> fn(&'a mut Startup) -> BoxFuture<'a, ()>,
    ) -> Entry {
        Entry {
            name,
            identity: None,
            has_work: |_, _| true,
            start: run,
        }
    }

    /// Returns whether the controller runs on a server with these options.
    pub(crate) fn is_on(&self, server: &Server, options: &Options) -> bool {
        options.is_on(self.name) && (self.has_work)(server, options)
    }

    /// The user of a controller; steps of the start have none.
    pub(crate) fn identity(&self, table: &Table) -> Option<Identity> {
        self.identity.map(|identity| identity(table))
    }

    pub(crate) fn start<'a>(&self, startup: &'a mut Startup) -> BoxFuture<'a, ()> {
        (self.start)(startup)
    }
}
