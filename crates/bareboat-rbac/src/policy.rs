//! The index of roles and bindings; `decide` answers requests from it.
//!
//! Readers share a lock that writers hold for the time of one insertion. A decision looks up the
//! bindings of the user and of each of the user's groups; other bindings cost nothing.

mod decide;

pub use decide::{Explanation, HeldRules, Outcome, Request};

use crate::binding::{Binding, ByName, RoleRef};
use crate::role::Role;
use crate::rule::Rule;
use crate::slots::{RoleId, Slots};
use ahash::RandomState;
use bareboat_api::{HashedMap, Str, Value};
use parking_lot::RwLock;
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The scope of a role or binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope<'a> {
    /// The cluster: ClusterRoles and ClusterRoleBindings.
    Cluster,
    /// One namespace: Roles and RoleBindings.
    Namespace(&'a str),
}

impl<'a> Scope<'a> {
    /// Returns the name of the namespace; empty for the cluster.
    pub fn namespace(self) -> &'a str {
        match self {
            Scope::Cluster => "",
            Scope::Namespace(name) => name,
        }
    }
}

/// All roles and bindings of a server.
#[derive(Debug, Default)]
pub struct Policy {
    hasher: RandomState,
    tables: RwLock<Tables>,
}

#[derive(Debug, Default)]
struct Tables {
    /// The number of bindings added so far.
    count: u64,
    /// By namespace; the empty one has the ClusterRoles and ClusterRoleBindings.
    scopes: HashMap<Str, Area, RandomState>,
    slots: Slots,
}

/// The roles and bindings of one namespace, or of the cluster.
#[derive(Debug, Default)]
struct Area {
    /// Roles that exist or that a binding refers to, by name.
    roles: HashMap<Str, RoleId, RandomState>,
    bindings: HashSet<ByName, RandomState>,
    /// Bindings by the hash of each of their subjects.
    subjects: HashedMap<SmallVec<[Arc<Binding>; 1]>>,
}

impl Area {
    fn is_empty(&self) -> bool {
        self.roles.is_empty() && self.bindings.is_empty()
    }

    fn remove_binding(&mut self, name: &str, hasher: &RandomState) -> Option<Arc<Binding>> {
        let ByName(old) = self.bindings.take(name)?;
        for subject in &old.subjects {
            let hash = hasher.hash_one(subject.as_key());
            if let Some(found) = self.subjects.get_mut(&hash) {
                found.retain(|binding| !Arc::ptr_eq(binding, &old));
                if found.is_empty() {
                    self.subjects.remove(&hash);
                }
            }
        }
        Some(old)
    }

    fn add_binding(&mut self, binding: Arc<Binding>, hasher: &RandomState) {
        for subject in &binding.subjects {
            let found = self
                .subjects
                .entry(hasher.hash_one(subject.as_key()))
                .or_default();
            // A subject that a binding names twice counts once; two subjects may share a hash. Where this binding was
            // added already, it is the last.
            if !found
                .last()
                .is_some_and(|known| Arc::ptr_eq(known, &binding))
            {
                found.push(binding.clone());
            }
        }
        self.bindings.insert(ByName(binding));
    }

    /// Returns the bindings that may grant something to the user with these keys. Different
    /// subjects may have the same hash.
    fn bindings_of<'a>(&'a self, keys: &'a [u64]) -> impl Iterator<Item = &'a Arc<Binding>> {
        keys.iter()
            .filter_map(move |key| self.subjects.get(key))
            .flatten()
    }
}

impl Tables {
    /// Returns the area of a namespace, or of the cluster if the name is empty.
    fn area(&mut self, namespace: &str) -> &mut Area {
        if !self.scopes.contains_key(namespace) {
            self.scopes.insert(Str::new(namespace), Area::default());
        }
        let area = self.scopes.get_mut(namespace);
        area.expect("it was added if it was missing")
    }

    /// Returns the namespaces that have roles or bindings, or only the cluster.
    fn namespaces(&self, cluster: bool) -> Vec<Str> {
        let names = self.scopes.keys();
        names
            .filter(|name| name.is_empty() == cluster)
            .cloned()
            .collect()
    }

    /// Returns the number of a role, which need not exist.
    fn role_id(&mut self, namespace: &str, name: &str) -> RoleId {
        if let Some(id) = self.area(namespace).roles.get(name) {
            return *id;
        }
        let id = self.slots.add(namespace.is_empty(), name);
        self.area(namespace).roles.insert(Str::new(name), id);
        id
    }

    fn set_role(&mut self, namespace: &str, name: &str, role: Option<Role>) {
        if role.is_none() && !self.has_role(namespace, name) {
            return;
        }
        let id = self.role_id(namespace, name);
        if self.slots.set(id, role) {
            self.forget_role(namespace, name);
        }
    }

    fn has_role(&self, namespace: &str, name: &str) -> bool {
        let area = self.scopes.get(namespace);
        area.is_some_and(|area| area.roles.contains_key(name))
    }

    fn forget_role(&mut self, namespace: &str, name: &str) {
        self.area(namespace).roles.remove(name);
        self.forget_area(namespace);
    }

    fn forget_area(&mut self, namespace: &str) {
        if self.scopes.get(namespace).is_some_and(Area::is_empty) {
            self.scopes.remove(namespace);
        }
    }

    /// Removes a binding and returns the order it had.
    fn remove_binding(
        &mut self,
        scope: Scope<'_>,
        name: &str,
        hasher: &RandomState,
    ) -> Option<u64> {
        let area = self.scopes.get_mut(scope.namespace())?;
        let old = area.remove_binding(name, hasher)?;
        self.unbind(scope.namespace(), old.role);
        self.forget_area(scope.namespace());
        Some(old.order)
    }

    /// Counts one binding of a namespace less for a role.
    fn unbind(&mut self, namespace: &str, role: RoleId) {
        let slot = self.slots.get(role);
        let (namespace, name) = (slot.namespace(namespace), slot.name.clone());
        if self.slots.unbind(role) {
            self.forget_role(namespace, &name);
        }
    }

    fn add_binding(
        &mut self,
        scope: Scope<'_>,
        name: &str,
        order: u64,
        value: &Value,
        hasher: &RandomState,
    ) {
        let reference = RoleRef::from_value(value);
        let home = match reference.cluster {
            true => "",
            false => scope.namespace(),
        };
        let role = self.role_id(home, reference.name);
        self.slots.bind(role);
        let binding = Arc::new(Binding::from_value(order, scope, name, role, value));
        self.area(scope.namespace()).add_binding(binding, hasher);
    }
}

impl Policy {
    /// Returns an empty policy, which allows nothing.
    pub fn new() -> Policy {
        Policy::default()
    }

    /// Returns the number of roles that exist or that a binding refers to.
    #[cfg(test)]
    pub(crate) fn slots(&self) -> usize {
        self.tables.read().slots.len()
    }

    /// Removes all ClusterRoles or all Roles.
    pub fn clear_roles(&self, cluster: bool) {
        let mut tables = self.tables.write();
        for namespace in tables.namespaces(cluster) {
            let area = tables.area(&namespace);
            let names: Vec<Str> = area.roles.keys().cloned().collect();
            for name in names {
                tables.set_role(&namespace, &name, None);
            }
        }
    }

    /// Removes all ClusterRoleBindings or all RoleBindings.
    pub fn clear_bindings(&self, cluster: bool) {
        let mut tables = self.tables.write();
        for namespace in tables.namespaces(cluster) {
            let area = tables.area(&namespace);
            area.subjects = HashedMap::default();
            let bindings = std::mem::take(&mut area.bindings);
            for ByName(binding) in bindings {
                tables.unbind(&namespace, binding.role);
            }
            tables.forget_area(&namespace);
        }
    }

    /// Adds or replaces a role; `None` removes it.
    pub fn set_role(&self, scope: Scope<'_>, name: &str, role: Option<&Value>) {
        let role = role.map(|value| Role::new(Rule::list(value), &self.hasher));
        let mut tables = self.tables.write();
        tables.set_role(scope.namespace(), name, role);
    }

    /// Adds or replaces a binding; `None` removes it.
    pub fn set_binding(&self, scope: Scope<'_>, name: &str, binding: Option<&Value>) {
        let mut tables = self.tables.write();
        tables.count += 1;
        let count = tables.count;
        let order = tables.remove_binding(scope, name, &self.hasher);
        if let Some(value) = binding {
            tables.add_binding(scope, name, order.unwrap_or(count), value, &self.hasher);
        }
    }

    /// Returns the rules of a role; `None` if there is no such role.
    pub fn rules_of(&self, scope: Scope<'_>, name: &str) -> Option<Vec<Rule>> {
        let tables = self.tables.read();
        let area = tables.scopes.get(scope.namespace())?;
        let slot = tables.slots.get(*area.roles.get(name)?);
        Some(slot.role.as_ref()?.rules().to_vec())
    }
}
