//! What the Lease of the leader says about its holder, so that other servers find it.

use bareboat_api::{Object, Value};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The store resource of Leases.
pub const LEASES: &str = "coordination.k8s.io/leases";
/// The key of the leader's Lease in the store.
pub const LEASE: &str = "kube-system/bareboat-controllers";

/// On the Lease of the leader: the address at which other servers of the store reach it.
pub const ADDRESS: &str = "bareboat.dev/address";

/// Annotations of the Lease. Each leader writes its own, and removes those of its predecessor.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notes(Arc<Mutex<BTreeMap<&'static str, String>>>);

impl Notes {
    /// Adds or replaces an annotation. The Lease has it after the next renewal.
    pub(crate) fn set(&self, name: &'static str, text: String) {
        self.0.lock().insert(name, text);
    }

    /// Sets the annotations of a Lease. Annotations of others stay.
    pub(super) fn write(&self, lease: &mut Object) {
        let notes = self.0.lock();
        let annotations = lease.metadata_mut().object_mut("annotations");
        let ours = |name: &str| name == ADDRESS || name.ends_with(".bareboat.dev/leader");
        let gone: Vec<String> = annotations
            .iter()
            .map(|(name, _)| name.to_owned())
            .filter(|name| ours(name) && !notes.contains_key(name.as_str()))
            .collect();
        for name in gone {
            annotations.remove(&name);
        }
        for (name, text) in notes.iter() {
            annotations.insert(*name, Value::string(text));
        }
        if annotations.is_empty() {
            lease.metadata_mut().remove("annotations");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ADDRESS, Notes};
    use bareboat_api::{Object, value};

    #[test]
    fn a_leader_replaces_what_its_predecessor_said_and_nothing_else() {
        let mut lease = Object::try_from(value!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "a", "annotations": {
                "bareboat.dev/address": "192.0.2.1:6443", "fleet.bareboat.dev/leader": "true", "other": "x",
            }},
        }))
        .expect("an object");
        let notes = Notes::default();
        notes.set(ADDRESS, "192.0.2.2:6443".to_owned());
        notes.write(&mut lease);
        assert_eq!(lease.annotation(ADDRESS), Some("192.0.2.2:6443"));
        assert_eq!(lease.annotation("fleet.bareboat.dev/leader"), None);
        assert_eq!(lease.annotation("other"), Some("x"));
        Notes::default().write(&mut lease);
        assert_eq!(lease.annotation(ADDRESS), None);
    }
}
