//! Signed tokens: keys, JSON Web Signatures, and the claims of service accounts.
//!
//! [`Jws`] parses a token without trusting it and verifies its signature. [`account`] issues and
//! reads service account tokens. [`KeySet`] holds the keys that another issuer publishes. This crate does no I/O: the caller
//! provides the clock, the store and HTTP.

pub mod account;
mod jws;
mod key_set;
mod keys;

pub use jws::{Jws, MAX_TOKEN, TokenError, sign};
pub use key_set::{KeySet, KeySetError};
pub use keys::{Algorithm, KeyError, PublicKey, SigningKey};
