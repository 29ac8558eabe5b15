//! Preparation of new pods, and checks that pod templates do not have.

use super::super::check::{Errors, path};
use super::MIRROR;
use crate::reach::Reach;
use bareboat_api::{FieldError, Map, Object, Value, value};
use std::cell::LazyCell;
use std::collections::HashSet;

/// Prefix of deprecated AppArmor annotations, which fields replaced.
const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

/// Resolves label keys in affinity and topology spread from the pod's own labels.
pub(super) fn select_by_own_labels(pod: &mut Object) {
    let labels = pod
        .value()
        .members(&["metadata", "labels"])
        .cloned()
        .unwrap_or_default();
    let Some(spec) = pod.map_mut().get_mut("spec") else {
        return;
    };
    for constraint in list_mut(spec, &["topologySpreadConstraints"]) {
        add_terms(constraint, &labels);
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let required = "requiredDuringSchedulingIgnoredDuringExecution";
        for term in list_mut(spec, &["affinity", kind, required]) {
            add_terms(term, &labels);
        }
        let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
        for term in list_mut(spec, &["affinity", kind, preferred]) {
            if let Some(term) = term.at_mut(&["podAffinityTerm"]) {
                add_terms(term, &labels);
            }
        }
    }
}

fn list_mut<'a>(value: &'a mut Value, at: &[&str]) -> &'a mut [Value] {
    match value.at_mut(at) {
        Some(Value::Array(items)) => items,
        _ => &mut [],
    }
}

/// Converts label keys into selector requirements.
fn add_terms(term: &mut Value, labels: &Map) {
    let mut added = Vec::new();
    for (member, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
        for key in term.list(&[member]).iter().filter_map(Value::as_str) {
            if let Some(found) = labels.get(key) {
                let found = found.clone();
                added.push(value!({"key": key, "operator": operator, "values": [(found)]}));
            }
        }
    }
    let selector = term
        .at_mut(&["labelSelector"])
        .and_then(Value::as_object_mut);
    if let Some(selector) = selector.filter(|_| !added.is_empty()) {
        let terms = selector.entry_or_insert_with("matchExpressions", || Value::Array(Vec::new()));
        if terms.is_null() {
            *terms = Value::Array(Vec::new());
        }
        if let Value::Array(terms) = terms {
            terms.extend(added);
        }
    }
}

/// Returns the condition of a pod with scheduling gates.
pub(super) fn gated(spec: &Value, now: &str) -> Option<Value> {
    if spec.list(&["schedulingGates"]).is_empty() {
        return None;
    }
    Some(value!([{
        "type": "PodScheduled",
        "status": "False",
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
        "lastProbeTime": null,
        "lastTransitionTime": now,
    }]))
}

/// Validates fields of pods that pod templates are not checked for.
pub(super) fn validate(pod: &Object, wrong: &mut Errors) {
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    host_ports(spec, wrong);
    if spec.text(&["serviceAccountName"]).is_empty() {
        tokens(spec, wrong);
    }
    annotations(pod, wrong);
}

/// Validates fields of new pods only.
pub(super) fn validate_new(pod: &Object, wrong: &mut Errors) {
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    if !spec.list(&["ephemeralContainers"]).is_empty() {
        let place = path(&["spec", "ephemeralContainers"]);
        wrong.push(FieldError::forbidden(place, "cannot be set on create"));
    }
    let gates = spec.list(&["schedulingGates"]);
    if !spec.text(&["nodeName"]).is_empty() && !gates.is_empty() {
        let detail = "cannot be set until all schedulingGates have been cleared";
        wrong.push(FieldError::forbidden(path(&["spec", "nodeName"]), detail));
    }
}

/// Validates that host ports are unique.
fn host_ports(spec: &Value, wrong: &mut Errors) {
    let mut seen: HashSet<String> = HashSet::new();
    for list in ["containers", "initContainers"] {
        for (index, container) in spec.list(&[list]).iter().enumerate() {
            let place = path(&["spec", list]).index(index).child("ports");
            for (index, port) in container.list(&["ports"]).iter().enumerate() {
                let number = port.int(&["hostPort"]).unwrap_or(0);
                let (protocol, ip) = (port.text(&["protocol"]), port.text(&["hostIP"]));
                let key = format!("{protocol}/{ip}/{number}");
                if number != 0 && !seen.insert(key.clone()) {
                    let place = place.index(index).child("hostPort");
                    wrong.push(FieldError::duplicate(place, key));
                }
            }
        }
    }
}

/// Rejects projected service account tokens in a pod without a service account.
fn tokens(spec: &Value, wrong: &mut Errors) {
    for (index, volume) in spec.list(&["volumes"]).iter().enumerate() {
        let place = path(&["spec", "volumes"]).index(index).child("projected");
        for (index, source) in volume.list(&["projected", "sources"]).iter().enumerate() {
            if source.has(&["serviceAccountToken"]) {
                let place = place.child("sources").index(index);
                let detail = "must not be specified when serviceAccountName is not set";
                let place = place.child("serviceAccountToken");
                wrong.push(FieldError::forbidden(place, detail));
            }
        }
    }
}

fn annotations(pod: &Object, wrong: &mut Errors) {
    const COST: &str = "controller.kubernetes.io/pod-deletion-cost";
    let place = path(&["metadata", "annotations"]);
    let all = pod.value().members(&["metadata", "annotations"]);
    let names = LazyCell::new(|| {
        let lists = ["initContainers", "containers", "ephemeralContainers"].into_iter();
        let entries = lists.flat_map(|list| pod.value().list(&["spec", list]));
        let names = entries.map(|entry| entry.text(&["name"]));
        names.collect::<HashSet<&str>>()
    });
    for (key, text) in all.into_iter().flat_map(Map::iter) {
        let text = text.as_str().unwrap_or("");
        let mut complain = |value: &str, detail: &str| {
            wrong.push(FieldError::invalid(place.key(key), value, detail));
        };
        match key {
            MIRROR if pod.value().text(&["spec", "nodeName"]).is_empty() => {
                complain(
                    text,
                    "must set spec.nodeName if mirror pod annotation is set",
                );
            }
            COST if !is_cost(text) => complain(text, "must be a 32bit integer"),
            _ => {}
        }
        if let Some(container) = key.strip_prefix(APP_ARMOR) {
            if !names.contains(container) {
                complain(container, "container not found");
            }
            let profile = matches!(text, "" | "runtime/default" | "unconfined")
                || text.starts_with("localhost/");
            if !profile {
                complain(text, &format!("invalid AppArmor profile name: \"{text}\""));
            }
        }
    }
    super::super::pod_spec::seccomp_annotations(pod.value(), &place, wrong);
}

/// Returns whether a text is an integer without plus sign and leading zeros.
fn is_cost(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let plain = digits == "0" || !digits.starts_with('0');
    plain && text.parse::<i32>().is_ok() && !text.starts_with('+')
}
