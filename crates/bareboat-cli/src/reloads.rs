//! Files that the running server reads again when they change: certificates, CAs, keys and tokens. The server's own
//! certificates are also renewed here before they expire.

use crate::account_keys::KeyFiles;
use crate::certificates::{self, Authority, folder};
use crate::encryption;
use crate::settings::Settings;
use arc_swap::ArcSwap;
use bareboat::encryption::EncryptedBackend;
use bareboat::prelude::*;
use bareboat::server::reload::{Contents, Following, ReloadMetrics, WatchedFiles};
use bareboat::service_accounts::ServiceAccounts;
use bareboat_certificates::{CertificateAuthority, IssueError, Issuer, Template, pem};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How often the server checks whether its certificates expire soon.
pub(crate) const RENEW_EVERY: Duration = Duration::from_secs(3600);

/// Watches files until it is dropped.
pub(crate) struct Reloads {
    metrics: ReloadMetrics,
    following: Vec<Following>,
    renewing: Option<tokio::task::JoinHandle<()>>,
}

impl Drop for Reloads {
    fn drop(&mut self) {
        if let Some(task) = &self.renewing {
            task.abort();
        }
    }
}

impl Reloads {
    /// Starts without files.
    pub(crate) fn new(metrics: &ReloadMetrics) -> Reloads {
        Reloads {
            metrics: metrics.clone(),
            following: Vec::new(),
            renewing: None,
        }
    }

    /// Calls `take` when one of the files has new contents. The files were read already, so that the first check only
    /// records their contents.
    fn follow(
        &mut self,
        what: &str,
        paths: Vec<PathBuf>,
        mut take: impl FnMut(&Contents) -> Result<(), String> + Send + 'static,
    ) {
        let mut files = WatchedFiles::new(what, paths).metrics(&self.metrics);
        // A file that cannot be read now is read later.
        let _ = files.read();
        let following = files.start(move |contents| std::future::ready(take(&contents)));
        self.following.push(following);
    }

    /// Reloads the serving certificate.
    pub(crate) fn serving(&mut self, tls: &Tls, settings: &Settings) {
        let paths = serving_files(settings).to_vec();
        let tls = tls.clone();
        self.follow("serving certificate", paths, move |pair| {
            let (chain, key) = (pair.text(0)?, pair.text(1)?);
            tls.replace_certificate(chain, key).map_err(describe)
        });
    }

    /// Reloads the CAs of client certificates.
    pub(crate) fn client_ca(&mut self, tls: &Tls, settings: &Settings) {
        let paths = client_ca_files(settings);
        let tls = tls.clone();
        self.follow("client CA", paths.clone(), move |files| {
            let texts = (0..paths.len()).map(|at| files.text(at));
            let texts: Vec<&str> = texts.collect::<Result<_, String>>()?;
            let all = joined_cas(&paths, &texts)?;
            tls.replace_client_ca(&all).map_err(describe)
        });
    }

    /// Reloads the client certificate presented to upstream servers.
    pub(crate) fn front_proxy(&mut self, identity: &ClientIdentity, settings: &Settings) {
        let paths = front_proxy_files(settings).to_vec();
        let identity = identity.clone();
        self.follow("front-proxy certificate", paths, move |pair| {
            let (chain, key) = (pair.text(0)?, pair.text(1)?);
            identity.replace(chain, key).map_err(describe)
        });
    }

    /// Reloads the client certificate presented to kubelets.
    pub(crate) fn kubelet_client(
        &mut self,
        identity: Option<&ClientIdentity>,
        settings: &Settings,
    ) {
        if let (Some(identity), Some((chain, key))) = (identity, settings.kubelets.pair()) {
            let identity = identity.clone();
            let paths = vec![chain.to_owned(), key.to_owned()];
            self.follow("kubelet client certificate", paths, move |pair| {
                let (chain, key) = (pair.text(0)?, pair.text(1)?);
                identity.replace(chain, key).map_err(describe)
            });
        }
    }

    /// Reloads the keys of service account tokens.
    pub(crate) fn account_keys(&mut self, accounts: &ServiceAccounts, files: KeyFiles) {
        let accounts = accounts.clone();
        self.follow("service account keys", files.all(), move |_| {
            let keys = files.read().map_err(|error| format!("{error:#}"))?;
            accounts
                .replace_keys(&keys.signing, &keys.others)
                .map_err(describe)
        });
    }

    /// Reloads the CA that signs approved CertificateSigningRequests.
    pub(crate) fn authority(&mut self, authority: &Arc<DirectoryAuthority>, settings: &Settings) {
        let dir = folder(&settings.store.data_dir);
        let paths = vec![dir.join("ca.crt"), dir.join("ca.key")];
        let authority = authority.clone();
        self.follow("certificate authority", paths, move |_| {
            let read = Authority::read(&dir, "ca").map_err(|error| format!("{error:#}"))?;
            authority.0.store(Arc::new(read.issuer));
            Ok(())
        });
    }

    /// Reloads the configuration of encryption at rest, if it can decrypt the stored data.
    pub(crate) fn encryption(
        &mut self,
        backend: &Arc<EncryptedBackend>,
        path: &Path,
        metrics: &ReloadMetrics,
    ) {
        let mut files =
            WatchedFiles::new("encryption configuration", [path.to_owned()]).metrics(metrics);
        let _ = files.read();
        let (backend, path) = (backend.clone(), path.to_owned());
        self.following.push(files.start(move |_| {
            let (backend, path) = (backend.clone(), path.clone());
            async move {
                // It waits for plug-ins and decrypts values.
                let taken = tokio::task::spawn_blocking(move || {
                    let rules =
                        encryption::rules(Some(&path)).map_err(|error| format!("{error:#}"))?;
                    backend.replace_rules(rules).map_err(|error| {
                        format!("it cannot read what is stored: {}", describe(error))
                    })
                });
                taken.await.unwrap_or_else(|error| Err(error.to_string()))
            }
        }));
    }

    /// Renews certificates before they expire, for as long as the server runs. `renewed` is called with all of them after each
    /// check.
    pub(crate) fn renew(
        &mut self,
        every: Duration,
        settings: &Settings,
        renewed: impl Fn(&certificates::Certificates) + Send + 'static,
    ) {
        let data = settings.store.data_dir.clone();
        let names = settings.connections.certificate_names();
        let bind = settings.bind.ip();
        self.renewing = Some(tokio::spawn(async move {
            loop {
                tokio::time::sleep(every).await;
                let (data, names) = (data.clone(), names.clone());
                let ensured =
                    tokio::task::spawn_blocking(move || certificates::ensure(&data, &names, bind));
                match ensured.await {
                    Ok(Ok(certificates)) => renewed(&certificates),
                    Ok(Err(error)) => tracing::error!(
                        error = %format!("{error:#}"),
                        "the certificates of the server cannot be renewed"
                    ),
                    Err(_) => return,
                }
            }
        }));
    }
}

/// Returns the files of the serving certificate.
pub(crate) fn serving_files(settings: &Settings) -> [PathBuf; 2] {
    let connections = &settings.connections;
    match (&connections.tls_cert, &connections.tls_key) {
        (Some(chain), Some(key)) => [chain.clone(), key.clone()],
        _ => ["server.crt", "server.key"].map(|name| folder(&settings.store.data_dir).join(name)),
    }
}

/// Returns the files with the client certificate presented to upstream servers and its key.
pub(crate) fn front_proxy_files(settings: &Settings) -> [PathBuf; 2] {
    let wanted = &settings.aggregation;
    match (
        &wanted.proxy_client_cert_file,
        &wanted.proxy_client_key_file,
    ) {
        (Some(chain), Some(key)) => [chain.clone(), key.clone()],
        _ => ["crt", "key"].map(|end| {
            folder(&settings.store.data_dir).join(format!("{}.{end}", certificates::FRONT_PROXY))
        }),
    }
}

/// Returns the files with client CAs. The data directory's own CA is always one of them: it signed the admin
/// kubeconfig.
pub(crate) fn client_ca_files(settings: &Settings) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = settings.connections.client_ca.iter().cloned().collect();
    files.push(folder(&settings.store.data_dir).join("ca.crt"));
    files
}

/// Joins the texts of files with CAs. Each file must have one: if it were left out, its clients would be refused for no visible
/// reason.
pub(crate) fn joined_cas(
    paths: &[PathBuf],
    texts: &[impl AsRef<str> + std::borrow::Borrow<str>],
) -> Result<String, String> {
    for (path, text) in paths.iter().zip(texts) {
        if pem::certificates(text.as_ref()).is_empty() {
            return Err(format!("{} contains no certificate in PEM", path.display()));
        }
    }
    Ok(texts.join("\n"))
}

/// The CA of a data directory, read again when it changes.
pub(crate) struct DirectoryAuthority(ArcSwap<Issuer>);

impl DirectoryAuthority {
    /// Reads the CA of a data directory.
    pub(crate) fn read(data: &Path) -> anyhow::Result<DirectoryAuthority> {
        let authority = Authority::read(&folder(data), "ca")?;
        Ok(DirectoryAuthority(ArcSwap::from_pointee(authority.issuer)))
    }
}

impl CertificateAuthority for DirectoryAuthority {
    fn issue(&self, template: &Template) -> Result<String, IssueError> {
        self.0.load().issue(template)
    }

    fn ends(&self) -> i64 {
        self.0.load().ends()
    }
}

fn describe(error: impl std::error::Error) -> String {
    let mut text = error.to_string();
    if let Some(cause) = error.source() {
        text.push_str(&format!(": {cause}"));
    }
    text
}
