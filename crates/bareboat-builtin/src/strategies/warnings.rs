//! Warnings about valid pods, services, ingresses and volumes.

use super::check::path;
use crate::reach::Reach;
use bareboat_api::quantity::Quantity;
use bareboat_api::{FieldPath, Map, Object, Value, names};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

/// Returns warnings about `spec.template` of a workload, and about a name that pods inherit.
pub(super) fn workload(new: &Object, old: Option<&Object>) -> Vec<String> {
    let mut found = Vec::new();
    if old.is_none() {
        found.extend(name(
            new,
            "this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended",
        ));
    }
    found.extend(template(new, old, &["spec", "template"]));
    found
}

/// Returns warnings about a job: its template, and too many indexes for its status.
pub(super) fn job(new: &Object, old: Option<&Object>) -> Vec<String> {
    let mut found = Vec::new();
    if !changed(new, old) {
        return found;
    }
    let spec = new.get("spec").unwrap_or(&Value::Null);
    let above = |member, limit| spec.int(&[member]).is_some_and(|number| number > limit);
    if spec.text(&["completionMode"]) == "Indexed"
        && above("completions", 100_000)
        && above("parallelism", 10_000)
    {
        found.push("spec: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail".to_owned());
    }
    found.extend(workload(new, old));
    found
}

/// Returns warnings about a CronJob's template.
pub(super) fn cron_job(new: &Object, old: Option<&Object>) -> Vec<String> {
    template(new, old, &["spec", "jobTemplate", "spec", "template"])
}

/// Returns warnings about a pod template at the given path, if the object changed.
pub(super) fn template(new: &Object, old: Option<&Object>, at: &[&str]) -> Vec<String> {
    let Some(template) = new.at(at) else {
        return Vec::new();
    };
    if !changed(new, old) {
        return Vec::new();
    }
    let mut found = Vec::new();
    pod_like(template, &path(at), &mut found);
    found
}

/// Returns whether the generation changed.
fn changed(new: &Object, old: Option<&Object>) -> bool {
    old.is_none_or(|old| old.generation() != new.generation())
}

/// Returns warnings about a new pod. Updates are frequent and get none.
pub(super) fn pod(new: &Object, old: Option<&Object>) -> Vec<String> {
    let mut found = Vec::new();
    if old.is_some() {
        return found;
    }
    found.extend(name(
        new,
        "this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended",
    ));
    pod_like(new.value(), &FieldPath::root(), &mut found);
    found
}

fn name(object: &Object, why: &str) -> Option<String> {
    let complaints = names::dns1123_label(object.name());
    (!complaints.is_empty() && !object.name().is_empty())
        .then(|| format!("metadata.name: {why}: [{}]", complaints.join(" ")))
}

/// Maximum number of warnings of one write.
const MAX_WARNINGS: usize = 100;

/// Adds warnings about the metadata and spec of a pod or template.
fn pod_like(pod: &Value, at: &FieldPath, found: &mut Vec<String>) {
    let spec_path = at.child("spec");
    let annotations = pod.members(&["metadata", "annotations"]);
    for key in annotations.into_iter().flat_map(Map::keys) {
        if key.starts_with("container.apparmor.security.beta.kubernetes.io/") {
            let place = at.child("metadata").child("annotations").key(key);
            found.push(format!(
                "{place}: deprecated since v1.30; use the \"appArmorProfile\" field instead"
            ));
        }
    }
    let Some(spec) = pod.at(&["spec"]) else {
        return;
    };
    for (index, constraint) in spec.list(&["topologySpreadConstraints"]).iter().enumerate() {
        if !constraint.has(&["labelSelector"]) {
            let place = spec_path
                .child("topologySpreadConstraints")
                .index(index)
                .child("labelSelector");
            found.push(format!(
                "{place}: a null labelSelector results in matching no pod"
            ));
        }
    }
    for (key, _) in spec
        .members(&["nodeSelector"])
        .into_iter()
        .flat_map(Map::iter)
    {
        if let Some((_, since, newer)) = OLD_LABELS.iter().find(|(old, ..)| *old == key) {
            let place = spec_path.child("nodeSelector").key(key);
            found.push(format!(
                "{place}: deprecated since {since}; use \"{newer}\" instead"
            ));
        }
    }
    for (index, volume) in spec.list(&["volumes"]).iter().enumerate() {
        for (source, fate) in DEAD_VOLUMES {
            if volume.has(&[source]) {
                let place = spec_path.child("volumes").index(index).child(source);
                found.push(format!("{place}: {fate}"));
            }
        }
    }
    for (list, member) in [("hostAliases", "ip"), ("imagePullSecrets", "name")] {
        let items = spec.list(&[list]);
        let mut seen: HashSet<&str> = HashSet::new();
        for (index, item) in items.iter().enumerate() {
            let text = item.text(&[member]);
            if !seen.insert(text) {
                let place = spec_path.child(list).index(index).child(member);
                found.push(format!("{place}: duplicate {member} {text:?}"));
            }
        }
    }
    for (index, secret) in spec.list(&["imagePullSecrets"]).iter().enumerate() {
        if secret.text(&["name"]).is_empty() {
            let place = spec_path
                .child("imagePullSecrets")
                .index(index)
                .child("name");
            found.push(format!("{place}: invalid empty name \"\""));
        }
    }
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for (index, container) in spec.list(&[list]).iter().enumerate() {
            let place = spec_path.child(list).index(index);
            fractions(container, &place, found);
            hidden_variables(container, &place, found);
            repeated_ports(container, &place, found);
            found.truncate(MAX_WARNINGS);
        }
    }
}

/// Renamed node labels.
const OLD_LABELS: [(&str, &str, &str); 5] = [
    ("beta.kubernetes.io/arch", "v1.14", "kubernetes.io/arch"),
    ("beta.kubernetes.io/os", "v1.14", "kubernetes.io/os"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "v1.17",
        "topology.kubernetes.io/region",
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "v1.17",
        "topology.kubernetes.io/zone",
    ),
    (
        "beta.kubernetes.io/instance-type",
        "v1.17",
        "node.kubernetes.io/instance-type",
    ),
];

/// Warns about duplicate ports.
fn repeated_ports(container: &Value, place: &FieldPath, found: &mut Vec<String>) {
    let mut firsts = HashMap::new();
    for (index, port) in container.list(&["ports"]).iter().enumerate() {
        let key = (
            port.int(&["containerPort"]),
            port.text(&["protocol"]),
            port.int(&["hostPort"]),
        );
        match firsts.entry(key) {
            Entry::Vacant(place) => drop(place.insert(index)),
            Entry::Occupied(first) if found.len() < MAX_WARNINGS => {
                let ports = place.child("ports");
                let (again, first) = (ports.index(index), ports.index(*first.get()));
                found.push(format!("{again}: duplicate port definition with {first}"));
            }
            Entry::Occupied(_) => return,
        }
    }
}

/// Volume types that are no longer supported.
const DEAD_VOLUMES: [(&str, &str); 9] = [
    (
        "photonPersistentDisk",
        "deprecated in v1.11, non-functional in v1.16+",
    ),
    (
        "gitRepo",
        "deprecated in v1.11, and disabled by default in v1.33+",
    ),
    ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

/// Warns about fractional bytes.
fn fractions(container: &Value, place: &FieldPath, found: &mut Vec<String>) {
    for resource in ["memory", "ephemeral-storage"] {
        for list in ["limits", "requests"] {
            let text = container.text(&["resources", list, resource]);
            let part = Quantity::parse(text).is_ok_and(|amount| amount.as_i64().is_none());
            if part {
                let place = place.child("resources").child(list).key(resource);
                found.push(format!(
                    "{place}: fractional byte value {text:?} is invalid, must be an integer"
                ));
            }
        }
    }
}

/// Warns about duplicate variables, unless the second one refers to the first.
fn hidden_variables(container: &Value, place: &FieldPath, found: &mut Vec<String>) {
    let variables = container.list(&["env"]);
    let mut seen: HashSet<&str> = HashSet::new();
    for (index, variable) in variables.iter().enumerate() {
        let name = variable.text(&["name"]);
        if seen.insert(name) {
            continue;
        }
        let reference = format!("$({name})");
        let value = variable.text(&["value"]);
        let builds_on = value.contains(&reference) && value != reference;
        if variable.has(&["valueFrom"]) || !builds_on {
            let place = place.child("env").index(index);
            found.push(format!(
                "{place}: hides previous definition of {name:?}, which may be dropped when using apply"
            ));
        }
    }
}

/// Returns warnings about a service.
pub(super) fn service(new: &Object, _old: Option<&Object>) -> Vec<String> {
    const HINTS: &str = "service.kubernetes.io/topology-aware-hints";
    let spec = new.get("spec").unwrap_or(&Value::Null);
    let ty = spec.text(&["type"]);
    let headless = spec.text(&["clusterIP"]) == "None";
    let external = !spec.list(&["externalIPs"]).is_empty();
    let mut found = Vec::new();
    let mut warn = |when: bool, text: &str| {
        if when {
            found.push(text.to_owned());
        }
    };
    warn(
        new.annotation(HINTS).is_some(),
        "annotation service.kubernetes.io/topology-aware-hints is deprecated, please use service.kubernetes.io/topology-mode instead",
    );
    warn(
        headless && !spec.text(&["loadBalancerIP"]).is_empty(),
        "spec.loadBalancerIP is ignored for headless services",
    );
    warn(
        headless && external,
        "spec.externalIPs is ignored for headless services",
    );
    warn(
        headless && spec.text(&["sessionAffinity"]) != "None",
        "spec.SessionAffinity is ignored for headless services",
    );
    warn(
        external && !headless && ty != "ExternalName",
        "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
    );
    warn(
        external && ty == "ExternalName",
        "spec.externalIPs is ignored when spec.type is \"ExternalName\"",
    );
    warn(
        ty != "ExternalName" && !spec.text(&["externalName"]).is_empty(),
        "spec.externalName is ignored when spec.type is not \"ExternalName\"",
    );
    warn(
        spec.text(&["trafficDistribution"]) == "PreferClose",
        "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"",
    );
    found
}

/// Returns warnings about an ingress with the deprecated class annotation.
pub(super) fn ingress(new: &Object, old: Option<&Object>) -> Vec<String> {
    const OLD: &str = "kubernetes.io/ingress.class";
    let named = new.value().has(&["spec", "ingressClassName"]);
    if old.is_none() && !named && new.annotation(OLD).is_some() {
        return vec![format!(
            "annotation {OLD:?} is deprecated, please use 'spec.ingressClassName' instead"
        )];
    }
    Vec::new()
}

/// Returns a warning about the deprecated class annotation.
fn old_class(new: &Object) -> Option<String> {
    const OLD: &str = "volume.beta.kubernetes.io/storage-class";
    new.annotation(OLD).map(|_| {
        format!("metadata.annotations[{OLD}]: deprecated since v1.8; use \"storageClassName\" attribute instead")
    })
}

/// Returns warnings about a claim.
pub(super) fn persistent_volume_claim(new: &Object, _old: Option<&Object>) -> Vec<String> {
    let mut found: Vec<String> = old_class(new).into_iter().collect();
    for list in ["requests", "limits"] {
        let text = new.value().text(&["spec", "resources", list, "storage"]);
        if Quantity::parse(text).is_ok_and(|amount| amount.as_i64().is_none()) {
            let place = path(&["spec", "resources", list]).key("storage");
            found.push(format!(
                "{place}: fractional byte value {text:?} is invalid, must be an integer"
            ));
        }
    }
    found
}

/// Returns warnings about a volume with an unsupported source.
pub(super) fn persistent_volume(new: &Object, _old: Option<&Object>) -> Vec<String> {
    let spec = new.get("spec").unwrap_or(&Value::Null);
    let mut found: Vec<String> = old_class(new).into_iter().collect();
    let dead = DEAD_VOLUMES
        .iter()
        .filter(|(source, _)| spec.has(&[source]))
        .map(|(source, fate)| format!("spec.{source}: {fate}"));
    found.extend(dead);
    if spec.text(&["persistentVolumeReclaimPolicy"]) == "Recycle" {
        found.push(
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning."
                .to_owned(),
        );
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use bareboat_api::value;

    #[test]
    fn a_pod_with_deprecated_or_suspicious_fields_gets_warnings() {
        let object = Object::try_from(value!({"metadata": {"name": "a.b"}, "spec": {
            "volumes": [{"name": "g", "gitRepo": {}}],
            "containers": [{"name": "c", "resources": {"limits": {"memory": "1500m"}},
                "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}, {"name": "A", "value": "$(A)3"}]}]}}))
        .expect("an object");
        assert_eq!(
            pod(&object, None),
            [
                "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [must not contain dots]",
                "spec.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+",
                "spec.containers[0].resources.limits[memory]: fractional byte value \"1500m\" is invalid, must be an integer",
                "spec.containers[0].env[1]: hides previous definition of \"A\", which may be dropped when using apply",
            ]
        );
        assert!(pod(&object, Some(&object)).is_empty());
    }
}
