//! Socket to store and back: the API server as a library.
//!
//! A request walks one corridor (`server::serve`): parse → authenticate → impersonate → flow
//! control → authorize → find who serves it → verb → reply. Each room is a module.
//! Nothing here knows a particular kind; kinds are data ([`bareboat_api::Kind`]).

mod admission;
pub mod authn;
pub mod authz;
mod bell;
mod connections;
pub mod discovery;
mod flow;
pub mod kinds;
mod managed;
mod metrics;
pub mod openapi;
mod outbound;
pub mod protobuf;
mod proxy;
pub mod reply;
pub mod request;
pub mod server;
mod sockets;
mod tables;
mod tls;
mod verbs;
mod work;

pub use prometheus;

pub use kinds::computed::Computed;
pub use kinds::connector::{Connector, RemoteServer, Visit};
pub use server::{Page, Server, ServerBuilder};
pub use tls::{ClientIdentity, Tls, TlsError};
