//! The server's credentials for webhooks: a kubeconfig whose users are named after hosts.
//!
//! `NAME.NAMESPACE.svc:443` and `NAME.NAMESPACE.svc` match one service, `*.NAMESPACE.svc` those of a namespace, `*`
//! everything. A webhook that no user matches gets no credentials.

use crate::admission::{AdmissionConfiguration, AdmissionConfigurationError};
use crate::outbound::{Destination, Outbound, Shown, Token, UserCredentials, kubeconfig_users};
use crate::tls::ClientIdentity;
use bareboat_api::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// The credentials of one stage of webhooks.
#[derive(Clone, Default)]
pub struct WebhookCredentials {
    users: Arc<BTreeMap<String, User>>,
}

bareboat_api::opaque_debug!(WebhookCredentials);

struct User {
    identity: Option<ClientIdentity>,
    token: Option<Token>,
    /// Presents the identity; set when the server is built.
    outbound: Option<Arc<Outbound>>,
}

impl WebhookCredentials {
    /// Reads the kubeconfig that the settings of a plug-in name: `MutatingAdmissionWebhook` or
    /// `ValidatingAdmissionWebhook`.
    pub fn of_plugin(
        configuration: &AdmissionConfiguration,
        plugin: &str,
    ) -> Result<WebhookCredentials, AdmissionConfigurationError> {
        let Some((settings, file)) = configuration.plugin(plugin) else {
            return Ok(WebhookCredentials::default());
        };
        let fail = |why: &str| AdmissionConfigurationError::new(file, why);
        let text = |key: &str| settings.get(key).and_then(Value::as_str).unwrap_or("");
        let version = text("apiVersion");
        let known = ["v1", "v1alpha1"].iter().any(|known| {
            ["apiserver.config.k8s.io", "apiserver.k8s.io"]
                .iter()
                .any(|group| version == format!("{group}/{known}"))
        });
        if text("kind") != "WebhookAdmission" && text("kind") != "WebhookAdmissionConfiguration" {
            return Err(fail(
                "the settings of a webhook plug-in must be of kind WebhookAdmissionConfiguration",
            ));
        }
        if !known {
            return Err(fail(
                "the settings of a webhook plug-in must be of apiVersion apiserver.config.k8s.io/v1",
            ));
        }
        let kubeconfig = text("kubeConfigFile");
        if kubeconfig.is_empty() {
            return Ok(WebhookCredentials::default());
        }
        let path = file.parent().unwrap_or(Path::new(".")).join(kubeconfig);
        let users = kubeconfig_users(&path)
            .map_err(|error| AdmissionConfigurationError::new(file, error))?;
        let users = users.into_iter().map(|(name, user)| {
            let UserCredentials { identity, token } = user;
            let user = User {
                identity,
                token,
                outbound: None,
            };
            (name, user)
        });
        Ok(WebhookCredentials {
            users: Arc::new(users.collect()),
        })
    }

    /// Gives every client certificate its own connections.
    pub(crate) fn connect(
        self,
        outbound: impl Fn(ClientIdentity) -> Outbound,
    ) -> WebhookCredentials {
        let users = self.users.iter().map(|(name, user)| {
            let identity = user.identity.clone();
            let user = User {
                outbound: identity
                    .clone()
                    .map(|identity| Arc::new(outbound(identity))),
                identity,
                token: user.token.clone(),
            };
            (name.clone(), user)
        });
        WebhookCredentials {
            users: Arc::new(users.collect()),
        }
    }

    /// Finds the user for a host with its port.
    fn user(&self, host: &str) -> Option<&User> {
        if self.users.is_empty() {
            return None;
        }
        let without_port = host.strip_suffix(":443");
        let found = self.named(host).or_else(|| self.named(without_port?));
        found.or_else(|| self.users.get("*"))
    }

    fn named(&self, host: &str) -> Option<&User> {
        self.users.get(host).or_else(|| {
            let mut dots = host.match_indices('.');
            dots.find_map(|(at, _)| self.users.get(&format!("*{}", &host[at..])))
        })
    }

    /// Returns the destination with the client certificate for a host.
    pub(super) fn shown_to(&self, host: &str, destination: Destination) -> Destination {
        match self.outbound(host) {
            Some(_) => destination.showing(Shown::FrontProxy),
            None => destination,
        }
    }

    pub(super) fn outbound(&self, host: &str) -> Option<&Arc<Outbound>> {
        self.user(host)?.outbound.as_ref()
    }

    /// Returns the content of the Authorization header for a host.
    pub(super) async fn authorization(&self, host: &str) -> Result<Option<String>, String> {
        match self.user(host).and_then(|user| user.token.as_ref()) {
            None => Ok(None),
            Some(token) => Ok(Some(format!("Bearer {}", token.read().await?))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_user_is_chosen() {
        let names = ["hook.ns.svc", "other.ns.svc:8443", "*.ns.svc", "*"];
        let users = names.map(|name| {
            let user = User {
                identity: None,
                token: Some(Token::Text(name.to_owned())),
                outbound: None,
            };
            (name.to_owned(), user)
        });
        let credentials = WebhookCredentials {
            users: Arc::new(users.into_iter().collect()),
        };
        let chosen = |host: &str| match credentials.user(host).and_then(|user| user.token.clone()) {
            Some(Token::Text(name)) => name,
            _ => String::new(),
        };
        assert_eq!(chosen("hook.ns.svc:443"), "hook.ns.svc");
        assert_eq!(chosen("hook.ns.svc:8443"), "*");
        assert_eq!(chosen("other.ns.svc:8443"), "other.ns.svc:8443");
        assert_eq!(chosen("third.ns.svc:443"), "*.ns.svc");
        assert_eq!(chosen("example.com:443"), "*");
    }
}
