//! Delegation of authentication and authorization to another API server, which may also forward requests to this one.
//!
//! A server with it runs behind Bareboat or behind any kube-apiserver: it accepts the users that the other server names
//! when it forwards a request, client certificates of its CA, and its tokens. The other server also authorizes requests.

use crate::authn::{FrontProxy, FrontProxyError, FrontProxySettings, WebhookTokens};
use crate::authz::WebhookAuthorizer;
use crate::outbound::{RemoteApi, RemoteApiError};
use crate::server::ServerBuilder;
use crate::tls::{Tls, TlsError, shared_key};
use bareboat_api::Value;
use std::time::Duration;
use tokio::task::JoinHandle;

/// The config map in which API servers publish how they forward requests.
const CONFIG_MAP: &str =
    "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
/// How long reading it may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it is read again, because its CAs are renewed.
const INTERVAL: Duration = Duration::from_secs(60);

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why authentication and authorization cannot be delegated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DelegationError {
    /// The config map cannot be read.
    #[error("the config map kube-system/extension-apiserver-authentication cannot be read")]
    Unreadable(#[source] RemoteApiError),
    /// Its front proxy cannot be trusted.
    #[error("the front proxy of the other server cannot be trusted")]
    FrontProxy(#[source] FrontProxyError),
    /// A certificate cannot be used.
    #[error("a certificate cannot be used")]
    Certificate(#[source] TlsError),
}

/// What another server publishes about requests that it forwards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Published {
    client_ca: String,
    proxy_ca: String,
    names: Vec<String>,
    username_headers: Vec<String>,
    uid_headers: Vec<String>,
    group_headers: Vec<String>,
    extra_prefixes: Vec<String>,
}

impl Published {
    async fn read(remote: &RemoteApi) -> Result<Published, DelegationError> {
        let map = remote.get(CONFIG_MAP, PATIENCE).await;
        let map = map.map_err(DelegationError::Unreadable)?;
        let text = |key: &str| {
            let text = map.at(&["data", key]).and_then(Value::as_str);
            text.unwrap_or("").to_owned()
        };
        let list = |key: &str| -> Vec<String> {
            let parsed = bareboat_wire::json::parse(text(key).as_bytes()).ok();
            let list = parsed.as_ref().and_then(|parsed| parsed.value.as_array());
            let list = list.unwrap_or(&[]).iter();
            list.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        Ok(Published {
            client_ca: text("client-ca-file"),
            proxy_ca: text("requestheader-client-ca-file"),
            names: list("requestheader-allowed-names"),
            username_headers: list("requestheader-username-headers"),
            uid_headers: list("requestheader-uid-headers"),
            group_headers: list("requestheader-group-headers"),
            extra_prefixes: list("requestheader-extra-headers-prefix"),
        })
    }

    fn front_proxy(&self) -> Result<Option<FrontProxy>, FrontProxyError> {
        if self.proxy_ca().is_none() {
            return Ok(None);
        }
        let settings = FrontProxySettings {
            ca: self.proxy_ca.clone(),
            allowed_names: self.names.clone(),
            username_headers: self.username_headers.clone(),
            uid_headers: self.uid_headers.clone(),
            group_headers: self.group_headers.clone(),
            extra_prefixes: self.extra_prefixes.clone(),
        };
        FrontProxy::new(settings, self.client_ca()).map(Some)
    }

    fn client_ca(&self) -> Option<&str> {
        Some(self.client_ca.as_str()).filter(|ca| !ca.trim().is_empty())
    }

    fn proxy_ca(&self) -> Option<&str> {
        Some(self.proxy_ca.as_str()).filter(|ca| !ca.trim().is_empty())
    }

    /// Returns the same headers with the CAs and names of another one.
    fn with_proxies_of(&self, other: &Published) -> Published {
        Published {
            client_ca: other.client_ca.clone(),
            proxy_ca: other.proxy_ca.clone(),
            names: other.names.clone(),
            ..self.clone()
        }
    }
}

/// Keeps the CAs and the allowed names of a delegating server up to date until it is dropped.
#[derive(Debug)]
pub struct Delegation(JoinHandle<()>);

impl Drop for Delegation {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl ServerBuilder {
    /// Runs the server behind another API server: it accepts requests that the other one forwards, client certificates of
    /// its CA and its tokens, and asks it what users may do. Returns the TLS configuration to listen with; the CAs are
    /// kept up to date while the [`Delegation`] exists.
    ///
    /// The user of the kubeconfig needs the cluster role `system:auth-delegator`, and the role
    /// `extension-apiserver-authentication-reader` in `kube-system`. An APIService on the other server then leads to this
    /// one.
    ///
    /// ```no_run
    /// # mod bareboat { pub mod server { pub use bareboat_server::*; } }
    /// use bareboat::server::{RemoteApi, Server};
    ///
    /// # async fn serve(chain: &str, key: &str) -> Result<(), Box<dyn std::error::Error>> {
    /// let hub = RemoteApi::from_kubeconfig("/etc/hub.kubeconfig")?;
    /// let (builder, tls, _delegation) = Server::builder().behind(hub, chain, key).await?;
    /// let server = builder.build()?;
    /// server.listen("[::]:8443".parse()?, Some(tls)).await?;
    /// # Ok(()) }
    /// ```
    pub async fn behind(
        mut self,
        remote: RemoteApi,
        chain: &str,
        key: &str,
    ) -> Result<(ServerBuilder, Tls, Delegation), DelegationError> {
        let published = Published::read(&remote).await?;
        let tls = Tls::from_pem(chain, key, published.client_ca());
        let tls = tls.map_err(DelegationError::Certificate)?;
        let proxy = published
            .front_proxy()
            .map_err(DelegationError::FrontProxy)?;
        if let Some(proxy) = &proxy {
            let asked = tls.ask_front_proxies(&published.proxy_ca);
            asked.map_err(DelegationError::Certificate)?;
            self = self.authenticator(proxy.clone());
        }
        if let Some(clients) = tls.client_certificates() {
            self = self.authenticator(clients);
        }
        self = self
            .authenticator(WebhookTokens::of_server(remote.clone()))
            .authorizer(WebhookAuthorizer::of_server(remote.clone()));
        let follow = follow(remote, published, proxy, tls.clone());
        Ok((self, tls, Delegation(tokio::spawn(follow))))
    }
}

/// Reads the config map now and then, and replaces CAs and names that changed.
async fn follow(remote: RemoteApi, mut known: Published, proxy: Option<FrontProxy>, tls: Tls) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        let read = match Published::read(&remote).await {
            Ok(read) => read,
            Err(error) => {
                tracing::debug!(%error, "the CAs of the other server cannot be read");
                continue;
            }
        };
        if let Err(error) = renew_clients(&mut known, &read, &tls) {
            tracing::warn!(%error, "the new client CA of the other server cannot be used");
        }
        if let Some(proxy) = &proxy
            && let Err(error) = renew_proxies(&mut known, &read, proxy, &tls)
        {
            tracing::warn!(%error, "the new front-proxy CA of the other server cannot be used");
        }
        if let Some(proxy) = &proxy
            && let Err(error) = renew_names(&mut known, &read, proxy)
        {
            tracing::warn!(%error, "the new names of the other server's front proxy cannot be used");
        }
        let others = read.with_proxies_of(&known);
        if others != known {
            tracing::warn!(
                "the other server changed the headers of its front proxy; a restart is needed to use them"
            );
            known = others;
        }
    }
}

/// Replaces the client CA if it changed, and notes it once it is in use.
fn renew_clients(known: &mut Published, read: &Published, tls: &Tls) -> Result<(), BoxError> {
    let Some(ca) = read.client_ca().filter(|ca| *ca != known.client_ca) else {
        return Ok(());
    };
    // The front-proxy CA in use is the old one, and may stay.
    if known.proxy_ca().is_some_and(|other| shared_key(ca, other)) {
        return Err(FrontProxyError::SameCa.into());
    }
    tls.replace_client_ca(ca)?;
    known.client_ca = ca.to_owned();
    Ok(())
}

/// Replaces the allowed names if they changed, and notes it once they are in use.
fn renew_names(
    known: &mut Published,
    read: &Published,
    proxy: &FrontProxy,
) -> Result<(), FrontProxyError> {
    if read.names != known.names {
        proxy.replace_names(read.names.clone())?;
        known.names.clone_from(&read.names);
    }
    Ok(())
}

/// Replaces the front-proxy CA if it changed, and notes it once it is in use.
fn renew_proxies(
    known: &mut Published,
    read: &Published,
    proxy: &FrontProxy,
    tls: &Tls,
) -> Result<(), BoxError> {
    let Some(ca) = read.proxy_ca().filter(|ca| *ca != known.proxy_ca) else {
        return Ok(());
    };
    // The client CA in use may be the old one.
    proxy.replace_ca(ca, known.client_ca())?;
    tls.ask_front_proxies(ca)?;
    known.proxy_ca = ca.to_owned();
    Ok(())
}
