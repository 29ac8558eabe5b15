//! Validates the spec of pods and pod templates.

mod host;

use super::affinity;
use super::amounts::{Receiver, amount_of, container_resource_name, requirements};
use super::check::{Errors, between, name, one_of, required, required_label, required_one_of};
use super::container::{self, Role, Surroundings};
use super::volume_source;
use super::volumes::validate_claim;
use crate::reach::Reach;
use bareboat_api::metadata::{validate_annotations, validate_labels};
use bareboat_api::{FieldError, FieldPath, Map, Value, names};
use std::cell::LazyCell;
use std::collections::{HashMap, HashSet};

/// Validates the spec of a pod.
pub(super) fn validate(spec: &Value, path: &FieldPath, wrong: &mut Errors) {
    let volumes = volumes(spec, &path.child("volumes"), wrong);
    let claims = spec.list(&["resourceClaims"]).iter();
    let around = Surroundings {
        volumes,
        claims: claims
            .map(|claim| claim.text(&["name"]))
            .filter(|name| !name.is_empty())
            .collect(),
        grace: spec.int(&["terminationGracePeriodSeconds"]).unwrap_or(0),
        restarts: spec.text(&["restartPolicy"]),
    };
    device_claims(spec, &path.child("resourceClaims"), wrong);
    containers(spec, &around, path, wrong);
    if let Some(resources) = spec.at(&["resources"]).filter(|value| !value.is_null()) {
        let place = path.child("resources");
        requirements(resources, Receiver::Pod, &around.claims, &place, wrong);
    }
    required_one_of(
        spec.text(&["restartPolicy"]),
        &["Always", "OnFailure", "Never"],
        path.child("restartPolicy"),
        wrong,
    );
    validate_labels(
        spec.at(&["nodeSelector"]),
        &path.child("nodeSelector"),
        wrong,
    );
    host::validate(spec, path, wrong);
    for member in [
        "serviceAccountName",
        "nodeName",
        "priorityClassName",
        "runtimeClassName",
    ] {
        let text = spec.text(&[member]);
        if !text.is_empty() {
            name(text, names::dns1123_subdomain, path.child(member), wrong);
        }
    }
    between(
        spec.int(&["activeDeadlineSeconds"]),
        (1, i64::from(i32::MAX)),
        path.child("activeDeadlineSeconds"),
        wrong,
    );
    if let Some(wishes) = spec.at(&["affinity"]).filter(|value| !value.is_null()) {
        affinity::affinity(wishes, &path.child("affinity"), wrong);
    }
    tolerations(
        spec.list(&["tolerations"]),
        &path.child("tolerations"),
        wrong,
    );
    affinity::spread(spec, &path.child("topologySpreadConstraints"), wrong);
    gates(spec, path, wrong);
    // Upstream validates the overhead like limits.
    let overhead = spec.members(&["overhead"]).into_iter().flat_map(Map::iter);
    for (resource, value) in overhead {
        let place = path.child("overhead").child("limits").key(resource);
        container_resource_name(resource, &place, wrong);
        amount_of(resource, value, &place, wrong);
    }
    let preemption = spec.text(&["preemptionPolicy"]);
    if !preemption.is_empty() {
        one_of(
            preemption,
            &["PreemptLowerPriority", "Never"],
            path.child("preemptionPolicy"),
            wrong,
        );
    }
}

/// Validates readiness and scheduling gates.
fn gates(spec: &Value, path: &FieldPath, wrong: &mut Errors) {
    for (index, gate) in spec.list(&["readinessGates"]).iter().enumerate() {
        let place = path.child("readinessGates").index(index);
        let condition = gate.text(&["conditionType"]);
        let place = place.child("conditionType");
        name(condition, names::qualified_name, place, wrong);
    }
    let mut seen: HashSet<&str> = HashSet::new();
    for (index, gate) in spec.list(&["schedulingGates"]).iter().enumerate() {
        let place = path.child("schedulingGates").index(index);
        let text = gate.text(&["name"]);
        name(text, names::qualified_name, place.clone(), wrong);
        if !seen.insert(text) {
            wrong.push(FieldError::duplicate(place, text));
        }
    }
}

/// Validates resource claims: names are unique.
fn device_claims(spec: &Value, path: &FieldPath, wrong: &mut Errors) {
    const SOURCES: [&str; 2] = ["resourceClaimName", "resourceClaimTemplateName"];
    let mut seen: HashSet<&str> = HashSet::new();
    for (index, claim) in spec.list(&["resourceClaims"]).iter().enumerate() {
        let path = path.index(index);
        let text = claim.text(&["name"]);
        if required(text, path.child("name"), wrong) {
            if seen.insert(text) {
                name(text, names::dns1123_label, path.child("name"), wrong);
            } else {
                wrong.push(FieldError::duplicate(path.child("name"), text));
            }
        }
        let given: Vec<&str> = SOURCES
            .into_iter()
            .filter(|member| claim.has(&[member]))
            .collect();
        let complaint = match given.len() {
            0 => Some("must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"),
            1 => None,
            _ => Some(
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
            ),
        };
        if let Some(complaint) = complaint {
            wrong.push(FieldError::invalid(path.clone(), claim.clone(), complaint));
        }
        for member in given {
            let place = path.child(member);
            name(
                claim.text(&[member]),
                names::dns1123_subdomain,
                place,
                wrong,
            );
        }
    }
}

/// Validates a pod template: labels, annotations and spec.
pub(super) fn validate_template(template: &Value, path: &FieldPath, wrong: &mut Errors) {
    // Upstream reports these paths without `metadata`.
    validate_labels(
        template.at(&["metadata", "labels"]),
        &path.child("labels"),
        wrong,
    );
    validate_annotations(
        template.at(&["metadata", "annotations"]),
        &path.child("annotations"),
        wrong,
    );
    seccomp_annotations(template, &path.child("annotations"), wrong);
    let empty = Value::object();
    let spec = template.at(&["spec"]).unwrap_or(&empty);
    validate(spec, &path.child("spec"), wrong);
    if !spec.list(&["ephemeralContainers"]).is_empty() {
        wrong.push(FieldError::forbidden(
            path.child("spec").child("ephemeralContainers"),
            "ephemeral containers not allowed in pod template",
        ));
    }
}

/// Validates deprecated seccomp annotations.
pub(super) fn seccomp_annotations(pod: &Value, path: &FieldPath, wrong: &mut Errors) {
    const OF_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
    const OF_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
    let all = pod.members(&["metadata", "annotations"]);
    for (key, profile) in all.into_iter().flat_map(Map::iter) {
        if key != OF_POD && !key.starts_with(OF_CONTAINER) {
            continue;
        }
        let path = path.child(key);
        match profile.as_str().unwrap_or("") {
            "runtime/default" | "docker/default" | "unconfined" => {}
            text => match text.strip_prefix("localhost/") {
                Some(rest) => container::descending(rest, &path, wrong),
                None => {
                    let detail = "must be a valid seccomp profile";
                    wrong.push(FieldError::invalid(path, text, detail));
                }
            },
        }
    }
}

fn containers(spec: &Value, around: &Surroundings<'_>, path: &FieldPath, wrong: &mut Errors) {
    let main = spec.list(&["containers"]);
    if main.is_empty() {
        wrong.push(FieldError::required(path.child("containers"), ""));
    }
    let targets = LazyCell::new(|| main_names(spec));
    let mut seen: HashSet<&str> = HashSet::new();
    for (list, role) in [
        ("containers", Role::Main),
        ("initContainers", Role::Init),
        ("ephemeralContainers", Role::Ephemeral),
    ] {
        for (index, entry) in spec.list(&[list]).iter().enumerate() {
            let path = path.child(list).index(index);
            container::container(entry, role, around, &path, wrong);
            if role == Role::Ephemeral {
                ephemeral(&targets, entry, &path, wrong);
            }
            let text = entry.text(&["name"]);
            if seen.contains(&text) {
                wrong.push(FieldError::duplicate(path.child("name"), text));
            } else if !text.is_empty() {
                seen.insert(text);
            }
        }
    }
}

/// Returns the names of containers and init containers.
pub(super) fn main_names(spec: &Value) -> HashSet<&str> {
    let lists = ["containers", "initContainers"].into_iter();
    let all = lists.flat_map(|list| spec.list(&[list]));
    all.map(|container| container.text(&["name"])).collect()
}

/// Validates an ephemeral container.
fn ephemeral(targets: &HashSet<&str>, entry: &Value, path: &FieldPath, wrong: &mut Errors) {
    let target = entry.text(&["targetContainerName"]);
    if !target.is_empty() && !targets.contains(target) {
        let place = path.child("targetContainerName");
        wrong.push(FieldError::not_found(place, target));
    }
    for member in ["ports", "resizePolicy", "restartPolicy"] {
        if entry.has(&[member]) {
            let detail = "cannot be set for an Ephemeral Container";
            wrong.push(FieldError::forbidden(path.child(member), detail));
        }
    }
    let resources = entry.members(&["resources"]);
    if resources.is_some_and(|resources| !resources.is_empty()) {
        let detail = "cannot be set for an Ephemeral Container";
        wrong.push(FieldError::forbidden(path.child("resources"), detail));
    }
}

/// Validates volumes and returns the valid ones by name.
fn volumes<'a>(
    spec: &'a Value,
    path: &FieldPath,
    wrong: &mut Errors,
) -> HashMap<&'a str, &'a Value> {
    let mut good: HashMap<&str, &Value> = HashMap::new();
    let empty = Map::new();
    for (index, volume) in spec.list(&["volumes"]).iter().enumerate() {
        let path = path.index(index);
        let mut found = Errors::default();
        volume_source::source(volume.as_object().unwrap_or(&empty), &path, &mut found);
        if let Some(claim) = volume.at(&["ephemeral", "volumeClaimTemplate"]) {
            let place = path
                .child("ephemeral")
                .child("volumeClaimTemplate")
                .child("spec");
            validate_claim(
                claim.at(&["spec"]).unwrap_or(&Value::Null),
                &place,
                &mut found,
            );
        }
        let text = volume.text(&["name"]);
        required_label(text, path.child("name"), &mut found);
        if good.contains_key(text) {
            found.push(FieldError::duplicate(path.child("name"), text));
        }
        if found.is_empty() {
            good.insert(text, volume);
        }
        wrong.extend(found.into_list());
    }
    good
}

/// Validates tolerations.
pub(super) fn tolerations(list: &[Value], path: &FieldPath, wrong: &mut Errors) {
    for (index, toleration) in list.iter().enumerate() {
        let path = path.index(index);
        let key = toleration.text(&["key"]);
        let operator = toleration.text(&["operator"]);
        let value = toleration.text(&["value"]);
        if key.is_empty() {
            if operator != "Exists" {
                wrong.push(FieldError::invalid(
                    path.child("operator"),
                    operator,
                    "operator must be Exists when `key` is empty, which means \"match all values and all keys\"",
                ));
            }
        } else {
            name(key, names::qualified_name, path.child("key"), wrong);
        }
        if toleration.has(&["tolerationSeconds"]) && toleration.text(&["effect"]) != "NoExecute" {
            wrong.push(FieldError::invalid(
                path.child("effect"),
                toleration.text(&["effect"]),
                "effect must be 'NoExecute' when `tolerationSeconds` is set",
            ));
        }
        match operator {
            "Equal" | "" => name(value, names::label_value, path.child("operator"), wrong),
            "Exists" => {
                if !value.is_empty() {
                    wrong.push(FieldError::invalid(
                        path.child("operator"),
                        value,
                        "value must be empty when `operator` is 'Exists'",
                    ));
                }
            }
            // These operators are known, but their feature gate is off.
            "Lt" | "Gt" => wrong.push(FieldError::not_supported(
                path.child("operator"),
                operator,
                ["Equal", "Exists", "Lt", "Gt"],
            )),
            other => one_of(other, &["Equal", "Exists"], path.child("operator"), wrong),
        }
        let effect = toleration.text(&["effect"]);
        if !effect.is_empty() {
            one_of(
                effect,
                &["NoSchedule", "PreferNoSchedule", "NoExecute"],
                path.child("effect"),
                wrong,
            );
        }
    }
}
