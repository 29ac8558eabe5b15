//! The configuration files of authentication and authorization: `AuthenticationConfiguration` and
//! `AuthorizationConfiguration`.
//!
//! Reads and validates them, compiles their CEL expressions, turns the claims of a token into a user, and decides whether
//! a request is sent to a webhook. This crate does no I/O: the server reads files, fetches keys and calls webhooks.

mod anonymous;
mod authentication;
pub mod authorization;
mod claims;
mod expressions;
mod mappings;
mod strict;
mod urls;

pub use authentication::{AuthenticationConfiguration, JwtIssuer};
pub use bareboat_api::AnonymousRule;
pub use claims::Identity;
pub use strict::ConfigurationError;
