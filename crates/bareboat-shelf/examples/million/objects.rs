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

/// The image of a container that every object has.
pub(crate) const SIDE_IMAGE: &str = "registry.example.com/side:2";
/// How often 16 bytes are repeated in text that no index has. An object has that text three times: 2.5 KB of its 3 KB.
const FILLER: usize = 52;

/// Returns the name of a member.
pub(crate) fn member(number: usize) -> String {
    format!("member-{number:03}")
}

/// Returns the name of an object.
pub(crate) fn name(number: usize) -> String {
    format!("object-{number:06}")
}

/// Returns the namespace of an object: the same for a hundred neighbours, so that owners and their objects are in one.
pub(crate) fn namespace(number: usize) -> String {
    format!("namespace-{:02}", number / 100 % 50)
}

/// Returns the uid of an object.
pub(crate) fn uid(cluster: usize, number: usize) -> String {
    format!("{cluster:08x}-{number:08x}")
}

/// Returns the number of the owner: of each hundred objects, all ten Pods belong to the first ReplicaSet, and that to the first Deployment.
pub(crate) fn owner(number: usize) -> Option<usize> {
    let first = number / 100 * 100;
    match number % 100 {
        6 => Some(first + 5),
        pod if pod % 10 == 0 => Some(first + 6),
        _ => None,
    }
}

/// Returns the value of the label that 100 of 100,000 Pods have.
pub(crate) fn team(cluster: usize, number: usize) -> String {
    format!("team-{}", (cluster * 7919 + number / 10) % 1000)
}

/// Returns the value of the label that a third has.
pub(crate) fn tier(number: usize) -> &'static str {
    ["front", "middle", "back"][number % 3]
}

/// Returns the node of a Pod: 100 Pods are on each.
pub(crate) fn node(cluster: usize, number: usize) -> String {
    format!("node-{cluster}-{}", number / 1000)
}

/// Returns an object; its number decides about its kind.
pub(crate) fn object(cluster: usize, number: usize) -> Value {
    let (group, version, _, kind) = KINDS[number % KINDS.len()];
    let api_version = match group {
        "" => version.to_owned(),
        group => format!("{group}/{version}"),
    };
    let filler: String = format!("{cluster:08x}{number:08x}").repeat(FILLER);
    let mut object = value!({
        "apiVersion": api_version, "kind": kind,
        "metadata": {
            "name": (name(number)), "namespace": (namespace(number)),
            "uid": (uid(cluster, number)),
            "resourceVersion": ((number + 1).to_string()),
            "creationTimestamp": "2024-01-01T00:00:00Z",
            "labels": {
                "app": (format!("app-{}", number % 977)),
                "team": (team(cluster, number)),
                "tier": (tier(number)),
            },
            "annotations": {"example.com/text": (filler.as_str())},
        },
        "spec": {
            "nodeName": (node(cluster, number)),
            "replicas": ((number % 9) as i64),
            "containers": [
                {"name": "main", "image": (format!("registry.example.com/app-{}:1.{}", number % 977, number % 10)), "args": (filler.as_str())},
                {"name": "side", "image": SIDE_IMAGE},
            ],
        },
        "status": {"phase": (["Running", "Running", "Running", "Pending", "Failed"][number / 10 % 5]), "message": (filler.as_str())},
    });
    if let Some(owner) = owner(number) {
        let reference = value!([{
            "apiVersion": "apps/v1", "kind": (KINDS[owner % KINDS.len()].3), "name": (name(owner)),
            "uid": (uid(cluster, owner)), "controller": true,
        }]);
        object
            .make_object()
            .object_mut("metadata")
            .insert("ownerReferences", reference);
    }
    object
}
