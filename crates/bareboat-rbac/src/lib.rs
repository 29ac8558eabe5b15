//! Role-based access control as Kubernetes defines it.
//!
//! [`Policy`] is an index of roles and bindings. It answers one question quickly, "may this user do that?"
//! ([`Policy::allows`]), and three questions in full: why ([`Policy::explain`]), which rules a user has
//! ([`Policy::rules_for`]), and whether a user may grant a set of rules ([`Policy::check_grant`]).
//! [`defaults`] holds the roles and bindings of a fresh server.
//!
//! This crate does no I/O. It reads roles and bindings as values; the owner of the store feeds it with
//! [`Policy::set_role`] and [`Policy::set_binding`].

mod binding;
mod cover;
mod decide;
pub mod defaults;
mod policy;
mod role;
mod rule;

pub use cover::GrantError;
pub use decide::{Explanation, Request};
pub use policy::{Outcome, Policy, Scope};
pub use rule::Rule;
