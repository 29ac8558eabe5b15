//! The priorities of versions, which decide about their order in discovery. The priority of a group is part of its kinds.

/// The priority of a version of a custom kind.
pub(super) const CUSTOM: i64 = 100;

/// The priority of a version of a built-in kind, as in kube-apiserver.
pub(super) fn built_in(group: &str, version: &str) -> i64 {
    match (group, version) {
        ("", _) => 1,
        ("autoscaling", "v2") => 30,
        ("flowcontrol.apiserver.k8s.io" | "resource.k8s.io", "v1") => 21,
        (_, "v1") => 15,
        ("resource.k8s.io", "v1beta2") => 15,
        ("coordination.k8s.io", "v1beta1") => 13,
        ("coordination.k8s.io", "v1alpha2") => 12,
        ("admissionregistration.k8s.io", "v1beta1") => 12,
        ("admissionregistration.k8s.io", "v1alpha1") => 9,
        (_, version) if version.contains("alpha") => 1,
        _ => 9,
    }
}
