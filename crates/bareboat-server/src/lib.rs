//! The API server as a library, from the socket to the store.
//!
//! Every request takes the same path (`server::serve`): parse → authenticate → impersonate → flow control → authorize →
//! look up the resource → verb → reply. Each step is a module. No code here knows a particular kind; kinds are data
//! ([`bareboat_api::Kind`]).

mod admission;
pub mod aggregation;
mod annex;
pub mod audit;
pub mod authn;
pub mod authz;
mod bell;
mod connections;
mod delegation;
mod diagnostics;
pub mod discovery;
mod flow;
pub mod kinds;
mod lookup;
mod managed;
mod metrics;
pub mod openapi;
#[cfg(feature = "otlp")]
pub mod otlp;
mod outbound;
pub mod protobuf;
mod proxy;
pub mod reload;
pub mod reply;
pub mod request;
mod revocation;
pub mod server;
mod sockets;
pub mod spans;
pub mod tables;
mod tls;
mod verbs;
mod work;

pub use prometheus;

pub use admission::{AdmissionConfiguration, AdmissionConfigurationError, WebhookCredentials};
pub use annex::{Annex, Claim};
pub use delegation::{Delegation, DelegationError};
pub use flow::FlowControl;
pub use kinds::computed::Computed;
pub use kinds::connector::{Connector, RemoteServer, Visit};
pub use outbound::{
    KubeconfigError, OutboundAccess, OutboundAnswer, OutboundApi, OutboundApiError, RemoteApi,
    RemoteApiError,
};
pub use proxy::places::{NoPlace, Places};
pub use proxy::tunnel::carry;
pub use proxy::upstream::{CallError, Calls, Hold, Life, Upstream, UpstreamAnswer, UpstreamTrust};
pub use revocation::Revocations;
pub use server::{Page, Server, ServerBuilder, Stopping};
pub use tls::{ClientIdentity, Tls, TlsError};
