//! Builder methods about calls to other servers.

use super::ServerBuilder;
use crate::authn::WebhookTokens;
use crate::authz::WebhookAuthorizer;
use crate::outbound::RemoteApi;
use crate::tls::ClientIdentity;
use bareboat_api::resolver::ServiceResolver;
use std::sync::Arc;

impl ServerBuilder {
    /// Sets the client certificate presented to upstream servers when proxying.
    #[must_use]
    pub fn client_identity(mut self, identity: ClientIdentity) -> Self {
        self.outward.identity = Some(identity);
        self
    }

    /// Delegates authentication and authorization to another server, by TokenReviews and SubjectAccessReviews.
    ///
    /// ```no_run
    /// # mod bareboat { pub mod server { pub use bareboat_server::*; } }
    /// use bareboat::server::{RemoteApi, Server};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let hub = RemoteApi::from_kubeconfig("/etc/hub.kubeconfig")?;
    /// let server = Server::builder().delegate_access(hub).build()?;
    /// # drop(server);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn delegate_access(self, remote: RemoteApi) -> Self {
        self.authenticator(WebhookTokens::of_server(remote.clone()))
            .authorizer(WebhookAuthorizer::of_server(remote))
    }

    /// Sets the resolver of service names in the addresses of webhooks, converters and other servers.
    #[must_use]
    pub fn service_resolver(mut self, resolver: impl ServiceResolver + 'static) -> Self {
        self.outward.resolver = Arc::new(resolver);
        self
    }

    /// Sets whether destinations that clients configure may be loopback addresses. By default they may while every
    /// listener of this server is on loopback.
    #[must_use]
    pub fn loopback_destinations(mut self, allowed: bool) -> Self {
        self.outward.reach.loopback = Some(allowed);
        self
    }

    /// Sets whether clients may read why a call to a destination that they configured failed; otherwise the cause is only
    /// logged. By default they may while every listener of this server is on loopback.
    #[must_use]
    pub fn outbound_error_details(mut self, shown: bool) -> Self {
        self.outward.reach.causes = Some(shown);
        self
    }
}
