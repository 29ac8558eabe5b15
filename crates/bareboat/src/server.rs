//! The server, its builder and its parts: authentication, authorization, requests and replies.

#[cfg(feature = "otlp")]
pub use bareboat_server::otlp;
pub use bareboat_server::reply::{Body, Response};
pub use bareboat_server::request::body::{BodyError, RequestBody};
pub use bareboat_server::{
    AdmissionConfiguration, AdmissionConfigurationError, ClientIdentity, Computed, Connector,
    Delegation, DelegationError, FlowControl, KubeconfigError, Page, RemoteApi, RemoteApiError,
    RemoteServer, Revocations, Server, ServerBuilder, Stopping, Tls, TlsError, Visit,
    WebhookCredentials, audit, authn, authz, kinds, reload, reply, request, spans,
};
