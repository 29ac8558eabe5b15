//! Slots are reused when neither a role nor a binding needs them.

use crate::policy::{Policy, Scope};
use bareboat_api::value;

#[test]
fn a_role_that_nothing_refers_to_leaves_its_slot() {
    let policy = Policy::new();
    let role = value!({"rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]});
    let binding = value!({
        "roleRef": {"kind": "Role", "name": "reader"},
        "subjects": [{"kind": "User", "name": "ann"}],
    });
    for _ in 0..3 {
        policy.set_binding(Scope::Namespace("a"), "b", Some(&binding));
        assert_eq!(policy.rules_of(Scope::Namespace("a"), "reader"), None);
        policy.set_role(Scope::Namespace("a"), "reader", Some(&role));
        assert!(policy.rules_of(Scope::Namespace("a"), "reader").is_some());
        policy.set_role(Scope::Namespace("a"), "reader", None);
        assert_eq!(policy.slots(), 1, "the binding still refers to it");
        policy.set_binding(Scope::Namespace("a"), "b", None);
        assert_eq!(policy.slots(), 0);
    }
}

#[test]
fn clearing_removes_roles_and_bindings_of_one_scope() {
    let policy = Policy::new();
    let role = value!({"rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]});
    let binding = |kind: &str| {
        value!({
            "roleRef": {"kind": (kind), "name": "reader"},
            "subjects": [{"kind": "User", "name": "ann"}],
        })
    };
    for scope in [Scope::Cluster, Scope::Namespace("a")] {
        policy.set_role(scope, "reader", Some(&role));
    }
    policy.set_binding(Scope::Cluster, "b", Some(&binding("ClusterRole")));
    policy.set_binding(Scope::Namespace("a"), "b", Some(&binding("ClusterRole")));
    policy.clear_roles(true);
    assert_eq!(policy.rules_of(Scope::Cluster, "reader"), None);
    assert!(policy.rules_of(Scope::Namespace("a"), "reader").is_some());
    assert_eq!(policy.slots(), 2, "two bindings refer to the ClusterRole");
    policy.clear_bindings(true);
    policy.clear_bindings(false);
    assert_eq!(policy.slots(), 1);
    policy.clear_roles(false);
    assert_eq!(policy.slots(), 0);
}
