//! Settings of calls to kubelets, for exec, attach, logs, port-forward and proxies.

use anyhow::{Context as _, Result};
use bareboat::streams::{KubeletSettings, UpstreamTrust};

use bareboat::server::ClientIdentity;
use std::path::{Path, PathBuf};

/// How kubelets are called.
#[derive(clap::Args, Debug, Clone)]
#[command(next_help_heading = "Kubelets")]
pub(crate) struct KubeletFlags {
    /// Present this certificate (PEM) to kubelets; read again when it changes
    #[arg(
        long,
        value_name = "FILE",
        env = "BAREBOAT_KUBELET_CLIENT_CERTIFICATE",
        requires = "kubelet_client_key"
    )]
    pub(crate) kubelet_client_certificate: Option<PathBuf>,

    /// Key (PEM) of --kubelet-client-certificate
    #[arg(
        long,
        value_name = "FILE",
        env = "BAREBOAT_KUBELET_CLIENT_KEY",
        requires = "kubelet_client_certificate"
    )]
    pub(crate) kubelet_client_key: Option<PathBuf>,

    /// Verify certificates of kubelets with these CAs (PEM) [default: any certificate is accepted]
    #[arg(
        long,
        value_name = "FILE",
        env = "BAREBOAT_KUBELET_CERTIFICATE_AUTHORITY"
    )]
    pub(crate) kubelet_certificate_authority: Option<PathBuf>,

    /// Types of node addresses to call kubelets at, best first (repeatable)
    #[arg(
        long,
        value_name = "TYPE",
        env = "BAREBOAT_KUBELET_PREFERRED_ADDRESS_TYPES",
        value_delimiter = ',',
        default_value = "Hostname,InternalDNS,InternalIP,ExternalDNS,ExternalIP"
    )]
    pub(crate) kubelet_preferred_address_types: Vec<String>,
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path)
        .with_context(|| format!("the file {} cannot be read", path.display()))
}

impl KubeletFlags {
    /// Reads the files.
    pub(crate) fn settings(&self) -> Result<KubeletSettings> {
        let mut settings = KubeletSettings::default();
        settings.preferred_address_types = self.kubelet_preferred_address_types.clone();
        if let Some((chain, key)) = self.pair() {
            let identity = ClientIdentity::from_pem(&read(chain)?, &read(key)?);
            settings.identity = Some(identity.context("the kubelet client certificate")?);
        }
        if let Some(path) = &self.kubelet_certificate_authority {
            settings.trust = UpstreamTrust::Bundle(read(path)?);
        }
        Ok(settings)
    }

    /// The files of the client certificate.
    pub(crate) fn pair(&self) -> Option<(&Path, &Path)> {
        let chain = self.kubelet_client_certificate.as_deref()?;
        Some((chain, self.kubelet_client_key.as_deref()?))
    }
}
