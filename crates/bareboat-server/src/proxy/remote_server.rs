//! Servers that answer for a subresource, as programs and definitions name them.

use super::Remote;
use crate::outbound::{Address, ChosenBy, Destination, OutboundError, Shown};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::time::Duration;

/// Default time within which a remote server must start its answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// An HTTPS server that requests are proxied to, with the identity of the requesting user.
#[derive(Clone, Debug)]
pub struct RemoteServer {
    address: Address,
    /// Base64 of PEM.
    ca_bundle: String,
    shown: Shown,
    patience: Duration,
    chosen_by: ChosenBy,
}

impl RemoteServer {
    /// A server that clients chose; see [`crate::outbound`] for where those may be.
    pub(crate) fn at(address: Address) -> RemoteServer {
        RemoteServer {
            address,
            ca_bundle: String::new(),
            shown: Shown::FrontProxy,
            patience: PATIENCE,
            chosen_by: ChosenBy::Clients,
        }
    }

    /// A server at an `https` URL; request paths are appended to the URL's path. The rules for outbound addresses do not
    /// apply, because the program chose the URL.
    pub fn url(url: &str) -> RemoteServer {
        RemoteServer {
            chosen_by: ChosenBy::Operator,
            ..RemoteServer::at(Address::Url(url.to_owned()))
        }
    }

    /// A server behind a service of this API server; request paths are appended to `path`. Clients write the endpoints of
    /// services, so these may not be addresses that clients may not choose.
    pub fn service(namespace: &str, name: &str, port: u16, path: &str) -> RemoteServer {
        RemoteServer::at(Address::Service {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            path: path.to_owned(),
            port,
        })
    }

    /// Trusts the certificates of a PEM bundle instead of the system's roots.
    #[must_use]
    pub fn ca_bundle(self, pem: &str) -> RemoteServer {
        self.ca_bundle_base64(BASE64_STANDARD.encode(pem))
    }

    pub(crate) fn ca_bundle_base64(mut self, bundle: String) -> RemoteServer {
        self.ca_bundle = bundle;
        self
    }

    /// Presents the client certificate in a secret of type `kubernetes.io/tls` instead of the server's own.
    #[must_use]
    pub fn client_certificate(mut self, namespace: &str, secret: &str) -> RemoteServer {
        self.shown = Shown::Secret(format!("{namespace}/{secret}"));
        self
    }

    /// Sets the time within which an answer must start; the default is 30 seconds.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> RemoteServer {
        self.patience = limit;
        self
    }

    /// Validates the configuration.
    pub(crate) fn check(&self) -> Result<(), OutboundError> {
        self.destination().map(|_| ())
    }

    fn destination(&self) -> Result<Destination, OutboundError> {
        let destination = Destination::new(&self.address, "", &self.ca_bundle)?;
        Ok(destination
            .showing(self.shown.clone())
            .chosen_by(self.chosen_by))
    }

    pub(crate) fn remote(&self) -> Remote {
        Remote::new(self.destination(), self.patience)
    }
}
