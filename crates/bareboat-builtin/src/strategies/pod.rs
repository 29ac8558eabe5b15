//! Pods and PodTemplates.

mod birth;
mod resize;
mod status;

use super::Rules;
use super::check::{Errors, between, path};
use super::pod_spec;
use super::warnings;
use crate::reach::{Reach, copy_member};
use bareboat_api::kind::WriteContext;
use bareboat_api::{FieldError, FieldPath, Map, Object, Value};
use std::collections::{HashMap, HashSet};

/// The annotation of a static pod's mirror.
const MIRROR: &str = "kubernetes.io/config.mirror";

const UPDATABLE: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// Returns the strategy of Pod: the first status of new pods, validation of pods and of each subresource, warnings, the
/// grace period.
pub(crate) fn pod() -> Rules {
    Rules {
        prepare_create: Some(prepare_create),
        prepare_part: Some(prepare_part),
        validate: Some(|pod, wrong| {
            pod_spec::validate(spec_of(pod), &path(&["spec"]), wrong);
            birth::validate(pod, wrong);
        }),
        validate_new: Some(birth::validate_new),
        validate_update: Some(validate_update),
        validate_part: Some(|new, old, part, wrong| match part {
            "ephemeralcontainers" => {
                pod_spec::validate(spec_of(new), &path(&["spec"]), wrong);
                added_only(new, old, wrong);
            }
            "status" => status::validate(new, old, wrong),
            "resize" => {
                pod_spec::validate(spec_of(new), &path(&["spec"]), wrong);
                resize::validate(new, old, wrong);
            }
            _ => {}
        }),
        warnings: Some(warnings::pod),
        grace: Some(grace_seconds),
        ..Rules::default()
    }
}

/// Returns the strategy of PodTemplate: validation and warnings.
pub(crate) fn pod_template() -> Rules {
    Rules::validating(|object, wrong| {
        if let Some(template) = object.get("template") {
            pod_spec::validate_template(template, &path(&["template"]), wrong);
        }
    })
    .warning(|new, old| warnings::template(new, old, &["template"]))
}

/// Returns the grace period of a pod: the requested one, that of its spec, or 30 seconds. A pod that was never
/// scheduled or has ended is deleted immediately.
fn grace_seconds(pod: &Object, requested: Option<i64>) -> i64 {
    let phase = pod.value().text(&["status", "phase"]);
    let scheduled = !pod.value().text(&["spec", "nodeName"]).is_empty();
    if !scheduled || matches!(phase, "Succeeded" | "Failed") {
        return 0;
    }
    let own = pod.at(&["spec", "terminationGracePeriodSeconds"]);
    let seconds = requested.or(own.and_then(Value::as_i64)).unwrap_or(30);
    if seconds < 0 { 1 } else { seconds }
}

fn spec_of(pod: &Object) -> &Value {
    pod.get("spec").unwrap_or(&Value::Null)
}

fn prepare_create(pod: &mut Object, ctx: &WriteContext<'_>) {
    let class = quality(pod.value());
    birth::select_by_own_labels(pod);
    let gated = birth::gated(spec_of(pod), ctx.now);
    // The minimum is one second.
    if spec_of(pod)
        .int(&["terminationGracePeriodSeconds"])
        .is_some_and(|seconds| seconds < 0)
    {
        let spec = pod.map_mut().object_mut("spec");
        spec.insert("terminationGracePeriodSeconds", Value::Int(1));
    }
    let mut status = Map::new();
    status.insert("phase", "Pending".into());
    status.insert("qosClass", class.into());
    if let Some(conditions) = gated {
        status.insert("conditions", conditions);
    }
    pod.map_mut().insert("status", status.into());
}

/// Limits a write to a subresource to the fields of that subresource.
fn prepare_part(new: &mut Object, old: &Object, ctx: &WriteContext<'_>) {
    match ctx.subresource {
        Some("status") => {
            // A status without a QoS class keeps the present one.
            if let Some(class) = old.at(&["status", "qosClass"]).cloned() {
                let status = new.map_mut().object_mut("status");
                if status.get_str("qosClass").unwrap_or("").is_empty() {
                    status.insert("qosClass", class);
                }
            }
        }
        Some("ephemeralcontainers") => {
            let wanted = new.at(&["spec", "ephemeralContainers"]).cloned();
            restore(new, old);
            let spec = new.map_mut().object_mut("spec");
            match wanted {
                Some(wanted) => spec.insert("ephemeralContainers", wanted),
                None => spec.remove("ephemeralContainers"),
            };
        }
        Some("resize") => resize::prepare(new, old),
        _ => {}
    }
}

fn restore(new: &mut Object, old: &Object) {
    copy_member(new.map_mut(), old.map(), "spec");
    copy_member(new.map_mut(), old.map(), "status");
    keep_metadata(new, old);
}

/// Keeps the metadata that writes to a subresource cannot change.
fn keep_metadata(new: &mut Object, old: &Object) {
    for member in ["labels", "annotations", "finalizers", "ownerReferences"] {
        match old.meta(member) {
            Some(value) => new.set_meta(member, value.clone()),
            None => drop(new.remove_meta(member)),
        }
    }
}

/// Ephemeral containers can be added, but not changed or removed.
// Upstream: pkg/apis/core/validation, ValidatePodEphemeralContainersUpdate.
fn added_only(new: &Object, old: &Object, wrong: &mut Errors) {
    if old.annotation(MIRROR).is_some() {
        *wrong = Errors::default();
        let detail = "static pods do not support ephemeral containers";
        wrong.push(FieldError::forbidden(FieldPath::nameless(), detail));
        return;
    }
    let place = path(&["spec", "ephemeralContainers"]);
    let named = |container: &'_ Value| container.text(&["name"]).to_owned();
    let now: HashMap<String, &Value> = spec_of(new)
        .list(&["ephemeralContainers"])
        .iter()
        .map(|container| (named(container), container))
        .collect();
    for container in spec_of(old).list(&["ephemeralContainers"]) {
        let name = named(container);
        let fate = match now.get(&name) {
            None => "removed",
            Some(now) if *now != container => "changed",
            Some(_) => continue,
        };
        let detail = format!("existing ephemeral containers {name:?} may not be {fate}\n");
        wrong.push(FieldError::forbidden(place.clone(), detail));
    }
}

/// Returns the QoS class of a pod, computed from its requests and limits.
// Upstream: pkg/apis/core/helper/qos, ComputePodQOS.
pub(crate) fn quality(pod: &Value) -> &'static str {
    let of_pod = pod.at(&["spec"]).filter(|spec| {
        let given = |list| {
            spec.members(&["resources", list])
                .is_some_and(|map| !map.is_empty())
        };
        given("limits") || given("requests")
    });
    // Pod-level resources, if set, decide.
    let lists = match of_pod {
        Some(_) => &[][..],
        None => &["containers", "initContainers"][..],
    };
    let containers = lists.iter().flat_map(|list| pod.list(&["spec", list]));
    let containers = of_pod.into_iter().chain(containers);
    let (mut any, mut guaranteed) = (false, true);
    for container in containers {
        for resource in ["cpu", "memory"] {
            let amount = |list| match container.text(&["resources", list, resource]) {
                "" | "0" => None,
                text => Some(text.to_owned()),
            };
            let (limit, request) = (amount("limits"), amount("requests"));
            any |= limit.is_some() || request.is_some();
            guaranteed &= limit.is_some() && (request.is_none() || request == limit);
        }
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

fn validate_update(new: &Object, old: &Object, wrong: &mut Errors) {
    let (after, before) = (spec_of(new), spec_of(old));
    if after == before {
        return;
    }
    for list in ["containers", "initContainers"] {
        if after.list(&[list]).len() != before.list(&[list]).len() {
            wrong.push(FieldError::forbidden(
                path(&["spec", list]),
                "pod updates may not add or remove containers",
            ));
            return;
        }
    }
    if !deadline(after, before, wrong) {
        return;
    }
    // `tolerationSeconds` may change; tolerations may only be added.
    let without_time = |spec: &Value| -> HashSet<String> {
        let tolerations = spec.list(&["tolerations"]).iter();
        let bare = tolerations.map(|toleration| {
            let mut bare = toleration.clone();
            bare.make_object().remove("tolerationSeconds");
            bare.to_string()
        });
        bare.collect()
    };
    if !without_time(before).is_subset(&without_time(after)) {
        wrong.push(FieldError::forbidden(
            path(&["spec", "tolerations"]),
            "existing toleration can not be modified except its tolerationSeconds",
        ));
    }
    let gate_name = |gate: &Value| gate.text(&["name"]).to_owned();
    let gates: HashSet<String> = before
        .list(&["schedulingGates"])
        .iter()
        .map(gate_name)
        .collect();
    for (index, gate) in after.list(&["schedulingGates"]).iter().enumerate() {
        let name = gate.text(&["name"]);
        if !gates.contains(name) {
            wrong.push(FieldError::forbidden(
                path(&["spec", "schedulingGates"])
                    .index(index)
                    .child("name"),
                format!("only deletion is allowed, but found new scheduling gate '{name}'"),
            ));
        }
    }
    if comparable(after, before) != *before {
        wrong.push(FieldError::forbidden(path(&["spec"]), UPDATABLE));
    }
}

/// Validates `activeDeadlineSeconds`; returns whether to continue.
fn deadline(after: &Value, before: &Value, wrong: &mut Errors) -> bool {
    const MEMBER: &str = "activeDeadlineSeconds";
    let place = path(&["spec", MEMBER]);
    let range = (0, i64::from(i32::MAX));
    match (after.int(&[MEMBER]), before.int(&[MEMBER])) {
        (Some(new), _) if !(range.0..=range.1).contains(&new) => {
            between(Some(new), range, place, wrong);
            return false;
        }
        (Some(new), Some(old)) if new > old => {
            let detail = "must be less than or equal to previous value";
            wrong.push(FieldError::invalid(place, new, detail));
            return false;
        }
        (Some(_), _) => {}
        (None, Some(_)) => wrong.push(FieldError::invalid(
            place,
            Value::Null,
            "must not update from a positive integer to nil value",
        )),
        (None, None) => {}
    }
    true
}

/// Returns the new spec with all mutable fields reset to their old values.
fn comparable(after: &Value, before: &Value) -> Value {
    let mut spec = after.clone();
    let Value::Object(map) = &mut spec else {
        return spec;
    };
    let old = before.as_object().cloned().unwrap_or_default();
    for list in ["containers", "initContainers"] {
        let Some(containers) = map.get_mut(list).and_then(Value::as_array_mut) else {
            continue;
        };
        for (container, old) in containers.iter_mut().zip(before.list(&[list])) {
            if let (Some(container), Some(old)) = (container.as_object_mut(), old.as_object()) {
                copy_member(container, old, "image");
            }
        }
    }
    for member in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
        copy_member(map, &old, member);
    }
    let negative = before
        .int(&["terminationGracePeriodSeconds"])
        .is_some_and(|seconds| seconds < 0);
    if negative && after.int(&["terminationGracePeriodSeconds"]) == Some(1) {
        copy_member(map, &old, "terminationGracePeriodSeconds");
    }
    // The node selection of a gated pod may become narrower.
    if !before.list(&["schedulingGates"]).is_empty() {
        for member in ["nodeSelector", "affinity"] {
            copy_member(map, &old, member);
        }
    }
    spec
}
