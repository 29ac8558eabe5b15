//! Role-based access control as Kubernetes defines it.
//!
//! [`Policy`] is an index of roles and bindings. It decides fast whether a user may perform a
//! request ([`Policy::allows`]). It also explains decisions ([`Policy::explain`]), lists the rules
//! of a user ([`Policy::rules_for`]), and checks whether a user may grant a set of rules
//! ([`Policy::check_grant`]). [`defaults`] has the default roles and bindings.
//!
//! This crate does no I/O. It reads roles and bindings as values; the caller adds them with
//! [`Policy::set_role`] and [`Policy::set_binding`].

mod binding;
mod cover;
pub mod defaults;
mod policy;
mod role;
mod rule;
mod slots;

pub use cover::GrantError;
pub use policy::{Explanation, HeldRules, Outcome, Policy, Request, Scope};
pub use rule::Rule;
