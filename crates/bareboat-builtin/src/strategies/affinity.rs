//! Validates affinity and topology spread of pods.

use super::check::{Errors, name, one_of};
use crate::reach::Reach;
use bareboat_api::labels::validate_selector;
use bareboat_api::{FieldError, FieldPath, Value, names};
use std::collections::{HashMap, HashSet};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Validates a pod's affinity.
pub(super) fn affinity(affinity: &Value, place: &FieldPath, wrong: &mut Errors) {
    if let Some(nodes) = affinity
        .at(&["nodeAffinity"])
        .filter(|value| !value.is_null())
    {
        let place = place.child("nodeAffinity");
        if let Some(selector) = nodes.at(&[REQUIRED]).filter(|value| !value.is_null()) {
            node_selector(selector, &place.child(REQUIRED), wrong);
        }
        for (index, term) in nodes.list(&[PREFERRED]).iter().enumerate() {
            let place = place.child(PREFERRED).index(index);
            weight(term, &place, wrong);
            let empty = Value::object();
            let preference = term.at(&["preference"]).unwrap_or(&empty);
            node_term(preference, false, &place.child("preference"), wrong);
        }
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let place = place.child(kind);
        for (index, term) in affinity.list(&[kind, REQUIRED]).iter().enumerate() {
            pod_term(term, &place.child(REQUIRED).index(index), wrong);
        }
        for (index, term) in affinity.list(&[kind, PREFERRED]).iter().enumerate() {
            let place = place.child(PREFERRED).index(index);
            weight(term, &place, wrong);
            let empty = Value::object();
            let inner = term.at(&["podAffinityTerm"]).unwrap_or(&empty);
            pod_term(inner, &place.child("podAffinityTerm"), wrong);
        }
    }
}

fn weight(term: &Value, place: &FieldPath, wrong: &mut Errors) {
    let weight = term.int(&["weight"]).unwrap_or(0);
    if !(1..=100).contains(&weight) {
        let detail = "must be in the range 1-100";
        wrong.push(FieldError::invalid(place.child("weight"), weight, detail));
    }
}

/// Validates a node selector, which has one or more terms.
pub(super) fn node_selector(selector: &Value, place: &FieldPath, wrong: &mut Errors) {
    let terms = selector.list(&["nodeSelectorTerms"]);
    let place = place.child("nodeSelectorTerms");
    if terms.is_empty() {
        let detail = "must have at least one node selector term";
        wrong.push(FieldError::required(place.clone(), detail));
    }
    for (index, term) in terms.iter().enumerate() {
        node_term(term, true, &place.index(index), wrong);
    }
}

fn node_term(term: &Value, strict: bool, place: &FieldPath, wrong: &mut Errors) {
    for (index, needed) in term.list(&["matchExpressions"]).iter().enumerate() {
        let place = place.child("matchExpressions").index(index);
        let operator = needed.text(&["operator"]);
        let values = needed.list(&["values"]);
        let at = place.child("values");
        match operator {
            "In" | "NotIn" if values.is_empty() => wrong.push(FieldError::required(
                at.clone(),
                "must be specified when `operator` is 'In' or 'NotIn'",
            )),
            "Exists" | "DoesNotExist" if !values.is_empty() => wrong.push(FieldError::forbidden(
                at.clone(),
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            )),
            "Gt" | "Lt" if values.len() != 1 => wrong.push(FieldError::required(
                at.clone(),
                "must be specified single value when `operator` is 'Lt' or 'Gt'",
            )),
            "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
            _ => operator_unknown(operator, &place, wrong),
        }
        let key = needed.text(&["key"]);
        name(key, names::qualified_name, place.child("key"), wrong);
        for (index, value) in values.iter().enumerate().filter(|_| strict) {
            let value = value.as_str().unwrap_or("");
            name(value, names::label_value, at.index(index), wrong);
        }
    }
    for (index, needed) in term.list(&["matchFields"]).iter().enumerate() {
        let place = place.child("matchFields").index(index);
        let operator = needed.text(&["operator"]);
        let values = needed.list(&["values"]);
        match operator {
            "In" | "NotIn" if values.len() != 1 => wrong.push(FieldError::required(
                place.child("values"),
                "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
            )),
            "In" | "NotIn" => {}
            _ => operator_unknown(operator, &place, wrong),
        }
        let key = needed.text(&["key"]);
        if key != "metadata.name" {
            let detail = "not a valid field selector key";
            wrong.push(FieldError::invalid(place.child("key"), key, detail));
            continue;
        }
        for (index, value) in values.iter().enumerate() {
            let value = value.as_str().unwrap_or("");
            let place = place.child("values").index(index);
            name(value, names::dns1123_subdomain, place, wrong);
        }
    }
}

fn operator_unknown(operator: &str, place: &FieldPath, wrong: &mut Errors) {
    let detail = "not a valid selector operator";
    wrong.push(FieldError::invalid(
        place.child("operator"),
        operator,
        detail,
    ));
}

fn pod_term(term: &Value, place: &FieldPath, wrong: &mut Errors) {
    for member in ["labelSelector", "namespaceSelector"] {
        if let Some(selector) = term.at(&[member]).filter(|value| !value.is_null()) {
            wrong.extend(validate_selector(selector, &place.child(member)));
        }
    }
    for namespace in term.list(&["namespaces"]).iter().filter_map(Value::as_str) {
        // Upstream reports the path of the list here.
        let place = place.child("namespace");
        name(namespace, names::dns1123_label, place, wrong);
    }
    label_keys(term, &["matchLabelKeys", "mismatchLabelKeys"], place, wrong);
    let key = term.text(&["topologyKey"]);
    let place = place.child("topologyKey");
    if key.is_empty() {
        wrong.push(FieldError::required(place.clone(), "can not be empty"));
    }
    name(key, names::qualified_name, place, wrong);
}

/// Validates `matchLabelKeys` and `mismatchLabelKeys`.
fn label_keys(term: &Value, members: &[&str], place: &FieldPath, wrong: &mut Errors) {
    for member in members {
        let keys = term.list(&[member]);
        let place = place.child(member);
        if !keys.is_empty() && !term.has(&["labelSelector"]) {
            let detail = "must not be specified when labelSelector is not set";
            wrong.push(FieldError::forbidden(place.clone(), detail));
            continue;
        }
        for (index, key) in keys.iter().enumerate() {
            let key = key.as_str().unwrap_or("");
            name(key, names::qualified_name, place.index(index), wrong);
        }
    }
    let mismatched = term.list(&["mismatchLabelKeys"]).iter();
    let mismatched: HashSet<&str> = mismatched.filter_map(Value::as_str).collect();
    for (index, key) in term.list(&["matchLabelKeys"]).iter().enumerate() {
        if key.as_str().is_some_and(|key| mismatched.contains(key)) {
            let detail = "exists in both matchLabelKeys and mismatchLabelKeys";
            let place = place.child("matchLabelKeys").index(index);
            wrong.push(FieldError::invalid(place, key.clone(), detail));
        }
    }
}

/// Validates topology spread constraints.
pub(super) fn spread(spec: &Value, place: &FieldPath, wrong: &mut Errors) {
    let constraints = spec.list(&["topologySpreadConstraints"]);
    // Number of later constraints with the same key and action.
    let mut left: HashMap<(&str, &str), usize> = HashMap::new();
    for constraint in constraints {
        let pair = ["topologyKey", "whenUnsatisfiable"].map(|member| constraint.text(&[member]));
        *left.entry(pair.into()).or_default() += 1;
    }
    for (index, constraint) in constraints.iter().enumerate() {
        let place = place.index(index);
        let skew = constraint.int(&["maxSkew"]).unwrap_or(0);
        if skew <= 0 {
            let detail = "must be greater than zero";
            wrong.push(FieldError::invalid(place.child("maxSkew"), skew, detail));
        }
        let key = constraint.text(&["topologyKey"]);
        if key.is_empty() {
            let detail = "can not be empty";
            wrong.push(FieldError::required(place.child("topologyKey"), detail));
        }
        let action = constraint.text(&["whenUnsatisfiable"]);
        let at = place.child("whenUnsatisfiable");
        one_of(action, &["DoNotSchedule", "ScheduleAnyway"], at, wrong);
        let left = left.entry((key, action)).or_default();
        *left = left.saturating_sub(1);
        if *left > 0 {
            let at = place.child("{topologyKey, whenUnsatisfiable}");
            wrong.push(FieldError::duplicate(at, format!("{{{key}, {action}}}")));
        }
        if let Some(least) = constraint.int(&["minDomains"]) {
            let at = place.child("minDomains");
            if least <= 0 {
                let detail = "must be greater than zero";
                wrong.push(FieldError::invalid(at.clone(), least, detail));
            }
            if action != "DoNotSchedule" {
                let detail = format!(
                    "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
                );
                wrong.push(FieldError::invalid(at, least, detail));
            }
        }
        for member in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            if constraint.has(&[member]) {
                let policy = constraint.text(&[member]);
                one_of(policy, &["Honor", "Ignore"], place.child(member), wrong);
            }
        }
        label_keys(constraint, &["matchLabelKeys"], &place, wrong);
        if let Some(selector) = constraint
            .at(&["labelSelector"])
            .filter(|value| !value.is_null())
        {
            wrong.extend(validate_selector(selector, &place.child("labelSelector")));
        }
    }
}
