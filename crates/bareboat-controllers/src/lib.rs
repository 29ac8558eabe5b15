//! The controllers of the server: namespaces, garbage collection, custom kinds, quotas, roles and so on.
//!
//! Controllers read one feed of metadata about all kinds. What they write are requests to the server, which are
//! authorized and admitted like those of any client. Each controller writes as a user of its own (`identity`). When
//! nothing happens, nothing runs.

mod accounts;
mod addresses;
mod api_services;
mod availability;
mod bootstrap;
mod certificates;
mod client;
mod conditions;
mod controller;
mod default_roles;
mod definitions;
mod every_namespace;
mod expiry;
mod extension_authentication;
mod feed;
mod flow_control;
mod garbage;
mod identity;
mod identity_lease;
mod kinds;
mod kubernetes;
mod leader_election;
pub mod migration;
mod namespaces;
mod options;
mod pods;
mod policy_status;
mod queue;
mod quotas;
mod remote;
mod roles;
mod root_ca;
mod secret_tokens;
mod service_cidrs;
mod startup;
mod sweep;

/// Signed tokens, for those who implement [`SecretTokenIssuer`].
pub use bareboat_tokens as tokens;
pub use certificates::CertificateSigning;
pub use client::{Client, read_answer};
pub use kubernetes::KubernetesService;
pub use leader_election::{ADDRESS as LEADER_ADDRESS, LEASE as LEADER_LEASE, LEASES};
pub use options::{DefaultRoles, FrontProxy, Options, UnknownController};
pub use secret_tokens::{SecretTokenIssuer, UseHook};

use bareboat_api::kind::BoxFuture;
use bareboat_server::Server;
use startup::{AddressHook, Startup, StopHook};
use std::net::SocketAddr;
use tokio::task::JoinSet;
use tokio_util::task::TaskTracker;

/// Running controllers. They end when this is dropped.
pub struct Controllers {
    tasks: JoinSet<()>,
    /// The keys that are being reconciled.
    turns: TaskTracker,
    address_hooks: Vec<AddressHook>,
    stop_hooks: Vec<StopHook>,
    leadership: leader_election::Leadership,
}

bareboat_api::opaque_debug!(Controllers);

impl Controllers {
    /// Creates the objects that every server has, and starts the controllers that need no options.
    pub async fn start(server: Server) -> Controllers {
        Controllers::start_with(server, Options::default()).await
    }

    /// Creates the objects that every server has, and starts the controllers that are switched on.
    pub async fn start_with(server: Server, options: Options) -> Controllers {
        Controllers::boxed_start(server, options).await
    }

    /// Boxed here so that all controllers are compiled here. The body of an `async fn` is compiled again in every crate
    /// that awaits it.
    #[inline(never)]
    fn boxed_start(server: Server, options: Options) -> BoxFuture<'static, Controllers> {
        Box::pin(Controllers::start_all(server, options))
    }

    async fn start_all(server: Server, options: Options) -> Controllers {
        let mut startup = Startup::new(server, options);
        for entry in controller::ALL {
            if entry.is_on(&startup.server, &startup.options) {
                entry.start(&mut startup).await;
            }
        }
        startup.finish()
    }

    /// Says which address the server listens on. The service `default/kubernetes` then points there, and the Lease of the
    /// leader names it while this server leads.
    pub fn listens(&self, address: SocketAddr) {
        self.announce(LEADER_ADDRESS, address.to_string());
        for hook in &self.address_hooks {
            hook(address);
        }
    }

    /// Returns whether the controllers of this server lead, now and later: among servers that share a store one does. Other work
    /// that one server is to do may follow it.
    pub fn leads(&self) -> tokio::sync::watch::Receiver<bool> {
        self.leadership.subscribe()
    }

    /// Says something about this server in an annotation of the leader's Lease, while it leads. The name of the annotation ends
    /// with `.bareboat.dev/leader`, so that the next leader removes it.
    pub fn announce(&self, name: &'static str, text: String) {
        self.leadership.notes().set(name, text);
    }

    /// Returns the term of this server: the revision with which it last became the leader, and 0 before. Terms grow, and no two
    /// servers of a store ever have the same.
    pub fn term(&self) -> std::sync::Arc<std::sync::atomic::AtomicU64> {
        self.leadership.term()
    }

    /// Ends the controllers and waits until they have ended, so that the store can be closed without errors in the log.
    /// Writes that have begun belong to the server and are finished.
    pub async fn stop(&mut self) {
        self.tasks.shutdown().await;
        self.turns.close();
        self.turns.wait().await;
        for hook in self.stop_hooks.drain(..) {
            hook().await;
        }
    }
}
