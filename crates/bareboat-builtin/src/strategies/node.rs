//! Nodes: some fields are immutable once set.

use super::Rules;
use super::amounts::amount_of;
use super::check::{CIDR, Errors, cidr, name, path, required_one_of};
use crate::reach::Reach;
use bareboat_api::{FieldError, Map, Object, Value, names};
use std::collections::HashSet;

/// Returns the strategy of Node: validation and warnings; drops `spec.configSource`.
pub(crate) fn node() -> Rules {
    Rules::validating(validate)
        .creating(|node, _| without_source(node))
        .changing(|node, _, _| without_source(node))
        .updating(validate_update)
        .statuses(|new, _, wrong| resources(new, wrong))
        .warning(|new, _| {
            let old = new.value().has(&["spec", "externalID"]);
            let text = "spec.externalID: this field is deprecated, and is unused by Kubernetes";
            old.then(|| text.to_owned()).into_iter().collect()
        })
}

/// Drops `configSource`; dynamic kubelet configuration no longer exists.
fn without_source(node: &mut Object) {
    node.map_mut().object_mut("spec").remove("configSource");
}

fn validate(node: &Object, wrong: &mut Errors) {
    let mut seen: HashSet<(&str, &str)> = HashSet::new();
    for (index, taint) in node.value().list(&["spec", "taints"]).iter().enumerate() {
        // Upstream reports taints under `metadata`.
        let place = path(&["metadata", "taints"]).index(index);
        let (key, effect) = (taint.text(&["key"]), taint.text(&["effect"]));
        name(key, names::qualified_name, place.child("key"), wrong);
        let value = taint.text(&["value"]);
        name(value, names::label_value, place.child("value"), wrong);
        required_one_of(
            effect,
            &["NoSchedule", "PreferNoSchedule", "NoExecute"],
            place.child("effect"),
            wrong,
        );
        if !seen.insert((key, effect)) {
            let mut error = FieldError::duplicate(place, taint.clone());
            error.detail = "taints must be unique by key and effect pair".to_owned();
            wrong.push(error);
        }
    }
    ranges(node, wrong);
    resources(node, wrong);
    avoided_pods(node, wrong);
}

/// Validates the annotation that lists pods to avoid.
fn avoided_pods(node: &Object, wrong: &mut Errors) {
    const KEY: &str = "scheduler.alpha.kubernetes.io/preferAvoidPods";
    let Some(text) = node.annotation(KEY).filter(|text| !text.is_empty()) else {
        return;
    };
    let place = path(&["metadata", "annotations"]);
    let avoided: Value = match serde_json::from_str(text) {
        Ok(avoided) => avoided,
        Err(error) => {
            let place = place.child("AvoidPods");
            return wrong.push(FieldError::invalid(place, KEY, error.to_string()));
        }
    };
    for (index, entry) in avoided.list(&["preferAvoidPods"]).iter().enumerate() {
        let place = place.child(KEY).index(index).child("PodSignature");
        let controller = entry.at(&["podSignature", "podController"]);
        match controller.filter(|controller| !controller.is_null()) {
            None => wrong.push(FieldError::required(place, "")),
            Some(controller) if !controller.flag(&["controller"]) => {
                let place = place.child("PodController").child("Controller");
                let detail = "must point to a controller";
                wrong.push(FieldError::invalid(place, false, detail));
            }
            Some(_) => {}
        }
    }
}

/// Validates pod CIDRs: at most one of each IP family.
fn ranges(node: &Object, wrong: &mut Errors) {
    let given = node.value().list(&["spec", "podCIDRs"]);
    let place = path(&["spec", "podCIDRs"]);
    let mut families = Vec::new();
    for (index, range) in given.iter().enumerate() {
        let text = range.as_str().unwrap_or("");
        match cidr(text) {
            Some((address, _)) => families.push(address.is_ipv4()),
            None => wrong.push(FieldError::invalid(place.index(index), text, CIDR)),
        }
    }
    let twice = |four: bool| families.iter().filter(|family| **family == four).count() > 1;
    if twice(true) || twice(false) {
        let detail = "may specify no more than one CIDR for each IP family";
        wrong.push(FieldError::invalid(place, given.to_vec(), detail));
    }
}

fn resources(node: &Object, wrong: &mut Errors) {
    for list in ["capacity", "allocatable"] {
        let amounts = node.value().members(&["status", list]);
        for (resource, value) in amounts.into_iter().flat_map(Map::iter) {
            let place = path(&["status", list]).child(resource);
            amount_of(resource, value, &place, wrong);
        }
    }
}

fn validate_update(new: &Object, old: &Object, wrong: &mut Errors) {
    let (after, before) = (new.value(), old.value());
    let assigned = before.list(&["spec", "podCIDRs"]);
    if !assigned.is_empty() && after.list(&["spec", "podCIDRs"]) != assigned {
        wrong.push(FieldError::forbidden(
            path(&["spec", "podCIDRs"]),
            "node updates may not change podCIDR except from \"\" to valid",
        ));
    }
    let provider = before.text(&["spec", "providerID"]);
    if !provider.is_empty() && after.text(&["spec", "providerID"]) != provider {
        wrong.push(FieldError::forbidden(
            path(&["spec", "providerID"]),
            "node updates may not change providerID except from \"\" to valid",
        ));
    }
    let mut rest = (after.at(&["spec"]).cloned(), before.at(&["spec"]).cloned());
    for spec in [&mut rest.0, &mut rest.1] {
        if let Some(map) = spec.as_mut().and_then(Value::as_object_mut) {
            for member in [
                "podCIDR",
                "podCIDRs",
                "providerID",
                "unschedulable",
                "taints",
                "configSource",
            ] {
                map.remove(member);
            }
        }
    }
    let empty = |value: &Option<Value>| value.as_ref().is_none_or(|v| v == &Value::object());
    if rest.0 != rest.1 && !(empty(&rest.0) && empty(&rest.1)) {
        wrong.push(FieldError::forbidden(
            path(&["spec"]),
            "node updates may only change labels, taints, or capacity (or configSource, if the DynamicKubeletConfig feature gate is enabled)",
        ));
    }
}
