//! What is not wrong enough to refuse: the warnings writers of pods, services and ingresses get.

use super::check::path;
use crate::reach::Reach;
use bareboat_api::quantity::Quantity;
use bareboat_api::{FieldPath, Object, Value, names};
use std::collections::HashSet;

/// Warns about the template of a workload at `spec.template`, and about a name that pods inherit.
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

/// Warns about a cron job's template.
pub(super) fn cron_job(new: &Object, old: Option<&Object>) -> Vec<String> {
    template(new, old, &["spec", "jobTemplate", "spec", "template"])
}

/// Warns about a template that changed.
pub(super) fn template(new: &Object, old: Option<&Object>, at: &[&str]) -> Vec<String> {
    let Some(template) = new.at(at) else {
        return Vec::new();
    };
    if old.is_some_and(|old| old.at(at) == Some(template)) {
        return Vec::new();
    }
    let mut found = Vec::new();
    pod_like(template, &path(at), &mut found);
    found
}

/// Warns about a pod.
pub(super) fn pod(new: &Object, old: Option<&Object>) -> Vec<String> {
    let mut found = Vec::new();
    if old.is_some_and(|old| old.get("spec") == new.get("spec")) {
        return found;
    }
    if old.is_none() {
        found.extend(name(
            new,
            "this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended",
        ));
    }
    pod_like(new.value(), &FieldPath::root(), &mut found);
    found
}

fn name(object: &Object, why: &str) -> Option<String> {
    let complaints = names::dns1123_label(object.name());
    (!complaints.is_empty() && !object.name().is_empty())
        .then(|| format!("metadata.name: {why}: [{}]", complaints.join(" ")))
}

/// The most warnings one write is told.
const MAX_WARNINGS: usize = 100;

/// Warns about anything with the metadata and spec of a pod.
fn pod_like(pod: &Value, at: &FieldPath, found: &mut Vec<String>) {
    let spec_path = at.child("spec");
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
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for (index, container) in spec.list(&[list]).iter().enumerate() {
            let place = spec_path.child(list).index(index);
            fractions(container, &place, found);
            hidden_variables(container, &place, found);
            found.truncate(MAX_WARNINGS);
        }
    }
}

/// Kinds of volumes that are no longer provided.
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

/// A part of a byte cannot be had.
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

/// A variable that is defined twice is fine only if the second one builds on the first.
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

/// Warns about a service.
pub(super) fn service(new: &Object, old: Option<&Object>) -> Vec<String> {
    if old.is_some_and(|old| old.get("spec") == new.get("spec")) {
        return Vec::new();
    }
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

/// Warns about an ingress that names its class the old way.
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

/// Warns about a volume whose source is no longer provided.
pub(super) fn persistent_volume(new: &Object, _old: Option<&Object>) -> Vec<String> {
    let spec = new.get("spec").unwrap_or(&Value::Null);
    let mut found: Vec<String> = DEAD_VOLUMES
        .iter()
        .filter(|(source, _)| spec.has(&[source]))
        .map(|(source, fate)| format!("spec.{source}: {fate}"))
        .collect();
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
    fn a_pod_is_warned_about_what_it_may_regret() {
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
