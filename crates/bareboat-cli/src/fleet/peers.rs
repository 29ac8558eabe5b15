//! The fleet on a store that several servers share: how they reach and trust each other.
//!
//! They forward requests with the certificate for proxied requests and the headers of front proxies. All servers of a store have the
//! same front-proxy CA.

use crate::settings::Settings;
use anyhow::{Context as _, Result, bail};
use bareboat::ServerBuilder;
use bareboat::controllers::{Controllers, FrontProxy as Published};
use bareboat::fleet::{LEADER_SERVES, Peers};
use bareboat::prelude::*;
use bareboat::server::authn::{FrontProxy, FrontProxySettings};
use std::fs;

/// A name that certificates of data directories have.
const NAME: &str = "kubernetes.default.svc";

/// Accepts users that other servers of the store name.
pub(crate) fn trust(
    builder: ServerBuilder,
    settings: &Settings,
    tls: &Tls,
    client_ca: &str,
    published: &Published,
) -> Result<ServerBuilder> {
    // Front proxies of a CA in a file are trusted already.
    let given = settings.aggregation.proxy_client_cert_file.is_some()
        && settings.identity.requestheader_client_ca_file.is_some();
    if given {
        return Ok(builder);
    }
    let unusable = "the front-proxy CA cannot be used for requests of other servers";
    let wanted = FrontProxySettings::new(published.ca.as_str(), published.names.clone());
    let proxy = FrontProxy::new(wanted, Some(client_ca)).context(unusable)?;
    tls.ask_peers(&published.ca).context(unusable)?;
    Ok(builder.authenticator(proxy))
}

/// Returns how other servers of the store are reached, and tells them that this one has a fleet.
pub(crate) fn peers(
    settings: &Settings,
    controllers: &Controllers,
    authority: &str,
    chain: &str,
) -> Result<Peers> {
    controllers.announce(LEADER_SERVES, "true".to_owned());
    let wanted = &settings.fleet;
    let given = settings.connections.tls_cert.is_some();
    let authorities = match &wanted.fleet_peer_ca_file {
        Some(path) => fs::read_to_string(path)
            .with_context(|| format!("--fleet-peer-ca-file: {} cannot be read", path.display()))?,
        // Servers that have the same certificate need no CA for it.
        None if given => format!("{authority}\n{chain}"),
        None => authority.to_owned(),
    };
    let name = match &wanted.fleet_peer_server_name {
        Some(name) => {
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | ':');
            if name.is_empty() || !name.chars().all(plain) {
                bail!("--fleet-peer-server-name: {name:?} is no name of a server");
            }
            Some(name.clone())
        }
        None if given => None,
        None => Some(NAME.to_owned()),
    };
    Ok(Peers {
        term: controllers.term(),
        authorities,
        name,
    })
}
