//! TLS towards those who call us and those we call: the only room that knows how rustls is configured.
//!
//! Whom a client certificate stands for is authentication's business, whom to call is `outbound`'s.

#[macro_use]
mod signatures;
mod certificate;
mod client;
mod server;

pub use certificate::{ClientIdentity, TlsError};
pub(crate) use client::{Fingerprint, Trust, client_config};
pub use server::Tls;
