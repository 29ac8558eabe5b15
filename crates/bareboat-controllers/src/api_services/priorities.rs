//! In which order groups and their versions are shown to clients.
// Upstream: controlplane/apiserver, DefaultGenericAPIServicePriorities, and cmd/kube-apiserver.

/// Of custom kinds: the group and the version.
pub(super) const CUSTOM: (i64, i64) = (1000, 100);

/// Of built-in kinds: the group and the version.
pub(super) fn built_in(group: &str, version: &str) -> Option<(i64, i64)> {
    let of_group = match group {
        "" => 18000,
        "apps" => 17800,
        "events.k8s.io" => 17750,
        "authentication.k8s.io" => 17700,
        "authorization.k8s.io" => 17600,
        "autoscaling" => 17500,
        "batch" => 17400,
        "certificates.k8s.io" => 17300,
        "networking.k8s.io" => 17200,
        "policy" => 17100,
        "rbac.authorization.k8s.io" => 17000,
        "storage.k8s.io" => 16800,
        "apiextensions.k8s.io" | "admissionregistration.k8s.io" => 16700,
        "scheduling.k8s.io" => 16600,
        "coordination.k8s.io" => 16500,
        "node.k8s.io" => 16300,
        "discovery.k8s.io" | "resource.k8s.io" => 16200,
        "flowcontrol.apiserver.k8s.io" => 16100,
        "internal.apiserver.k8s.io" => 16000,
        "storagemigration.k8s.io" => 15800,
        _ => return None,
    };
    let of_version = match (group, version) {
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
    };
    Some((of_group, of_version))
}
