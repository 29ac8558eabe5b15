//! The built-in kinds as data: names, scope, verbs, subresources, columns, rules.
//!
//! One file per API group. Code that is not data is in `defaults` and `strategies`.

mod admissionregistration;
mod apiextensions;
mod apiregistration;
mod apps;
mod authentication;
mod authorization;
mod autoscaling;
mod batch;
mod build;
mod certificates;
mod coordination;
mod core;
mod discovery;
mod events;
mod flowcontrol;
mod networking;
mod node;
mod policy;
mod rbac;
mod resource;
mod scheduling;
mod storage;

use bareboat_api::Kind;

/// Returns every built-in kind.
pub fn all() -> Vec<Kind> {
    let groups: [fn() -> Vec<Kind>; 21] = [
        core::kinds,
        admissionregistration::kinds,
        apiextensions::kinds,
        apiregistration::kinds,
        apps::kinds,
        authentication::kinds,
        authorization::kinds,
        autoscaling::kinds,
        batch::kinds,
        certificates::kinds,
        coordination::kinds,
        discovery::kinds,
        events::kinds,
        flowcontrol::kinds,
        networking::kinds,
        node::kinds,
        policy::kinds,
        rbac::kinds,
        resource::kinds,
        scheduling::kinds,
        storage::kinds,
    ];
    groups.into_iter().flat_map(|kinds| kinds()).collect()
}

/// Returns what a top-level member of an event is called in another group of events, which is empty or `events.k8s.io`. It is `None`
/// if the member has the same name in both, or if the other group has no such member.
pub fn event_member_in(group: &str, member: &str) -> Option<&'static str> {
    crate::strategies::event_member_in(group, member)
}

/// Returns whether a kind makes sense without nodes: kinds for access control, API extension and generic objects.
pub fn is_bare(kind: &Kind) -> bool {
    match kind.group.as_str() {
        "" => matches!(
            kind.names.plural.as_str(),
            "namespaces"
                | "configmaps"
                | "secrets"
                | "serviceaccounts"
                | "events"
                | "resourcequotas"
        ),
        group => matches!(
            group,
            "admissionregistration.k8s.io"
                | "apiextensions.k8s.io"
                | "apiregistration.k8s.io"
                | "authentication.k8s.io"
                | "authorization.k8s.io"
                | "certificates.k8s.io"
                | "coordination.k8s.io"
                | "events.k8s.io"
                | "flowcontrol.apiserver.k8s.io"
                | "rbac.authorization.k8s.io"
        ),
    }
}

/// Returns the built-in kind of that group and resource.
pub fn find(group: &str, plural: &str) -> Option<Kind> {
    all()
        .into_iter()
        .find(|kind| kind.group == group && kind.names.plural == plural)
}
