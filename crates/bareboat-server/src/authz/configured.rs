//! The authorizers of an `AuthorizationConfiguration`, which can be replaced while the server runs.

use super::{
    AllowAll, Attributes, Authorizer, AuthorizerChain, Decision, DenyAll, UserRules,
    WebhookAuthorizer,
};
use crate::outbound::{KubeconfigError, RemoteApi};
use arc_swap::ArcSwap;
use bareboat_api::kind::{BoxFuture, User};
use bareboat_auth::authorization::{AuthorizationConfiguration, AuthorizerKind};
use std::sync::Arc;

/// Asks the authorizers of a configuration in order.
///
/// ```no_run
/// # mod bareboat { pub mod server { pub use bareboat_server::*; } }
/// use bareboat::server::authz::{AuthorizationConfiguration, ConfiguredAuthorizer};
/// use bareboat::server::Server;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let text = std::fs::read_to_string("authorization.yaml")?;
/// let configuration = AuthorizationConfiguration::parse(&text)?;
/// let mut made = None;
/// let builder = Server::builder().map_authorizer(|rbac| {
///     let configured = ConfiguredAuthorizer::new(rbac);
///     made = Some(configured.clone());
///     configured
/// });
/// // It allows nothing until it has a configuration, and can be given others later.
/// made.ok_or("it was made above")?.replace(configuration)?;
/// # drop(builder);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct ConfiguredAuthorizer(Arc<Shared>);

bareboat_api::opaque_debug!(ConfiguredAuthorizer);

struct Shared {
    /// The authorizer of type RBAC.
    rbac: Arc<dyn Authorizer>,
    current: ArcSwap<AuthorizerChain>,
}

impl ConfiguredAuthorizer {
    /// Allows nothing until it has a configuration. `rbac` stands for the type RBAC in it.
    pub fn new(rbac: Arc<dyn Authorizer>) -> ConfiguredAuthorizer {
        ConfiguredAuthorizer(Arc::new(Shared {
            rbac,
            current: ArcSwap::default(),
        }))
    }

    /// Decides by another configuration from now on. Nothing changes if a kubeconfig in it cannot be used.
    pub fn replace(
        &self,
        configuration: AuthorizationConfiguration,
    ) -> Result<(), KubeconfigError> {
        let mut chain = AuthorizerChain::default();
        for authorizer in configuration.authorizers {
            chain.push(match authorizer.kind {
                AuthorizerKind::Rbac => self.0.rbac.clone(),
                AuthorizerKind::AlwaysAllow => Arc::new(AllowAll),
                AuthorizerKind::AlwaysDeny => Arc::new(DenyAll),
                AuthorizerKind::Webhook(webhook) => {
                    let remote = RemoteApi::from_kubeconfig(&webhook.kubeconfig)?;
                    Arc::new(WebhookAuthorizer::configured(
                        &authorizer.name,
                        remote,
                        *webhook,
                    ))
                }
            });
        }
        self.0.current.store(Arc::new(chain));
        Ok(())
    }
}

impl Authorizer for ConfiguredAuthorizer {
    fn authorize<'a>(&'a self, attributes: Attributes<'a>) -> BoxFuture<'a, Decision> {
        let chain = self.0.current.load_full();
        Box::pin(async move { chain.authorize(attributes).await })
    }

    fn decide(&self, attributes: Attributes<'_>) -> Option<Decision> {
        self.0.current.load().decide(attributes)
    }

    fn explain<'a>(&'a self, attributes: Attributes<'a>) -> BoxFuture<'a, Decision> {
        let chain = self.0.current.load_full();
        Box::pin(async move { chain.explain(attributes).await })
    }

    fn rules(&self, user: &User, namespace: &str) -> Option<UserRules> {
        self.0.current.load().rules(user, namespace)
    }
}
