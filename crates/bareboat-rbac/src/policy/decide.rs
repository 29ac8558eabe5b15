//! Decisions: whether a request is allowed, and why. Roles and bindings are indexed in `policy`.

use super::Policy;
use crate::binding::{Binding, Person, keys};
use crate::role::resource_key;
use crate::rule::Rule;
use crate::slots::Slot;
use ahash::AHashSet;
use bareboat_api::kind::User;
use smallvec::SmallVec;
use std::sync::Arc;

/// The action that a user requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// An action on API objects.
    Resource {
        /// The verb, such as `get` or `deletecollection`.
        verb: &'a str,
        /// The API group; empty for core.
        group: &'a str,
        /// The resource, such as `pods`.
        resource: &'a str,
        /// The subresource; empty for the object itself.
        subresource: &'a str,
        /// The namespace; empty for cluster scope or all namespaces.
        namespace: &'a str,
        /// The name of the object; empty for collections.
        name: &'a str,
    },
    /// A path that is not a resource.
    Url {
        /// The verb: the HTTP method in lower case.
        verb: &'a str,
        /// The path.
        path: &'a str,
    },
}

impl<'a> Request<'a> {
    /// Returns whether a rule allows the request.
    pub fn matches(&self, rule: &Rule) -> bool {
        match self {
            Request::Resource {
                verb,
                group,
                resource,
                subresource,
                name,
                ..
            } => {
                rule.has_verb(verb)
                    && rule.has_group(group)
                    && rule.has_resource(resource, subresource)
                    && rule.has_name(name)
            }
            Request::Url { verb, path } => rule.has_verb(verb) && rule.has_url(path),
        }
    }

    /// Returns the namespace whose bindings apply in addition to those of the cluster; empty for
    /// none.
    pub(crate) fn namespace(&self) -> &'a str {
        match self {
            Request::Resource { namespace, .. } => namespace,
            Request::Url { .. } => "",
        }
    }
}

/// The maximum size of the rules that are listed for a user, in words: verbs, groups, resources, names and URLs.
const MOST_HELD: usize = 200_000;
/// The maximum number of missing roles that are listed for a user.
const MOST_MISSING: usize = 10_000;

/// The rules of a user, as far as they are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeldRules {
    /// The rules of all roles that bindings of the user name.
    pub rules: Vec<Rule>,
    /// Errors for roles that do not exist.
    pub missing: Vec<String>,
    /// Whether the user has more rules than are listed.
    pub is_cut: bool,
}

/// A decision with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// Whether the request is allowed.
    pub allowed: bool,
    /// The binding that allows it, or the roles that were not found; may be empty.
    pub reason: String,
}

/// A decision without its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A rule allows the request.
    Allowed,
    /// No rule allows it.
    Refused,
    /// No rule allows it, and a binding of the user names a role that does not exist.
    RefusedForMissingRole,
}

impl Policy {
    /// Returns whether a user may perform a request.
    pub fn allows(&self, user: &User, request: &Request<'_>) -> bool {
        self.decide(user, request) == Outcome::Allowed
    }

    /// Returns whether a user may perform a request, and if not, whether [`Policy::explain`] has a
    /// reason.
    pub fn decide(&self, user: &User, request: &Request<'_>) -> Outcome {
        let tables = self.tables.read();
        let (keys, resource) = (self.keys(user), resource_key(request, &self.hasher));
        let person = Person::new(user);
        let mut seen = person.has_many_groups().then(AHashSet::new);
        let mut outcome = Outcome::Refused;
        for namespace in areas(request.namespace()) {
            let Some(area) = tables.scopes.get(namespace) else {
                continue;
            };
            for binding in area.bindings_of(&keys) {
                if let Some(seen) = &mut seen
                    && !seen.insert(Arc::as_ptr(binding))
                {
                    continue;
                }
                match &tables.slots.get(binding.role).role {
                    Some(role) if role.allows(request, resource) && binding.is_for(&person) => {
                        return Outcome::Allowed;
                    }
                    None if binding.is_for(&person) => outcome = Outcome::RefusedForMissingRole,
                    _ => {}
                }
            }
        }
        outcome
    }

    /// Returns whether a user may perform a request, and why.
    pub fn explain(&self, user: &User, request: &Request<'_>) -> Explanation {
        let mut allowed = None;
        let mut missing = Vec::new();
        let resource = resource_key(request, &self.hasher);
        let person = Person::new(user);
        self.visit(user, request.namespace(), |namespace, binding, slot| {
            let Some(role) = &slot.role else {
                missing.push(slot.missing());
                return true;
            };
            if !role.allows(request, resource) {
                return true;
            }
            let place = match namespace {
                "" => format!("ClusterRoleBinding \"{}\"", binding.name),
                _ => format!("RoleBinding \"{}/{namespace}\"", binding.name),
            };
            let who = binding.subjects.iter().find(|subject| person.is(subject));
            allowed = Some(format!(
                "RBAC: allowed by {place} of {} \"{}\" to {}",
                slot.kind(),
                slot.name,
                who.map(|subject| subject.describe()).unwrap_or_default()
            ));
            false
        });
        match allowed {
            Some(reason) => Explanation {
                allowed: true,
                reason,
            },
            None if missing.is_empty() => Explanation {
                allowed: false,
                reason: String::new(),
            },
            None => Explanation {
                allowed: false,
                reason: format!("RBAC: {}", joined(&missing)),
            },
        }
    }

    /// Returns the rules of a user in a namespace, or only those of the cluster if it is empty.
    ///
    /// A role counts once, however many bindings name it, and the result is limited: users may bind themselves to
    /// large roles many times.
    pub fn rules_for(&self, user: &User, namespace: &str) -> HeldRules {
        let mut held = HeldRules::default();
        let mut seen = AHashSet::new();
        let mut size = 0;
        self.visit(user, namespace, |_, binding, slot| {
            let Some(role) = &slot.role else {
                held.missing.push(slot.missing());
                return held.missing.len() < MOST_MISSING;
            };
            if seen.insert(binding.role) {
                for rule in role.rules() {
                    size += rule.size();
                    if size > MOST_HELD {
                        held.is_cut = true;
                        return false;
                    }
                    held.rules.push(rule.clone());
                }
            }
            true
        });
        held
    }

    /// Returns the hashes of all subjects that may match a user.
    fn keys(&self, user: &User) -> SmallVec<[u64; 8]> {
        keys(user).map(|key| self.hasher.hash_one(key)).collect()
    }

    /// Calls the visitor for every binding of a user in order, until it ends the iteration.
    fn visit(
        &self,
        user: &User,
        namespace: &str,
        mut visitor: impl FnMut(&str, &Binding, &Slot) -> bool,
    ) {
        let tables = self.tables.read();
        let (keys, person) = (self.keys(user), Person::new(user));
        for namespace in areas(namespace) {
            let Some(area) = tables.scopes.get(namespace) else {
                continue;
            };
            let mut bindings: Vec<&Arc<Binding>> = area.bindings_of(&keys).collect();
            bindings.sort_by_key(|binding| binding.order);
            bindings.dedup_by_key(|binding| binding.order);
            bindings.retain(|binding| binding.is_for(&person));
            for binding in bindings {
                if !visitor(namespace, binding, tables.slots.get(binding.role)) {
                    return;
                }
            }
        }
    }
}

/// Returns the scopes of a request: the cluster, then its namespace if it has one.
fn areas(namespace: &str) -> impl Iterator<Item = &str> {
    std::iter::once("").chain(Some(namespace).filter(|name| !name.is_empty()))
}

/// Joins errors: a single one unchanged, several in brackets without duplicates.
fn joined(errors: &[String]) -> String {
    let mut seen = ahash::AHashSet::new();
    let unique: Vec<&str> = errors
        .iter()
        .map(String::as_str)
        .filter(|error| seen.insert(*error))
        .collect();
    match unique.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        many => format!("[{}]", many.join(", ")),
    }
}
