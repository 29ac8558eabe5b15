//! Sets up authentication and authorization from the settings, with files that are read again when they change.
//!
//! Authenticators are called in the order of kube-apiserver: front proxy, client certificate, token file, service
//! accounts, bootstrap tokens, JWT issuers, webhook.

use crate::settings::Settings;
use anyhow::{Context as _, Result, bail};
use bareboat::bootstrap_tokens::BootstrapTokens;
use bareboat::prelude::*;
use bareboat::server::authn::{
    AnonymousAccess, AuthenticationConfiguration, FrontProxy, FrontProxySettings, JwtIssuers,
    WebhookTokens,
};
use bareboat::server::authz::{
    AuthorizationConfiguration, AuthorizerConfiguration, AuthorizerKind, ConfiguredAuthorizer,
    WebhookConfiguration,
};
use bareboat::server::reload::{Contents, Following, ReloadMetrics, WatchedFiles};
use bareboat::service_accounts::ServiceAccounts;
use std::fs;
use std::path::Path;

/// Watches files until it is dropped.
pub(crate) struct Identity {
    following: Vec<Following>,
    /// Counts reloads of files that have no metrics of their own.
    metrics: ReloadMetrics,
}

impl Identity {
    /// Starts without files.
    pub(crate) fn new(metrics: &ReloadMetrics) -> Identity {
        Identity {
            following: Vec::new(),
            metrics: metrics.clone(),
        }
    }

    /// Adds everything to a server. `client_ca` holds the CAs of client certificates.
    pub(crate) fn install(
        &mut self,
        mut builder: ServerBuilder,
        settings: &Settings,
        tls: &Tls,
        client_ca: &str,
        accounts: &ServiceAccounts,
    ) -> Result<ServerBuilder> {
        if let Some(proxy) = self.front_proxy(settings, tls, client_ca)? {
            builder = builder.authenticator(proxy);
        }
        if let Some(clients) = tls.client_certificates() {
            builder = builder.authenticator(clients);
        }
        if let Some(path) = &settings.accounts.token_file {
            builder = builder.authenticator(self.tokens(path)?);
        }
        builder = accounts.install(builder);
        let wanted = &settings.identity;
        if wanted.enable_bootstrap_token_auth {
            builder = builder.authenticator(BootstrapTokens);
        }
        if let Some(path) = &wanted.authentication_config {
            builder = self.issuers(builder, path, accounts)?;
        }
        if let Some(path) = &wanted.authentication_token_webhook_config_file {
            let webhook =
                WebhookTokens::new(RemoteApi::from_kubeconfig(path)?, &accounts.audiences())
                    .cache_ttl(wanted.authentication_token_webhook_cache_ttl)
                    .version(wanted.authentication_token_webhook_version);
            builder = builder.authenticator(webhook);
        }
        if let Some(path) = &wanted.authorization_config {
            builder = self.authorizers(builder, path)?;
        }
        if !wanted.authorization_mode.is_empty() {
            let webhook = wanted.authorization_webhook_config_file.as_deref();
            let modes = modes(&wanted.authorization_mode, webhook)?;
            let (with, authorizer) = configured(builder)?;
            authorizer.replace(modes)?;
            builder = with;
        }
        Ok(builder)
    }

    /// Reads a file and watches it: `take` is called with its contents now and whenever they change. An error now ends
    /// the start; a later one keeps the old contents.
    fn follow(
        &mut self,
        what: &str,
        path: &Path,
        metrics: &ReloadMetrics,
        mut take: impl FnMut(&Contents) -> Result<(), String> + Send + 'static,
    ) -> Result<()> {
        let mut files = WatchedFiles::new(what, [path]).metrics(metrics);
        let contents = files.read()?;
        take(&contents)
            .map_err(anyhow::Error::msg)
            .with_context(|| format!("the {what} {} cannot be used", path.display()))?;
        let follow = files.start(move |contents| std::future::ready(take(&contents)));
        self.following.push(follow);
        Ok(())
    }

    fn front_proxy(
        &mut self,
        settings: &Settings,
        tls: &Tls,
        client_ca: &str,
    ) -> Result<Option<FrontProxy>> {
        let wanted = &settings.identity;
        let Some(path) = &wanted.requestheader_client_ca_file else {
            return Ok(None);
        };
        let unusable = || format!("the CA of front proxies {} cannot be used", path.display());
        let ca = fs::read_to_string(path).with_context(unusable)?;
        let names = wanted.requestheader_allowed_names.clone();
        let headers = FrontProxySettings {
            username_headers: wanted.requestheader_username_headers.clone(),
            uid_headers: wanted.requestheader_uid_headers.clone(),
            group_headers: wanted.requestheader_group_headers.clone(),
            extra_prefixes: wanted.requestheader_extra_headers_prefix.clone(),
            ..FrontProxySettings::new(ca.as_str(), names)
        };
        let proxy = FrontProxy::new(headers, Some(client_ca)).with_context(unusable)?;
        tls.ask_front_proxies(&ca).with_context(unusable)?;
        let (again, tls, client_ca) = (proxy.clone(), tls.clone(), client_ca.to_owned());
        let metrics = self.metrics.clone();
        self.follow("CA of front proxies", path, &metrics, move |contents| {
            let ca = contents.text(0)?;
            let replaced = again.replace_ca(ca, Some(&client_ca));
            replaced.map_err(|error| error.to_string())?;
            tls.ask_front_proxies(ca).map_err(|error| error.to_string())
        })?;
        Ok(Some(proxy))
    }

    fn tokens(&mut self, path: &Path) -> Result<StaticTokens> {
        let text = fs::read_to_string(path)
            .with_context(|| format!("the token file {} cannot be read", path.display()))?;
        let tokens = StaticTokens::parse(&text)?;
        if tokens.is_empty() {
            tracing::warn!(file = %path.display(), "the token file holds no token");
        }
        let again = tokens.clone();
        let metrics = self.metrics.clone();
        self.follow("token file", path, &metrics, move |contents| {
            let replaced = again.replace(contents.text(0)?);
            replaced.map_err(|error| error.to_string())
        })?;
        Ok(tokens)
    }

    fn issuers(
        &mut self,
        builder: ServerBuilder,
        path: &Path,
        accounts: &ServiceAccounts,
    ) -> Result<ServerBuilder> {
        let issuers = JwtIssuers::new(&accounts.audiences());
        let anonymous = AnonymousAccess::new();
        let metrics = ReloadMetrics::controller("authentication");
        let (taken, rule) = (issuers.clone(), anonymous.clone());
        let disallowed = accounts.issuers().to_vec();
        let what = "authentication configuration";
        self.follow(what, path, &metrics, move |contents| {
            let read = AuthenticationConfiguration::parse(contents.text(0)?, &disallowed);
            let read = read.map_err(|error| error.to_string())?;
            taken.replace(read.issuers);
            rule.set(read.anonymous.unwrap_or_default());
            Ok(())
        })?;
        Ok(builder
            .authenticator(issuers)
            .anonymous_access(&anonymous)
            .collector(metrics))
    }

    fn authorizers(&mut self, builder: ServerBuilder, path: &Path) -> Result<ServerBuilder> {
        let revocations = builder.revocations().clone();
        let (builder, authorizer) = configured(builder)?;
        let metrics = ReloadMetrics::controller("authorization");
        let what = "authorization configuration";
        self.follow(what, path, &metrics, move |contents| {
            let read = AuthorizationConfiguration::parse(contents.text(0)?);
            let read = read.map_err(|error| error.to_string())?;
            let replaced = authorizer.replace(read);
            replaced.map_err(|error| error.to_string())?;
            revocations.everything_changed();
            Ok(())
        })?;
        Ok(builder.collector(metrics))
    }
}

/// Replaces RBAC by the authorizers of a configuration.
fn configured(builder: ServerBuilder) -> Result<(ServerBuilder, ConfiguredAuthorizer)> {
    let mut made = None;
    let builder = builder.map_authorizer(|rbac| {
        let configured = ConfiguredAuthorizer::new(rbac);
        made = Some(configured.clone());
        configured
    });
    let authorizer = made.context("the authorizers were not made")?;
    Ok((builder, authorizer))
}

/// Returns the configuration that `--authorization-mode` means.
fn modes(modes: &[String], webhook: Option<&Path>) -> Result<AuthorizationConfiguration> {
    let mut configuration = AuthorizationConfiguration::default();
    for mode in modes {
        let kind = match (mode.as_str(), webhook) {
            ("RBAC", _) => AuthorizerKind::Rbac,
            ("AlwaysAllow", _) => AuthorizerKind::AlwaysAllow,
            ("AlwaysDeny", _) => AuthorizerKind::AlwaysDeny,
            ("Webhook", Some(path)) => {
                AuthorizerKind::Webhook(Box::new(WebhookConfiguration::of_file(path)))
            }
            ("Webhook", None) => {
                bail!("the authorization mode Webhook needs --authorization-webhook-config-file")
            }
            _ => bail!(
                "there is no authorization mode {mode}; there are RBAC, Webhook, AlwaysAllow and AlwaysDeny"
            ),
        };
        let known = &mut configuration.authorizers;
        if known.iter().any(|known| known.name == *mode) {
            bail!("the authorization mode {mode} is named twice");
        }
        known.push(AuthorizerConfiguration {
            name: mode.clone(),
            kind,
        });
    }
    Ok(configuration)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn modes_are_authorizers_in_their_order() {
        let file = Path::new("/hook.kubeconfig");
        let read = modes(&names(&["Webhook", "RBAC"]), Some(file)).unwrap();
        let kinds = read.authorizers.iter().map(|it| it.name.as_str());
        assert_eq!(kinds.collect::<Vec<_>>(), ["Webhook", "RBAC"]);
        for (wrong, said) in [
            (&["Webhook"][..], "--authorization-webhook-config-file"),
            (&["Node"], "there is no authorization mode Node"),
            (&["RBAC", "RBAC"], "named twice"),
        ] {
            let error = modes(&names(wrong), None).err().unwrap().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
