//! What aggregation needs from files and from the host: the client certificate for other API servers, what is published
//! about it, and the host's name.

use crate::certificates::{self, Certificates};
use crate::reloads;
use crate::settings::Settings;
use anyhow::{Context as _, Result};
use bareboat::ClientIdentity;
use bareboat::controllers::FrontProxy;
use std::fs;
use std::path::Path;

/// Returns the client certificate for other API servers, and what they need to verify it.
pub(crate) fn front_proxy(
    settings: &Settings,
    certificates: &Certificates,
    client_ca: &str,
) -> Result<(ClientIdentity, FrontProxy)> {
    let read = |path: &Path| {
        fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))
    };
    let [path, key] = reloads::front_proxy_files(settings);
    let given = settings.aggregation.proxy_client_cert_file.is_some();
    let (chain, key) = match given {
        true => (read(&path)?, read(&key)?),
        // Its own certificate also counts if it could not be saved.
        false => certificates.front_proxy.clone(),
    };
    let identity = ClientIdentity::from_pem(&chain, &key)
        .with_context(|| format!("the client certificate {} cannot be used", path.display()))?;
    let wanted = &settings.identity;
    let (ca, names) = match wanted
        .requestheader_client_ca_file
        .as_deref()
        .filter(|_| given)
    {
        Some(path) => (read(path)?, wanted.requestheader_allowed_names.clone()),
        None => (
            certificates.front_proxy_ca.clone(),
            vec![certificates::FRONT_PROXY.to_owned()],
        ),
    };
    let published = FrontProxy {
        client_ca: client_ca.to_owned(),
        ca,
        names,
    };
    Ok((identity, published))
}

/// Returns the name of this host.
pub(crate) fn hostname() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().to_lowercase()
}
