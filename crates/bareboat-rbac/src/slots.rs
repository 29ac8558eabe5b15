//! Roles by number, so that a binding finds its role without a lookup by name.
//!
//! A role keeps its number while it exists or while a binding refers to it.

use crate::role::Role;
use bareboat_api::Str;

/// The number of a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RoleId(u32);

/// A role that exists, or that a binding refers to.
#[derive(Debug)]
pub(crate) struct Slot {
    /// Whether the role is a ClusterRole.
    cluster: bool,
    pub(crate) name: Str,
    /// The role; `None` if it does not exist.
    pub(crate) role: Option<Role>,
    /// The number of bindings that refer to the role.
    bindings: u32,
}

impl Slot {
    /// Returns the kind of the role, as reasons print it.
    pub(crate) fn kind(&self) -> &'static str {
        if self.cluster { "ClusterRole" } else { "Role" }
    }

    /// Returns the namespace of the role, for a binding of this namespace; empty for a ClusterRole.
    pub(crate) fn namespace<'a>(&self, binding: &'a str) -> &'a str {
        if self.cluster { "" } else { binding }
    }

    /// Returns the error text for a missing role.
    pub(crate) fn missing(&self) -> String {
        let kind = if self.cluster { "clusterrole" } else { "role" };
        format!(
            "{kind}.rbac.authorization.k8s.io {} not found",
            bareboat_api::field::go_quote(&self.name)
        )
    }

    /// Returns whether neither a role nor a binding needs the slot.
    fn is_unused(&self) -> bool {
        self.role.is_none() && self.bindings == 0
    }
}

/// All slots.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    slots: Vec<Option<Slot>>,
    free: Vec<u32>,
}

impl Slots {
    /// Adds a slot for a role that does not exist yet.
    pub(crate) fn add(&mut self, cluster: bool, name: &str) -> RoleId {
        let slot = Some(Slot {
            cluster,
            name: Str::new(name),
            role: None,
            bindings: 0,
        });
        match self.free.pop() {
            Some(index) => {
                self.slots[index as usize] = slot;
                RoleId(index)
            }
            None => {
                self.slots.push(slot);
                let index = u32::try_from(self.slots.len() - 1);
                RoleId(index.expect("there is less memory than four billion roles need"))
            }
        }
    }

    pub(crate) fn get(&self, id: RoleId) -> &Slot {
        let slot = self.slots[id.0 as usize].as_ref();
        slot.expect("a slot exists while something refers to it")
    }

    fn get_mut(&mut self, id: RoleId) -> &mut Slot {
        let slot = self.slots[id.0 as usize].as_mut();
        slot.expect("a slot exists while something refers to it")
    }

    /// Returns the number of slots in use.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Adds, replaces or removes the role. Returns whether the slot is gone.
    pub(crate) fn set(&mut self, id: RoleId, role: Option<Role>) -> bool {
        self.get_mut(id).role = role;
        self.remove_if_unused(id)
    }

    /// Counts one more binding.
    pub(crate) fn bind(&mut self, id: RoleId) {
        self.get_mut(id).bindings += 1;
    }

    /// Counts one binding less. Returns whether the slot is gone.
    pub(crate) fn unbind(&mut self, id: RoleId) -> bool {
        self.get_mut(id).bindings -= 1;
        self.remove_if_unused(id)
    }

    fn remove_if_unused(&mut self, id: RoleId) -> bool {
        let unused = self.get(id).is_unused();
        if unused {
            self.slots[id.0 as usize] = None;
            self.free.push(id.0);
        }
        unused
    }
}

#[cfg(test)]
mod tests;
