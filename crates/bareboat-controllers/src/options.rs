//! Which controllers run, and the settings they need.

use crate::controller::ALL;
use crate::{CertificateSigning, KubernetesService, SecretTokenIssuer};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// Which controllers run, and the settings they need. By default all of them run.
#[derive(Clone, Default)]
pub struct Options {
    /// The names of controllers that do not run. [`Options::switch_off`] adds a name if there is such a controller.
    pub disabled: BTreeSet<&'static str>,
    /// Which roles and bindings the step `default-roles` writes.
    pub default_roles: DefaultRoles,
    /// The CA certificates (PEM) that verify the server's certificate. Without them there is no `kube-root-ca.crt`.
    pub root_ca: Option<String>,
    /// The service `default/kubernetes` and its endpoints. Without it there is no such service.
    pub kubernetes: Option<KubernetesService>,
    /// What extension API servers need to authenticate requests that this server passes on. Without it there is no config
    /// map `extension-apiserver-authentication`.
    pub front_proxy: Option<FrontProxy>,
    /// The name of this host, for the Lease of the server's identity. Without it there is no such Lease.
    pub hostname: Option<String>,
    /// How approved CertificateSigningRequests for client certificates are signed. If `None`, they are not signed.
    pub certificate_signing: Option<CertificateSigning>,
    /// Signs the tokens of Secrets of the type `kubernetes.io/service-account-token`. If `None`, they are not filled.
    pub secret_tokens: Option<Arc<dyn SecretTokenIssuer>>,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("disabled", &self.disabled)
            .finish_non_exhaustive()
    }
}

/// Which roles and bindings exist from the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DefaultRoles {
    /// Kubernetes' default roles, and the roles of the controllers that run.
    #[default]
    All,
    /// Only the roles of the controllers that run.
    ControllersOnly,
}

/// What extension API servers need to authenticate requests that this server passes on. Certificates are in PEM.
#[derive(Clone, Debug)]
pub struct FrontProxy {
    /// The CA of client certificates.
    pub client_ca: String,
    /// The CA of the certificate that this server presents to extension API servers.
    pub ca: String,
    /// The common names that this certificate may have.
    pub names: Vec<String>,
}

/// The error for an unknown name of a controller; holds the name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no controller {0}; there are {known}", known = Options::names().collect::<Vec<_>>().join(", "))]
pub struct UnknownController(pub String);

impl Options {
    /// The names of all controllers, as settings use them.
    pub fn names() -> impl Iterator<Item = &'static str> {
        ALL.iter().map(|entry| entry.name)
    }

    /// Returns options in which all controllers run, except those with these names.
    pub fn without<'a>(
        names: impl IntoIterator<Item = &'a str>,
    ) -> Result<Options, UnknownController> {
        let mut options = Options::default();
        for name in names {
            options.switch_off(name)?;
        }
        Ok(options)
    }

    /// Adds a controller to those that do not run.
    pub fn switch_off(&mut self, name: &str) -> Result<(), UnknownController> {
        match Options::names().find(|known| *known == name) {
            Some(name) => {
                self.disabled.insert(name);
                Ok(())
            }
            None => Err(UnknownController(name.to_owned())),
        }
    }

    pub(crate) fn is_on(&self, name: &str) -> bool {
        !self.disabled.contains(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_switches_one_controller_off() {
        let names: BTreeSet<&str> = Options::names().collect();
        assert_eq!(names.len(), ALL.len(), "a name is used twice");
        for name in names {
            let options = Options::without([name]).expect("the name is known");
            let off: Vec<&str> = Options::names()
                .filter(|name| !options.is_on(name))
                .collect();
            assert_eq!(off, [name]);
        }
        let unknown = Options::default().switch_off("gc");
        assert_eq!(unknown, Err(UnknownController("gc".to_owned())));
    }
}
