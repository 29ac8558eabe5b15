//! Handlers of connect subresources: a function of this program, or a remote server that requests are proxied to.
//!
//! Which subresources exist, and their verbs, is data of the kind.

use super::computed::Question;
use crate::outbound::{Address, ChosenBy, Destination, OutboundError, Shown};
use crate::proxy::Remote;
use crate::proxy::upstream::Calls;
use crate::reply::Response;
use crate::request::body::RequestBody;
use bareboat_api::kind::{BoxFuture, Kind, SubresourceRole};
use bareboat_api::{Object, Status, Str};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::sync::Arc;
use std::time::Duration;

/// Default time within which a remote server must start its answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A request to a subresource, for the function that answers it.
///
/// The HTTP request is unchanged: its body may be read or streamed, its connection upgraded with
/// [`hyper::upgrade::on`], and its path includes everything after the subresource. Client credentials are removed.
pub struct Visit {
    /// The user and the target of the request.
    pub question: Question,
    /// The object, in the version of the request; `None` for kinds without a store.
    pub object: Option<Object>,
    /// The HTTP request with its body.
    pub request: http::Request<RequestBody>,
    /// Calls to other servers on behalf of this request, and how long it may go on.
    pub calls: Calls,
}

bareboat_api::opaque_debug!(Visit);

pub(crate) type Program =
    Arc<dyn Fn(Visit) -> BoxFuture<'static, Result<Response, Status>> + Send + Sync>;

/// The handler of a subresource.
#[derive(Clone)]
pub struct Connector(Answering);

bareboat_api::opaque_debug!(Connector);

#[derive(Clone)]
enum Answering {
    Program(Program, Finds),
    Remote(RemoteServer),
}

/// Whether the object of a request is read before a program is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finds {
    Object,
    Nothing,
}

impl Connector {
    /// A function of this program.
    pub fn program<F, R>(function: F) -> Connector
    where
        F: Fn(Visit) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Response, Status>> + Send + 'static,
    {
        Connector(Answering::Program(program(function), Finds::Object))
    }

    /// A function of this program that reads the object itself. The name in the URL need not be the name of an object:
    /// it may have a scheme and a port, as in `services/https:web:443/proxy`.
    pub fn program_without_object<F, R>(function: F) -> Connector
    where
        F: Fn(Visit) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Response, Status>> + Send + 'static,
    {
        Connector(Answering::Program(program(function), Finds::Nothing))
    }

    /// A remote server that requests are proxied to.
    pub fn remote(server: RemoteServer) -> Connector {
        Connector(Answering::Remote(server))
    }

    pub(crate) fn connection(self) -> Connection {
        match self.0 {
            Answering::Program(program, finds) => Connection::Program(program, finds),
            Answering::Remote(server) => Connection::Remote(Arc::new(server.remote())),
        }
    }

    /// Validates the configuration.
    pub(crate) fn check(&self) -> Result<(), OutboundError> {
        match &self.0 {
            Answering::Program(..) => Ok(()),
            Answering::Remote(server) => server.check(),
        }
    }
}

pub(crate) fn program<F, R>(function: F) -> Program
where
    F: Fn(Visit) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Response, Status>> + Send + 'static,
{
    Arc::new(move |visit| Box::pin(function(visit)))
}

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

/// A handler, ready for requests.
#[derive(Clone)]
pub(crate) enum Connection {
    Program(Program, Finds),
    Remote(Arc<Remote>),
}

/// The handlers of a kind's subresources.
#[derive(Clone, Default)]
pub(crate) struct Connections(Vec<(Str, Str, Connection)>);

impl Connections {
    /// Adds a handler for a version and a subresource.
    pub(crate) fn add(&mut self, version: &Str, subresource: &Str, connection: Connection) {
        self.0
            .push((version.clone(), subresource.clone(), connection));
    }

    /// Adds a handler for all versions of a kind that have this connect subresource; returns whether there was one. Without a
    /// subresource it is the handler of writes.
    pub(crate) fn add_to(&mut self, kind: &Kind, subresource: &str, connector: Connector) -> bool {
        let connection = connector.connection();
        let before = self.0.len();
        if subresource.is_empty() {
            for version in &kind.versions {
                self.add(&version.name, &Str::default(), connection.clone());
            }
            return true;
        }
        for version in &kind.versions {
            if let Some(found) = version.subresource(subresource)
                && matches!(found.role, SubresourceRole::Connect { .. })
            {
                self.add(&version.name, &found.name, connection.clone());
            }
        }
        self.0.len() > before
    }

    /// Returns the handler of a subresource in a version of the kind.
    pub(crate) fn find(&self, version: &str, subresource: &str) -> Option<&Connection> {
        self.0
            .iter()
            .find(|(of, name, _)| of == version && name == subresource)
            .map(|(_, _, connection)| connection)
    }
}
