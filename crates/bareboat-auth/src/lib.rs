//! The files that say who gets in and who decides: `AuthenticationConfiguration` and `AuthorizationConfiguration`.
//!
//! Reads and validates them, compiles their CEL expressions, turns the claims of a token into a user, and decides whether
//! a webhook is asked about a request. Nothing here does I/O: files, keys, issuers and webhooks are the server's work.

mod anonymous;
mod authentication;
pub mod authorization;
mod claims;
mod expressions;
mod mappings;
mod strict;
mod urls;

pub use anonymous::AnonymousRule;
pub use authentication::{AuthenticationConfiguration, JwtIssuer};
pub use claims::Identity;
pub use strict::ConfigurationError;
