//! Service names in addresses: where a service is in the network, and which certificate a secret holds.
//!
//! The server calls webhooks, converters and other servers by the names of services. It does not know what a Service or a
//! Secret looks like; an implementation of [`ServiceResolver`] does.

use crate::admission::Lookup;

/// A host and a port to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// An IP address or a DNS name.
    pub host: String,
    /// The TCP port.
    pub port: u16,
}

impl Endpoint {
    /// Returns the endpoint with this host and port.
    pub fn new(host: &str, port: u16) -> Endpoint {
        Endpoint {
            host: host.to_owned(),
            port,
        }
    }
}

/// A certificate and its key, both in PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct CertificatePair {
    /// The certificate chain.
    pub certificates: String,
    /// The private key.
    pub key: String,
}

crate::opaque_debug!(CertificatePair);

/// Finds services and the certificates in secrets. Called whenever a connection is made.
///
/// ```
/// # mod bareboat { pub mod api { pub use bareboat_api::*; } }
/// use bareboat::api::admission::Lookup;
/// use bareboat::api::resolver::{CertificatePair, Endpoint, ServiceResolver};
///
/// /// Every service is on this machine.
/// struct Here;
///
/// impl ServiceResolver for Here {
///     fn endpoints(&self, _: &str, _: &str, port: u16, _: &dyn Lookup) -> Result<Vec<Endpoint>, String> {
///         Ok(vec![Endpoint::new("127.0.0.1", port)])
///     }
///
///     fn certificate(&self, _: &str, _: &str, _: &dyn Lookup) -> Option<CertificatePair> {
///         None
///     }
/// }
/// ```
pub trait ServiceResolver: Send + Sync {
    /// The endpoints of a port of a service, in the order to try them. The error is shown to clients.
    fn endpoints(
        &self,
        namespace: &str,
        name: &str,
        port: u16,
        objects: &dyn Lookup,
    ) -> Result<Vec<Endpoint>, String>;

    /// Where the objects are stored that [`ServiceResolver::endpoints`] reads ([`Kind::store`](crate::Kind)). When one of
    /// them changes, endpoints are looked up again, and a service that moved is called over new connections.
    fn depends_on(&self) -> &'static [&'static str] {
        &[]
    }

    /// The certificate in a secret, if there is one.
    fn certificate(
        &self,
        namespace: &str,
        name: &str,
        objects: &dyn Lookup,
    ) -> Option<CertificatePair>;
}

/// The resolver of a server without services.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoServices;

impl ServiceResolver for NoServices {
    fn endpoints(
        &self,
        _namespace: &str,
        name: &str,
        _port: u16,
        _objects: &dyn Lookup,
    ) -> Result<Vec<Endpoint>, String> {
        Err(format!("service \"{name}\" not found"))
    }

    fn certificate(
        &self,
        _namespace: &str,
        _name: &str,
        _objects: &dyn Lookup,
    ) -> Option<CertificatePair> {
        None
    }
}
