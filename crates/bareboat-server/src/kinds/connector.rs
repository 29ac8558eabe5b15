//! Who answers for a subresource that is a connection: a program, or somebody else whom requests are passed on to.
//!
//! That there is such a subresource, and what can be done with it, is data of the kind.

use super::computed::Question;
use crate::outbound::{Address, Destination, OutboundError, Shown};
use crate::proxy::Remote;
use crate::reply::Response;
use crate::request::body::RequestBody;
use bareboat_api::kind::{BoxFuture, Kind, SubresourceRole};
use bareboat_api::{Object, Status, Str};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::sync::Arc;
use std::time::Duration;

/// How long somebody may take to begin an answer, if nothing is said.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A request to a subresource, for a program that answers it.
///
/// The request is as HTTP has it: its body may be read or streamed, its connection upgraded with [`hyper::upgrade::on`], its
/// path has whatever follows the subresource. Credentials of the client are not in it.
pub struct Visit {
    /// Who asks, and for what.
    pub question: Question,
    /// The object, in the version of the request; nothing for kinds without a store.
    pub object: Option<Object>,
    /// The request.
    pub request: http::Request<RequestBody>,
}

pub(crate) type Program =
    Arc<dyn Fn(Visit) -> BoxFuture<'static, Result<Response, Status>> + Send + Sync>;

/// Who answers for a subresource.
#[derive(Clone)]
pub struct Connector(Answering);

#[derive(Clone)]
enum Answering {
    Program(Program),
    Remote(RemoteServer),
}

impl Connector {
    /// A function of this program.
    pub fn program<F, R>(function: F) -> Connector
    where
        F: Fn(Visit) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Response, Status>> + Send + 'static,
    {
        Connector(Answering::Program(program(function)))
    }

    /// Somebody whom requests are passed on to.
    pub fn remote(server: RemoteServer) -> Connector {
        Connector(Answering::Remote(server))
    }

    pub(crate) fn connection(self) -> Connection {
        match self.0 {
            Answering::Program(program) => Connection::Program(program),
            Answering::Remote(server) => Connection::Remote(Arc::new(server.remote())),
        }
    }

    /// What is wrong with it.
    pub(crate) fn check(&self) -> Result<(), OutboundError> {
        match &self.0 {
            Answering::Program(_) => Ok(()),
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

/// An HTTPS server whom requests are passed on to, in the name of whoever asks.
#[derive(Clone, Debug)]
pub struct RemoteServer {
    address: Address,
    /// Base64 of PEM.
    ca_bundle: String,
    shown: Shown,
    patience: Duration,
}

impl RemoteServer {
    pub(crate) fn at(address: Address) -> RemoteServer {
        RemoteServer {
            address,
            ca_bundle: String::new(),
            shown: Shown::FrontProxy,
            patience: PATIENCE,
        }
    }

    /// At an `https` URL; the paths of requests are appended to its path.
    pub fn url(url: &str) -> RemoteServer {
        RemoteServer::at(Address::Url(url.to_owned()))
    }

    /// Behind a service of this server; the paths of requests are appended to the path.
    pub fn service(namespace: &str, name: &str, port: u16, path: &str) -> RemoteServer {
        RemoteServer::at(Address::Service {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            path: path.to_owned(),
            port,
        })
    }

    /// Trusts the certificates of a bundle in PEM rather than the roots of the system.
    #[must_use]
    pub fn ca_bundle(self, pem: &str) -> RemoteServer {
        self.ca_bundle_base64(BASE64_STANDARD.encode(pem))
    }

    pub(crate) fn ca_bundle_base64(mut self, bundle: String) -> RemoteServer {
        self.ca_bundle = bundle;
        self
    }

    /// Shows the certificate in a secret of type `kubernetes.io/tls` rather than that of the server.
    #[must_use]
    pub fn client_certificate(mut self, namespace: &str, secret: &str) -> RemoteServer {
        self.shown = Shown::Secret(format!("{namespace}/{secret}"));
        self
    }

    /// How long an answer may take to begin; 30 seconds if nothing is said.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> RemoteServer {
        self.patience = limit;
        self
    }

    /// What is wrong with it.
    pub(crate) fn check(&self) -> Result<(), OutboundError> {
        self.destination().map(|_| ())
    }

    fn destination(&self) -> Result<Destination, OutboundError> {
        let destination = Destination::new(&self.address, "", &self.ca_bundle)?;
        Ok(destination.showing(self.shown.clone()))
    }

    pub(crate) fn remote(&self) -> Remote {
        Remote::new(self.destination(), self.patience)
    }
}

/// Who answers, ready to be asked.
#[derive(Clone)]
pub(crate) enum Connection {
    Program(Program),
    Remote(Arc<Remote>),
}

/// Who answers for which subresource of a kind.
#[derive(Clone, Default)]
pub(crate) struct Connections(Vec<(Str, Str, Connection)>);

impl Connections {
    /// One more, for a version and a subresource.
    pub(crate) fn add(&mut self, version: &Str, subresource: &Str, connection: Connection) {
        self.0
            .push((version.clone(), subresource.clone(), connection));
    }

    /// One more, for all versions of a kind that have a connection of that name; tells whether there was one.
    pub(crate) fn add_to(&mut self, kind: &Kind, subresource: &str, connector: Connector) -> bool {
        let connection = connector.connection();
        let before = self.0.len();
        for version in &kind.versions {
            if let Some(found) = version.subresource(subresource)
                && matches!(found.role, SubresourceRole::Connect { .. })
            {
                self.add(&version.name, &found.name, connection.clone());
            }
        }
        self.0.len() > before
    }

    /// Who answers.
    pub(crate) fn find(&self, version: &str, subresource: &str) -> Option<&Connection> {
        self.0
            .iter()
            .find(|(of, name, _)| of == version && name == subresource)
            .map(|(_, _, connection)| connection)
    }
}
