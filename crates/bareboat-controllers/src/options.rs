//! Which controllers run, and what they need to know.

use crate::KubernetesService;

/// Which controllers run, and what they need to know; all of them unless said otherwise.
#[derive(Clone, Debug)]
pub struct Options {
    /// Creates the namespaces every cluster has.
    pub bootstrap: bool,
    /// Empties namespaces that are being deleted.
    pub namespaces: bool,
    /// Deletes objects whose owners are gone.
    pub garbage: bool,
    /// Deletes the instances of custom kinds that are being deleted.
    pub definitions: bool,
    /// Deletes events when their time is over.
    pub expiry: bool,
    /// Ends deleted pods when their grace period is over; not for servers with kubelets.
    pub pods: bool,
    /// Keeps the service account `default`, the service `default/kubernetes` and the config map `kube-root-ca.crt` in every namespace.
    pub residents: bool,
    /// The certificates (PEM) by which clients know the server; without them there is no `kube-root-ca.crt`.
    pub root_ca: Option<String>,
    /// The service `default/kubernetes` and what goes with it; nothing without.
    pub kubernetes: Option<KubernetesService>,
    /// What servers behind this one must know to believe whom it names; without it there is no config map
    /// `extension-apiserver-authentication`.
    pub front_proxy: Option<FrontProxy>,
}

/// How servers behind this one recognize it, and whom they may believe: certificates in PEM.
#[derive(Clone, Debug)]
pub struct FrontProxy {
    /// Signs the certificates of clients.
    pub client_ca: String,
    /// Signs the certificate this server shows when it asks on behalf of somebody.
    pub ca: String,
    /// The common names such a certificate may have.
    pub names: Vec<String>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            bootstrap: true,
            namespaces: true,
            garbage: true,
            definitions: true,
            expiry: true,
            pods: true,
            residents: true,
            root_ca: None,
            kubernetes: None,
            front_proxy: None,
        }
    }
}
