//! The API server as a library, from the socket to the store.
//!
//! Every request takes the same path (`server::serve`): parse → authenticate → impersonate → flow control → authorize →
//! look up the resource → verb → reply. Each step is a module. No code here knows a particular kind; kinds are data
//! ([`bareboat_api::Kind`]).
//!
//! ```
//! use bareboat_api::kind::User;
//! use bareboat_server::Server;
//! use bareboat_server::request::body::RequestBody;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Server::builder().build()?;
//! let user = User { name: "admin".into(), groups: vec!["system:masters".into()], ..User::default() };
//! // No socket is needed; `Server::listen` opens one.
//! let request = http::Request::get("/version").body(RequestBody::default())?;
//! assert_eq!(server.call(user, request).await.status(), 200);
//! server.shut_down().await;
//! # Ok(()) }
//! ```
//!
//! The crate `bareboat` has kinds from Rust structs and everything else that programs need.
//!
//! Cargo features leave modules out. Each has a small counterpart (`without_…`) that says what happens instead, so that the
//! path of a request reads the same in every build.

// Documentation names the features that items need, where it is built with a nightly compiler, as docs.rs does.
#![cfg_attr(docsrs, feature(doc_cfg))]
// Small helpers of rooms that are left out stay. The build with all features has no dead code.
#![cfg_attr(
    not(all(
        feature = "audit",
        feature = "dynamic",
        feature = "fairness",
        feature = "gzip",
        feature = "http2",
        feature = "websockets"
    )),
    allow(dead_code, unreachable_code, unused_imports, unused_variables)
)]

mod admission;
#[cfg(feature = "dynamic")]
pub mod aggregation;
mod annex;
#[cfg(feature = "audit")]
pub mod audit;
pub mod authn;
pub mod authz;
mod bell;
mod clock;
mod connections;
#[cfg(feature = "outbound")]
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
#[cfg(feature = "outbound")]
mod outbound;
pub mod protobuf;
#[cfg(feature = "outbound")]
mod proxy;
mod random;
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
#[cfg(not(feature = "dynamic"))]
mod without_aggregation;
#[cfg(not(feature = "audit"))]
mod without_audit;
#[cfg(not(feature = "outbound"))]
mod without_outbound;
mod work;

#[cfg(not(feature = "dynamic"))]
use without_aggregation as aggregation;
#[cfg(not(feature = "audit"))]
use without_audit as audit;
#[cfg(not(feature = "outbound"))]
use without_outbound::{outbound, proxy};

pub use prometheus;

#[cfg(feature = "dynamic")]
pub use admission::WebhookCredentials;
pub use admission::{AdmissionConfiguration, AdmissionConfigurationError};
pub use annex::{Annex, Claim};
pub use clock::Clock;
#[cfg(feature = "outbound")]
pub use delegation::{Delegation, DelegationError};
#[cfg(feature = "fairness")]
pub use flow::FlowControl;
pub use kinds::calls::{Calls, Life};
pub use kinds::computed::Computed;
pub use kinds::connector::{Connector, Visit};
#[cfg(feature = "outbound")]
pub use outbound::{
    KubeconfigError, OutboundAccess, OutboundAnswer, OutboundApi, OutboundApiError, RemoteApi,
    RemoteApiError,
};
#[cfg(feature = "outbound")]
pub use proxy::RemoteServer;
#[cfg(feature = "outbound")]
pub use proxy::places::{NoPlace, Places};
#[cfg(feature = "outbound")]
pub use proxy::tunnel::carry;
#[cfg(feature = "outbound")]
pub use proxy::upstream::{CallError, Hold, Upstream, UpstreamAnswer, UpstreamTrust};
pub use revocation::Revocations;
pub use server::{Page, Server, ServerBuilder, Stopping};
#[cfg(feature = "outbound")]
pub use tls::ClientIdentity;
pub use tls::{Tls, TlsError};
