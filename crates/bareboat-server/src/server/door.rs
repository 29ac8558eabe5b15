//! Where requests come from: connections, and callers within the process.

use crate::authn::{ConnectionIdentity, Peer};
use crate::connections::Line;
use crate::request::ask::Came;
use bareboat_api::kind::User;
use std::sync::Arc;

/// The origin of a request.
pub(crate) enum Door {
    /// Over a connection, perhaps with a client certificate.
    Socket(Arc<SocketClient>),
    /// An in-process request.
    InProcess(Arc<User>),
    /// An in-process request whose writes are stored, whatever answers the writes of clients.
    Store(Arc<User>),
    /// An in-process request to the raw endpoint.
    Raw(Arc<User>),
}

/// The client of a connection.
pub(crate) struct SocketClient {
    /// Address and certificates of the client.
    pub(crate) peer: Peer,
    /// The user of the client certificate.
    pub(crate) identity: ConnectionIdentity,
    /// The connection in the table of open connections.
    pub(crate) line: Arc<Line>,
}

impl Door {
    /// Returns the origin of a request, for headers to other servers.
    pub(super) fn came(&self) -> Came {
        match self {
            Door::InProcess(_) | Door::Store(_) | Door::Raw(_) => Came::default(),
            Door::Socket(client) => Came {
                from: client.peer.address.map(|address| address.ip()),
                encrypted: client.peer.encrypted,
            },
        }
    }
}
