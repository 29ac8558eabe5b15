//! TLS for inbound and outbound connections: the only module that configures rustls.
//!
//! `authn` determines the user of a client certificate; `outbound` chooses the servers to call.

#[macro_use]
mod signatures;
mod certificate;
mod client;
mod server;

pub use certificate::{ClientIdentity, TlsError};
pub(crate) use client::{Fingerprint, Trust, client_config};
pub use server::Tls;
pub(crate) use server::{client_verifier, shared_key};
