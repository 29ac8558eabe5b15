//! The settings of calls to other servers while a server is built, and the client that is made from them.

use super::reach::ReachSettings;
use super::{Outbound, Reach};
use crate::tls::ClientIdentity;
use bareboat_api::resolver::{NoServices, ServiceResolver};
use bareboat_storage::Store;
use std::sync::Arc;

/// The settings.
pub(crate) struct Outward {
    /// The client certificate presented to upstream servers when proxying.
    pub(crate) identity: Option<ClientIdentity>,
    pub(crate) resolver: Arc<dyn ServiceResolver>,
    pub(crate) reach: ReachSettings,
}

impl Default for Outward {
    fn default() -> Outward {
        Outward {
            identity: None,
            resolver: Arc::new(NoServices),
            reach: ReachSettings::default(),
        }
    }
}

impl Outward {
    /// Makes the client.
    pub(crate) fn connect(self, store: &Store) -> Outgoing {
        let reach = Arc::new(Reach::new(self.reach));
        let outbound = Outbound::new(store, self.resolver.clone(), self.identity, reach.clone());
        Outgoing {
            outbound: Arc::new(outbound),
            reach,
            #[cfg(feature = "dynamic")]
            resolver: self.resolver,
        }
    }
}

/// The client of a server that is being built.
pub(crate) struct Outgoing {
    pub(crate) outbound: Arc<Outbound>,
    pub(crate) reach: Arc<Reach>,
    #[cfg(feature = "dynamic")]
    resolver: Arc<dyn ServiceResolver>,
}

#[cfg(feature = "dynamic")]
impl Outgoing {
    /// Makes another client, which presents this identity.
    pub(crate) fn with_identity(&self, store: &Store, identity: ClientIdentity) -> Outbound {
        let (resolver, reach) = (self.resolver.clone(), self.reach.clone());
        Outbound::new(store, resolver, Some(identity), reach)
    }
}
