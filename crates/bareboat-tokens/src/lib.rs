//! Signed tokens: keys, JSON Web Signatures, and the claims of service accounts.
//!
//! [`Jws`] reads a token without trusting it and checks its signature. [`account`] issues and reads tokens of service
//! accounts. The clock, the store and HTTP are the caller's: nothing here does I/O.

pub mod account;
mod der;
mod jws;
mod keys;

pub use jws::{Jws, MAX_TOKEN, TokenError};
pub use keys::{Algorithm, KeyError, PublicKey, SigningKey};
