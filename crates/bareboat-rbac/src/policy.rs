//! The index of roles and bindings.
//!
//! Readers share a lock that writers hold for the time of one insertion. A decision looks up the bindings of the
//! user and of each of the user's groups; bindings of others cost nothing.

use crate::binding::{Binding, RoleRef, keys};
use crate::decide::{Explanation, Request, joined};
use crate::role::Role;
use crate::rule::Rule;
use ahash::RandomState;
use bareboat_api::kind::User;
use bareboat_api::{Str, Value};
use parking_lot::RwLock;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Arc;

/// Where a role or binding applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope<'a> {
    /// Everywhere: ClusterRoles and ClusterRoleBindings.
    Cluster,
    /// In one namespace: Roles and RoleBindings.
    Namespace(&'a str),
}

impl<'a> Scope<'a> {
    /// The name of the namespace; empty for the cluster.
    pub fn namespace(self) -> &'a str {
        match self {
            Scope::Cluster => "",
            Scope::Namespace(name) => name,
        }
    }
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

/// All roles and bindings of a server.
#[derive(Debug, Default)]
pub struct Policy {
    hasher: RandomState,
    tables: RwLock<Tables>,
}

#[derive(Debug, Default)]
struct Tables {
    /// Counts bindings as they come.
    count: u64,
    /// By namespace; the empty one holds ClusterRoles and ClusterRoleBindings.
    scopes: HashMap<Str, Area, RandomState>,
}

/// The roles and bindings of one namespace, or of the cluster.
#[derive(Debug, Default)]
struct Area {
    roles: HashMap<Str, Arc<Role>, RandomState>,
    bindings: HashMap<Str, Arc<Binding>, RandomState>,
    /// Bindings by the hash of each of their subjects.
    subjects: HashMap<u64, SmallVec<[Arc<Binding>; 1]>, RandomState>,
}

impl Area {
    fn is_empty(&self) -> bool {
        self.roles.is_empty() && self.bindings.is_empty()
    }

    fn remove_binding(&mut self, name: &str, hasher: &RandomState) {
        let Some(old) = self.bindings.remove(name) else {
            return;
        };
        for subject in &old.subjects {
            let hash = hasher.hash_one(subject.as_key());
            if let Some(found) = self.subjects.get_mut(&hash) {
                found.retain(|binding| !Arc::ptr_eq(binding, &old));
                if found.is_empty() {
                    self.subjects.remove(&hash);
                }
            }
        }
    }

    fn add_binding(&mut self, binding: Arc<Binding>, hasher: &RandomState) {
        for subject in &binding.subjects {
            let found = self
                .subjects
                .entry(hasher.hash_one(subject.as_key()))
                .or_default();
            // A subject that a binding names twice counts once; two subjects may share a hash.
            if !found.iter().any(|known| Arc::ptr_eq(known, &binding)) {
                found.push(binding.clone());
            }
        }
        self.bindings.insert(binding.name.clone(), binding);
    }

    /// The bindings that may grant something to a user. Equal hashes are not yet equal subjects.
    fn bindings_of<'a>(
        &'a self,
        user: &'a User,
        hasher: &'a RandomState,
    ) -> impl Iterator<Item = &'a Arc<Binding>> {
        keys(user)
            .filter_map(move |key| self.subjects.get(&hasher.hash_one(key)))
            .flatten()
    }
}

impl Tables {
    fn role(&self, namespace: &str, role: &RoleRef) -> Option<&Arc<Role>> {
        let area = if role.cluster { "" } else { namespace };
        self.scopes.get(area)?.roles.get(role.name.as_str())
    }
}

impl Policy {
    /// An empty policy: it allows nothing.
    pub fn new() -> Policy {
        Policy::default()
    }

    /// Forgets the roles of all scopes.
    pub fn clear_roles(&self, cluster: bool) {
        self.clear(cluster, |area| area.roles = HashMap::default());
    }

    /// Forgets the bindings of all scopes.
    pub fn clear_bindings(&self, cluster: bool) {
        self.clear(cluster, |area| {
            area.bindings = HashMap::default();
            area.subjects = HashMap::default();
        });
    }

    fn clear(&self, cluster: bool, clear: impl Fn(&mut Area)) {
        let mut tables = self.tables.write();
        for (namespace, area) in &mut tables.scopes {
            if namespace.is_empty() == cluster {
                clear(area);
            }
        }
        tables.scopes.retain(|_, area| !area.is_empty());
    }

    /// Adds or replaces a role; nothing removes it.
    pub fn set_role(&self, scope: Scope<'_>, name: &str, role: Option<&Value>) {
        let role = role.map(|value| Arc::new(Role::new(Rule::list(value), &self.hasher)));
        self.change(scope, |area, _| match role {
            Some(role) => {
                area.roles.insert(Str::new(name), role);
            }
            None => {
                area.roles.remove(name);
            }
        });
    }

    /// Adds or replaces a binding; nothing removes it.
    pub fn set_binding(&self, scope: Scope<'_>, name: &str, binding: Option<&Value>) {
        self.change(scope, |area, count| {
            let order = area.bindings.get(name).map_or(count, |old| old.order);
            area.remove_binding(name, &self.hasher);
            if let Some(value) = binding {
                let binding = Binding::from_value(order, scope.namespace(), name, value);
                area.add_binding(Arc::new(binding), &self.hasher);
            }
        });
    }

    fn change(&self, scope: Scope<'_>, change: impl FnOnce(&mut Area, u64)) {
        let mut tables = self.tables.write();
        tables.count += 1;
        let (count, namespace) = (tables.count, scope.namespace());
        if !tables.scopes.contains_key(namespace) {
            tables.scopes.insert(Str::new(namespace), Area::default());
        }
        let Some(area) = tables.scopes.get_mut(namespace) else {
            return;
        };
        change(area, count);
        if area.is_empty() {
            tables.scopes.remove(namespace);
        }
    }

    /// Whether a user may do something.
    pub fn allows(&self, user: &User, request: &Request<'_>) -> bool {
        self.decide(user, request) == Outcome::Allowed
    }

    /// Whether a user may do something, and if not, whether [`Policy::explain`] has more to say.
    pub fn decide(&self, user: &User, request: &Request<'_>) -> Outcome {
        let tables = self.tables.read();
        let mut outcome = Outcome::Refused;
        for namespace in areas(request.namespace()) {
            let Some(area) = tables.scopes.get(namespace) else {
                continue;
            };
            for binding in area.bindings_of(user, &self.hasher) {
                let meant = || binding.subjects.iter().any(|subject| subject.is(user));
                match tables.role(namespace, &binding.role) {
                    Some(role) if role.allows(request, &self.hasher) && meant() => {
                        return Outcome::Allowed;
                    }
                    None if meant() => outcome = Outcome::RefusedForMissingRole,
                    _ => {}
                }
            }
        }
        outcome
    }

    /// Whether a user may do something, and why.
    pub fn explain(&self, user: &User, request: &Request<'_>) -> Explanation {
        let mut allowed = None;
        let mut missing = Vec::new();
        self.visit(user, request.namespace(), |namespace, binding, role| {
            let Some(role) = role else {
                missing.push(binding.role.missing());
                return true;
            };
            if !role.allows(request, &self.hasher) {
                return true;
            }
            let place = match namespace {
                "" => format!("ClusterRoleBinding \"{}\"", binding.name),
                _ => format!("RoleBinding \"{}/{namespace}\"", binding.name),
            };
            let who = binding.subjects.iter().find(|subject| subject.is(user));
            allowed = Some(format!(
                "RBAC: allowed by {place} of {} \"{}\" to {}",
                binding.role.kind(),
                binding.role.name,
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

    /// The rules a user has in a namespace (or in the cluster only, when it is empty), and what could not be found.
    pub fn rules_for(&self, user: &User, namespace: &str) -> (Vec<Rule>, Vec<String>) {
        let (mut rules, mut missing) = (Vec::new(), Vec::new());
        self.visit(user, namespace, |_, binding, role| {
            match role {
                Some(role) => rules.extend(role.rules().iter().cloned()),
                None => missing.push(binding.role.missing()),
            }
            true
        });
        (rules, missing)
    }

    /// The rules of a role; nothing when there is no such role.
    pub fn rules_of(&self, scope: Scope<'_>, name: &str) -> Option<Vec<Rule>> {
        let tables = self.tables.read();
        let area = tables.scopes.get(scope.namespace())?;
        Some(area.roles.get(name)?.rules().to_vec())
    }

    /// Shows every binding of a user in order, until the visitor has seen enough.
    fn visit(
        &self,
        user: &User,
        namespace: &str,
        mut visitor: impl FnMut(&str, &Binding, Option<&Role>) -> bool,
    ) {
        let tables = self.tables.read();
        for namespace in areas(namespace) {
            let Some(area) = tables.scopes.get(namespace) else {
                continue;
            };
            let mut bindings: Vec<&Arc<Binding>> = area
                .bindings_of(user, &self.hasher)
                .filter(|binding| binding.subjects.iter().any(|subject| subject.is(user)))
                .collect();
            bindings.sort_by_key(|binding| binding.order);
            bindings.dedup_by_key(|binding| binding.order);
            for binding in bindings {
                let role = tables.role(namespace, &binding.role);
                if !visitor(namespace, binding, role.map(Arc::as_ref)) {
                    return;
                }
            }
        }
    }
}

/// The scopes that count for a request: the cluster, then its namespace if it has one.
fn areas(namespace: &str) -> impl Iterator<Item = &str> {
    std::iter::once("").chain(Some(namespace).filter(|name| !name.is_empty()))
}
