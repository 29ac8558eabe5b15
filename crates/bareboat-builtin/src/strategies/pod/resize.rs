//! In-place pod resize: which resources can change, and for which pods.
// Upstream: pkg/apis/core/validation, ValidatePodResize.

use super::super::check::{Errors, path};
use super::{keep_metadata, quality, spec_of};
use crate::reach::{Reach, copy_member};
use crate::resources::Amounts;
use bareboat_api::{FieldError, FieldPath, Object, Value};

const LISTS: [&str; 2] = ["containers", "initContainers"];

/// Takes resources from the request and everything else from the stored pod.
pub(super) fn prepare(new: &mut Object, old: &Object) {
    let (after, before) = (spec_of(new), spec_of(old));
    // Validation rejects a resize that adds or removes containers.
    if LISTS
        .iter()
        .any(|list| after.list(&[list]).len() != before.list(&[list]).len())
    {
        return;
    }
    let wanted = LISTS.map(|list| merged(after.list(&[list]), before.list(&[list])));
    let resources = after.at(&["resources"]).cloned();
    copy_member(new.map_mut(), old.map(), "spec");
    copy_member(new.map_mut(), old.map(), "status");
    keep_metadata(new, old);
    let spec = new.map_mut().object_mut("spec");
    for (list, containers) in LISTS.into_iter().zip(wanted) {
        if !containers.is_empty() {
            spec.insert(list, Value::Array(containers));
        }
    }
    match resources {
        Some(resources) => spec.insert("resources", resources),
        None => spec.remove("resources"),
    };
}

/// Returns the old containers with the new resources; the new containers if names differ.
fn merged(after: &[Value], before: &[Value]) -> Vec<Value> {
    let name = |container: &Value| container.text(&["name"]).to_owned();
    if after
        .iter()
        .zip(before)
        .any(|(after, before)| name(after) != name(before))
    {
        return after.to_vec();
    }
    let pairs = after.iter().zip(before);
    let merge = |(after, before): (&Value, &Value)| {
        let mut merged = before.clone();
        if let (Some(members), Some(after)) = (merged.as_object_mut(), after.as_object()) {
            for member in ["resources", "resizePolicy"] {
                copy_member(members, after, member);
            }
        }
        merged
    };
    pairs.map(merge).collect()
}

/// Validates a resize. The spec itself was validated before.
pub(super) fn validate(new: &Object, old: &Object, wrong: &mut Errors) {
    let refusal = match () {
        () if old.annotation(super::MIRROR).is_some() => Some("static pods cannot be resized"),
        () if old.value().text(&["spec", "os", "name"]) == "windows" => {
            Some("windows pods cannot be resized")
        }
        () => None,
    };
    if let Some(refusal) = refusal {
        *wrong = Errors::default();
        wrong.push(FieldError::forbidden(FieldPath::nameless(), refusal));
        return;
    }
    let class = match old.value().text(&["status", "qosClass"]) {
        "" => quality(old.value()),
        class => class,
    };
    if quality(new.value()) != class {
        let detail = "Pod QOS Class may not change as a result of resizing";
        wrong.push(FieldError::invalid(path(&["spec"]), class, detail));
    }
    let mut forbid = |detail: &str| {
        wrong.push(FieldError::forbidden(path(&["spec"]), detail));
    };
    let statuses = old.value().list(&["status", "containerStatuses"]);
    let running = statuses
        .iter()
        .find(|status| status.has(&["state", "running"]));
    if running.is_some_and(|status| !status.has(&["resources"])) {
        forbid("Pod running on node without support for resize");
    }
    let claims = ["status", "nodeAllocatableResourceClaimStatuses"];
    if !old.value().list(&claims).is_empty() {
        forbid("pods with node allocatable resource claims cannot be resized");
    }
    let (after, before) = (spec_of(new), spec_of(old));
    as_a_whole(after, before, wrong);
    if !same_containers(after, before, wrong) {
        return;
    }
    for list in LISTS {
        let pairs = after.list(&[list]).iter().zip(before.list(&[list]));
        for (index, (after, before)) in pairs.enumerate() {
            let place = path(&["spec", list]).index(index);
            nothing_removed(after, before, &place.child("resources"), wrong);
            of_container(after, before, list, &place, wrong);
        }
    }
}

/// Validates pod-level resources.
fn as_a_whole(after: &Value, before: &Value, wrong: &mut Errors) {
    let (now, then) = (after.at(&["resources"]), before.at(&["resources"]));
    let given = |resources: Option<&Value>| {
        let has = |list| {
            resources
                .and_then(|all| all.members(&[list]))
                .is_some_and(|map| !map.is_empty())
        };
        has("requests") || has("limits")
    };
    if !given(now) && !given(then) {
        return;
    }
    let place = path(&["spec", "resources"]);
    if then.is_some() && now.is_none() {
        let detail = "pod-level resources cannot be removed";
        wrong.push(FieldError::forbidden(place, detail));
        return;
    }
    let (now, then) = (now.unwrap_or(&Value::Null), then.unwrap_or(&Value::Null));
    for (list, detail) in [
        ("requests", "pod-level resource requests cannot be removed"),
        ("limits", "pod-level resource limits cannot be removed"),
    ] {
        if is_removed(now, then, list) {
            wrong.push(FieldError::forbidden(place.child(list), detail));
        }
    }
    if others(now) != others(then) || now.list(&["claims"]) != then.list(&["claims"]) {
        let detail = "only cpu and memory resources are mutable at pod-level";
        wrong.push(FieldError::forbidden(path(&["spec"]), detail));
    }
}

/// Returns whether the containers are the same, in the same order.
fn same_containers(after: &Value, before: &Value, wrong: &mut Errors) -> bool {
    let mut same = true;
    for list in LISTS {
        let (after, before) = (after.list(&[list]), before.list(&[list]));
        let place = path(&["spec", list]);
        if after.len() != before.len() {
            same = false;
            let detail = format!("{list} may not be added or removed on resize");
            wrong.push(FieldError::forbidden(place, detail));
            continue;
        }
        for (index, (after, before)) in after.iter().zip(before).enumerate() {
            if after.text(&["name"]) != before.text(&["name"]) {
                same = false;
                let detail = format!("{list} may not be renamed or reordered on resize");
                let place = place.index(index).child("name");
                wrong.push(FieldError::forbidden(place, detail));
            }
        }
    }
    same
}

fn nothing_removed(after: &Value, before: &Value, place: &FieldPath, wrong: &mut Errors) {
    let (now, then) = (resources(after), resources(before));
    for (list, detail) in [
        ("requests", "resource requests cannot be removed"),
        ("limits", "resource limits cannot be removed"),
    ] {
        if is_removed(now, then, list) {
            wrong.push(FieldError::forbidden(place.child(list), detail));
        }
    }
}

fn of_container(after: &Value, before: &Value, list: &str, place: &FieldPath, wrong: &mut Errors) {
    let policies = |container: &Value| container.list(&["resizePolicy"]).to_vec();
    let (now, then) = (resources(after), resources(before));
    // Upstream treats claims as a change even if they are equal.
    let other = others(now) != others(then)
        || !then.list(&["claims"]).is_empty()
        || policies(after) != policies(before);
    let (place, detail) = match list {
        "containers" => (path(&["spec"]), "only cpu and memory resources are mutable"),
        _ => (
            place.clone(),
            "only cpu and memory resources for init or sidecar containers are mutable",
        ),
    };
    if other {
        wrong.push(FieldError::forbidden(place.clone(), detail));
    }
    let once = list == "initContainers" && before.text(&["restartPolicy"]) != "Always";
    if once && now != then {
        let restarts = |policy: &&Value| policy.text(&["restartPolicy"]) == "RestartContainer";
        for _ in after.list(&["resizePolicy"]).iter().filter(restarts) {
            let detail = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized";
            wrong.push(FieldError::forbidden(place.clone(), detail));
        }
    }
}

fn resources(container: &Value) -> &Value {
    container.at(&["resources"]).unwrap_or(&Value::Null)
}

/// Returns whether a list lost a resource.
fn is_removed(now: &Value, then: &Value, list: &str) -> bool {
    let Some(then) = then.members(&[list]) else {
        return false;
    };
    let now = now.members(&[list]);
    then.keys()
        .any(|name| now.is_none_or(|now| !now.contains_key(name)))
}

/// Returns all resources that cannot be resized.
fn others(resources: &Value) -> [Amounts; 2] {
    ["requests", "limits"].map(|list| {
        let mut amounts = Amounts::read(resources.members(&[list]));
        amounts.retain(|name, _| !matches!(name, "cpu" | "memory"));
        amounts
    })
}
