//! Handlers of connect subresources: a function of this program, or a remote server that requests are proxied to.
//!
//! Which subresources exist, and their verbs, is data of the kind.

use super::calls::Calls;
use super::computed::Question;
use crate::outbound::OutboundError;
use crate::proxy::Remote;
#[cfg(feature = "outbound")]
pub use crate::proxy::RemoteServer;
#[cfg(not(feature = "outbound"))]
use crate::proxy::RemoteServer;
use crate::reply::Response;
use crate::request::body::RequestBody;
use bareboat_api::kind::{BoxFuture, Kind, SubresourceRole};
use bareboat_api::{Object, Status, Str};
use std::sync::Arc;

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
    /// How long the request may go on, and calls to other servers on its behalf.
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
    #[cfg(feature = "outbound")]
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
