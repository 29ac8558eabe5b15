//! TLS for inbound and outbound connections: the only module that configures rustls.
//!
//! `authn` determines the user of a client certificate; `outbound` chooses the servers to call.

#[macro_use]
mod signatures;
mod certificate;
#[cfg(feature = "outbound")]
mod client;
#[cfg(feature = "outbound")]
mod identity;
mod server;

pub use certificate::TlsError;
#[cfg(feature = "outbound")]
pub(crate) use client::{Fingerprint, Trust, client_config};
#[cfg(feature = "outbound")]
pub use identity::ClientIdentity;
pub use server::Tls;
pub(crate) use server::{client_verifier, shared_key};
