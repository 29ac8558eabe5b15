//! The server, its builder and its parts: authentication, authorization, requests and replies.

#[cfg(feature = "fairness")]
pub use bareboat_server::FlowControl;
#[cfg(feature = "dynamic")]
pub use bareboat_server::WebhookCredentials;
#[cfg(feature = "audit")]
pub use bareboat_server::audit;
#[cfg(feature = "otlp")]
pub use bareboat_server::otlp;
pub use bareboat_server::reply::{Body, Response};
pub use bareboat_server::request::body::{BodyError, RequestBody};
pub use bareboat_server::{
    AdmissionConfiguration, AdmissionConfigurationError, Annex, Claim, Clock, Computed, Connector,
    Page, Revocations, Server, ServerBuilder, Stopping, Tls, TlsError, Visit, authn, authz, kinds,
    reload, reply, request, spans,
};
#[cfg(feature = "outbound")]
pub use bareboat_server::{
    ClientIdentity, Delegation, DelegationError, KubeconfigError, RemoteApi, RemoteApiError,
    RemoteServer,
};
