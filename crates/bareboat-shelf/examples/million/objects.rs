//! The objects: computed from their numbers, about 3 KB each. A tenth are Pods; the rest are split among other kinds.

use bareboat_api::{Value, value};

/// How many there are.
pub(crate) struct Fleet {
    pub(crate) members: usize,
    pub(crate) objects: usize,
}

/// The kinds, as group, version, resource and kind.
pub(crate) const KINDS: [(&str, &str, &str, &str); 10] = [
    ("", "v1", "pods", "Pod"),
    ("", "v1", "configmaps", "ConfigMap"),
    ("", "v1", "services", "Service"),
    ("", "v1", "endpoints", "Endpoints"),
    ("", "v1", "serviceaccounts", "ServiceAccount"),
    ("apps", "v1", "deployments", "Deployment"),
    ("apps", "v1", "replicasets", "ReplicaSet"),
    ("apps", "v1", "statefulsets", "StatefulSet"),
    ("batch", "v1", "jobs", "Job"),
    ("networking.k8s.io", "v1", "ingresses", "Ingress"),
];

/// Returns the name of a member.
pub(crate) fn member(number: usize) -> String {
    format!("member-{number:03}")
}

/// Returns the name of an object.
pub(crate) fn name(number: usize) -> String {
    format!("object-{number:06}")
}

/// Returns the namespace of an object.
pub(crate) fn namespace(number: usize) -> String {
    format!("namespace-{:02}", number / 10 % 50)
}

/// Returns an object; its number decides about its kind.
pub(crate) fn object(cluster: usize, number: usize) -> Value {
    let (group, version, _, kind) = KINDS[number % KINDS.len()];
    let api_version = match group {
        "" => version.to_owned(),
        group => format!("{group}/{version}"),
    };
    // About 100 objects in a million have each value of `team`, and each node has 10 Pods of a member.
    let filler: String = format!("{cluster:08x}{number:08x}").repeat(40);
    value!({
        "apiVersion": api_version, "kind": kind,
        "metadata": {
            "name": (name(number)), "namespace": (namespace(number)),
            "uid": (format!("{cluster:08x}-{number:08x}")),
            "resourceVersion": (number.to_string()),
            "creationTimestamp": "2024-01-01T00:00:00Z",
            "labels": {
                "app": (format!("app-{}", number % 977)),
                "team": (format!("team-{}", (cluster * 7919 + number) % 9973)),
                "tier": (["front", "middle", "back"][number % 3]),
            },
            "annotations": {"example.com/text": (filler.as_str())},
        },
        "spec": {
            "nodeName": (format!("node-{}", number / 100)),
            "replicas": ((number % 9) as i64),
            "containers": [
                {"name": "main", "image": (format!("registry.example.com/app-{}:1.{}", number % 977, number % 10)), "args": (filler.as_str())},
                {"name": "side", "image": "registry.example.com/side:2"},
            ],
        },
        "status": {"phase": (["Running", "Running", "Running", "Pending", "Failed"][number / 10 % 5]), "message": (filler.as_str())},
    })
}
