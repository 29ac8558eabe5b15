//! Which controllers run, and what they need to know.

use crate::KubernetesService;

/// Which controllers run, and what they need to know; all of them unless said otherwise.
#[derive(Clone, Debug)]
pub struct Options {
    /// Creates the namespaces every cluster has.
    pub bootstrap: bool,
    /// Creates the default roles and bindings, and adds to them what is missing.
    pub default_roles: bool,
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
    /// Keeps the service account `default` and the config map `kube-root-ca.crt` in every namespace, and the service
    /// `default/kubernetes`.
    pub residents: bool,
    /// Enforces resource quotas and tells what is used of them.
    pub quotas: bool,
    /// Gives cluster roles the rules of the roles they aggregate.
    pub roles: bool,
    /// Keeps an IPAddress for every address of a service, and the state of the networks services get addresses from.
    pub addresses: bool,
    /// Registers an APIService for every version of a group that is served.
    pub api_services: bool,
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
            default_roles: true,
            namespaces: true,
            garbage: true,
            definitions: true,
            expiry: true,
            pods: true,
            residents: true,
            quotas: true,
            roles: true,
            addresses: true,
            api_services: true,
            root_ca: None,
            kubernetes: None,
            front_proxy: None,
        }
    }
}

/// There is no controller of that name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownController(pub String);

impl std::fmt::Display for UnknownController {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let known = Options::NAMES.join(", ");
        write!(f, "there is no controller {}; there are {known}", self.0)
    }
}

impl std::error::Error for UnknownController {}

impl Options {
    /// What controllers are called in settings.
    pub const NAMES: [&'static str; 12] = [
        "bootstrap",
        "default-roles",
        "namespaces",
        "garbage",
        "definitions",
        "expiry",
        "pods",
        "residents",
        "quotas",
        "roles",
        "addresses",
        "api-services",
    ];

    /// Switches a controller off.
    pub fn switch_off(&mut self, name: &str) -> Result<(), UnknownController> {
        let switch = match name {
            "bootstrap" => &mut self.bootstrap,
            "default-roles" => &mut self.default_roles,
            "namespaces" => &mut self.namespaces,
            "garbage" => &mut self.garbage,
            "definitions" => &mut self.definitions,
            "expiry" => &mut self.expiry,
            "pods" => &mut self.pods,
            "residents" => &mut self.residents,
            "quotas" => &mut self.quotas,
            "roles" => &mut self.roles,
            "addresses" => &mut self.addresses,
            "api-services" => &mut self.api_services,
            _ => return Err(UnknownController(name.to_owned())),
        };
        *switch = false;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_that_of_a_switch() {
        for name in Options::NAMES {
            let mut options = Options::default();
            assert_eq!(options.switch_off(name), Ok(()), "{name}");
            let off = format!("{options:?}").matches("false").count();
            assert_eq!(off, 1, "{name}");
        }
        let unknown = Options::default().switch_off("gc");
        assert_eq!(unknown, Err(UnknownController("gc".to_owned())));
    }
}
