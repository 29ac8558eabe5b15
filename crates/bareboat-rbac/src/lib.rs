//! Role-based access control as Kubernetes defines it.
//!
//! [`Policy`] is an index of roles and bindings. It decides fast whether a user may perform a
//! request ([`Policy::allows`]). It also explains decisions ([`Policy::explain`]), lists the rules
//! of a user ([`Policy::rules_for`]), and checks whether a user may grant a set of rules
//! ([`Policy::check_grant`]). [`defaults`] has the default roles and bindings.
//!
//! ```
//! use bareboat_api::kind::User;
//! use bareboat_api::value;
//! use bareboat_rbac::{Policy, Request, Scope};
//!
//! let policy = Policy::new();
//! let role = value!({"rules": [{"verbs": ["get"], "apiGroups": ["sea.example.com"], "resources": ["boats"]}]});
//! policy.set_role(Scope::Namespace("harbour"), "reader", Some(&role));
//! let binding = value!({
//!     "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
//!     "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ada"}],
//! });
//! policy.set_binding(Scope::Namespace("harbour"), "ada-reads", Some(&binding));
//!
//! let ada = User { name: "ada".into(), ..User::default() };
//! let request = |verb, namespace| Request::Resource {
//!     verb, group: "sea.example.com", resource: "boats", subresource: "", namespace, name: "argo",
//! };
//! assert!(policy.allows(&ada, &request("get", "harbour")));
//! assert!(!policy.allows(&ada, &request("delete", "harbour")));
//! assert!(!policy.allows(&ada, &request("get", "elsewhere")));
//! ```
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
