//! `bareboat certificates rotate`: replaces keys and certificates of a data directory.
//!
//! A running server notices the new files within seconds and uses them for new connections; open ones continue.

use super::{Authority, Leaf, folder, names};
use crate::{account_keys, kubeconfig};
use anyhow::{Context as _, Result};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// What can be rotated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Part {
    /// The certificate the server serves with
    Server,
    /// The administrator's certificate, also in admin.kubeconfig
    Admin,
    /// The client certificate presented to upstream servers
    FrontProxy,
    /// The key that signs service account tokens; tokens of the old one stay good until they expire
    ServiceAccounts,
}

impl Part {
    /// All of them.
    pub(crate) const ALL: [Part; 4] = [
        Part::Server,
        Part::Admin,
        Part::FrontProxy,
        Part::ServiceAccounts,
    ];

    /// The name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Part::Server => "server",
            Part::Admin => "admin",
            Part::FrontProxy => "front-proxy",
            Part::ServiceAccounts => "service-accounts",
        }
    }
}

/// Makes a new key, and a certificate if there is one. Old keys of service accounts verify tokens for `keep`.
pub(crate) fn rotate(data: &Path, part: Part, keep: Duration) -> Result<()> {
    let dir = folder(data);
    match part {
        Part::Server => {
            let path = dir.join("server.crt");
            let before = fs::read_to_string(&path)
                .with_context(|| format!("{} cannot be read", path.display()))?;
            let names = names(&before);
            renew(&dir, "ca", &Leaf::server(&names)).map(|_| ())
        }
        Part::Admin => {
            let (cert, key) = renew(&dir, "ca", &Leaf::admin())?;
            kubeconfig::replace_admin(&data.join("admin.kubeconfig"), &cert, &key)
        }
        Part::FrontProxy => renew(&dir, "front-proxy-ca", &Leaf::front_proxy()).map(|_| ()),
        Part::ServiceAccounts => account_keys::rotate(data, keep),
    }
}

fn renew(dir: &Path, ca: &str, leaf: &Leaf<'_>) -> Result<(String, String)> {
    let (cert, key) = Authority::read(dir, ca)?.sign(leaf)?;
    leaf.save(dir, &cert, &key)?;
    Ok((cert, key))
}
