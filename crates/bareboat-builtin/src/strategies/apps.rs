//! Deployments, ReplicaSets and ReplicationControllers, and checks shared by workloads. StatefulSets and DaemonSets are
//! in `stateful` and `daemon`.

mod daemon;
mod stateful;

pub(crate) use daemon::daemon_set;
pub(crate) use stateful::stateful_set;

use super::Rules;
use super::check::{Errors, immutable, not_negative, number_or_percent, one_of, path, percent};
use super::pod_spec;
use super::warnings;
use crate::reach::Reach;
use bareboat_api::labels::{Selector, validate_selector};
use bareboat_api::{FieldError, FieldPath, Map, Object, Value};

/// Returns the strategy of Deployment: validation, warnings, an immutable selector; writes to the status keep the
/// labels.
pub(crate) fn deployment() -> Rules {
    Rules::validating(|object, wrong| {
        let spec = spec_of(object);
        replicas(spec, wrong);
        selector(spec, "deployment", wrong);
        template(spec, "ReplicaSet", wrong);
        deployment_strategy(spec, wrong);
        for member in [
            "minReadySeconds",
            "revisionHistoryLimit",
            "progressDeadlineSeconds",
        ] {
            not_negative(spec.int(&[member]), path(&["spec", member]), wrong);
        }
        deadline(spec, wrong);
    })
    .updating(selector_is_immutable)
    .phases(|new, old, _| {
        // A write to the status does not change labels.
        match old.meta("labels").cloned() {
            Some(labels) => new.set_meta("labels", labels),
            None => {
                new.metadata_mut().remove("labels");
            }
        }
    })
    .statuses(|new, old, wrong| {
        counts(new, &["updatedReplicas"], "readyReplicas", wrong);
        collisions(new, old, wrong);
    })
    .warning(warnings::workload)
}

/// Returns the strategy of ReplicaSet: validation, warnings, an immutable selector.
pub(crate) fn replica_set() -> Rules {
    Rules::validating(|object, wrong| {
        let spec = spec_of(object);
        replicas(spec, wrong);
        not_negative(
            spec.int(&["minReadySeconds"]),
            path(&["spec", "minReadySeconds"]),
            wrong,
        );
        // Upstream reports `deployment` here, too.
        selector(spec, "deployment", wrong);
        template(spec, "ReplicaSet", wrong);
    })
    .updating(selector_is_immutable)
    .statuses(|new, _, wrong| counts(new, &["fullyLabeledReplicas"], "readyReplicas", wrong))
    .warning(warnings::workload)
}

/// Returns the strategy of ReplicationController: validation and warnings. Its selector is a plain map of labels.
pub(crate) fn replication_controller() -> Rules {
    Rules::validating(|object, wrong| {
        let spec = spec_of(object);
        replicas(spec, wrong);
        not_negative(
            spec.int(&["minReadySeconds"]),
            path(&["spec", "minReadySeconds"]),
            wrong,
        );
        let wanted = spec.members(&["selector"]).filter(|map| !map.is_empty());
        if wanted.is_none() {
            wrong.push(FieldError::required(path(&["spec", "selector"]), ""));
        }
        if !spec.has(&["template"]) {
            wrong.push(FieldError::required(path(&["spec", "template"]), ""));
            return;
        }
        let Some(wanted) = wanted else {
            return;
        };
        let labels = spec.members(&["template", "metadata", "labels"]);
        let matches = wanted
            .iter()
            .all(|(key, value)| labels.and_then(|labels| labels.get(key)) == Some(value));
        if !matches {
            mismatch(labels, wrong);
        }
        template(spec, "ReplicationController", wrong);
    })
    .statuses(|new, _, wrong| counts(new, &["fullyLabeledReplicas"], "readyReplicas", wrong))
    .warning(warnings::workload)
}

/// Returns the strategy of ControllerRevision: validation; the data is immutable.
pub(crate) fn controller_revision() -> Rules {
    Rules::validating(|object, wrong| {
        not_negative(
            object.value().int(&["revision"]),
            path(&["revision"]),
            wrong,
        );
        let complaint = match object.get("data") {
            None | Some(Value::Null) => "data is mandatory",
            Some(Value::Object(_)) => return,
            Some(_) => "data must be a valid JSON object",
        };
        wrong.push(FieldError::required(path(&["data"]), complaint));
    })
    .updating(|new, old, wrong| {
        immutable(new.get("data"), old.get("data"), path(&["data"]), wrong);
    })
}

/// Validates replica counts: no part exceeds the total, and available replicas are ready.
fn counts(object: &Object, others: &[&str], ready: &str, wrong: &mut Errors) {
    let place = path(&["status"]);
    let count = |member: &str| object.value().int(&["status", member]).unwrap_or(0);
    let parts = ["readyReplicas", "availableReplicas"];
    for member in ["observedGeneration", "replicas", "collisionCount"]
        .iter()
        .chain(others)
        .chain(&parts)
    {
        not_negative(Some(count(member)), place.child(member), wrong);
    }
    for member in others.iter().chain(&parts) {
        if count(member) > count("replicas") {
            let detail = "cannot be greater than status.replicas";
            wrong.push(FieldError::invalid(
                place.child(member),
                count(member),
                detail,
            ));
        }
    }
    let available = count("availableReplicas");
    if available > count("readyReplicas") {
        let detail = format!("cannot be greater than {ready}");
        let place = place.child("availableReplicas");
        wrong.push(FieldError::invalid(place, available, detail));
    }
}

/// Validates that the collision count does not decrease.
fn collisions(new: &Object, old: &Object, wrong: &mut Errors) {
    let count = |object: &Object| object.value().int(&["status", "collisionCount"]);
    let Some(before) = count(old) else {
        return;
    };
    let after = count(new).unwrap_or(0);
    if after < before {
        let place = path(&["status", "collisionCount"]);
        wrong.push(FieldError::invalid(place, after, "cannot be decremented"));
    }
}

fn spec_of(object: &Object) -> &Value {
    object.get("spec").unwrap_or(&Value::Null)
}

fn replicas(spec: &Value, wrong: &mut Errors) {
    not_negative(spec.int(&["replicas"]), path(&["spec", "replicas"]), wrong);
}

/// Validates that the selector is not empty and matches the template.
fn selector(spec: &Value, kind: &str, wrong: &mut Errors) {
    let place = path(&["spec", "selector"]);
    let given = spec.at(&["selector"]).filter(|value| !value.is_null());
    match given {
        // For a DaemonSet only the labels are reported.
        None if kind == "daemonset" => {}
        None => wrong.push(FieldError::required(place, "")),
        Some(given) => {
            let complaints = validate_selector(given, &place);
            if !complaints.is_empty() {
                let detail = "invalid label selector";
                wrong.push(FieldError::invalid(place.clone(), given.clone(), detail));
            }
            wrong.extend(complaints);
            let terms = given.members(&["matchLabels"]).map_or(0, Map::len)
                + given.list(&["matchExpressions"]).len();
            if terms == 0 {
                let detail = format!("empty selector is invalid for {kind}");
                wrong.push(FieldError::invalid(place, given.clone(), detail));
            }
        }
    }
    matches_template(spec, wrong);
}

pub(super) fn matches_template(spec: &Value, wrong: &mut Errors) {
    let labels = spec.members(&["template", "metadata", "labels"]);
    let matches = match spec.at(&["selector"]).filter(|value| !value.is_null()) {
        // A missing selector matches nothing.
        None => Ok(false),
        Some(given) => Selector::from_object(given).map(|selector| selector.matches_map(labels)),
    };
    if matches == Ok(false) {
        mismatch(labels, wrong);
    }
}

fn mismatch(labels: Option<&Map>, wrong: &mut Errors) {
    wrong.push(FieldError::invalid(
        path(&["spec", "template", "metadata", "labels"]),
        labels.cloned().map_or(Value::Null, Value::Object),
        "`selector` does not match template `labels`",
    ));
}

fn template(spec: &Value, kind: &str, wrong: &mut Errors) {
    let place = path(&["spec", "template"]);
    let empty = Value::object();
    let template = spec.at(&["template"]).unwrap_or(&empty);
    pod_spec::validate_template(template, &place, wrong);
    let place = place.child("spec");
    let policy = template.text(&["spec", "restartPolicy"]);
    if policy != "Always" {
        one_of(policy, &["Always"], place.child("restartPolicy"), wrong);
    }
    if template.has(&["spec", "activeDeadlineSeconds"]) {
        wrong.push(FieldError::forbidden(
            place.child("activeDeadlineSeconds"),
            format!("activeDeadlineSeconds in {kind} is not Supported"),
        ));
    }
}

fn deadline(spec: &Value, wrong: &mut Errors) {
    let Some(deadline) = spec.int(&["progressDeadlineSeconds"]) else {
        return;
    };
    if deadline <= spec.int(&["minReadySeconds"]).unwrap_or(0) {
        wrong.push(FieldError::invalid(
            path(&["spec", "progressDeadlineSeconds"]),
            deadline,
            "must be greater than minReadySeconds",
        ));
    }
}

fn selector_is_immutable(new: &Object, old: &Object, wrong: &mut Errors) {
    immutable(
        new.at(&["spec", "selector"]),
        old.at(&["spec", "selector"]),
        path(&["spec", "selector"]),
        wrong,
    );
}

fn is_zero(value: Option<&Value>) -> bool {
    match value {
        Some(Value::Int(number)) => *number == 0,
        Some(Value::String(text)) => percent(text).or_else(|| text.parse().ok()).unwrap_or(0) == 0,
        _ => true,
    }
}

fn at_most_all(value: Option<&Value>, place: FieldPath, wrong: &mut Errors) {
    if let Some(Value::String(text)) = value
        && percent(text).is_some_and(|number| number > 100)
    {
        wrong.push(FieldError::invalid(
            place,
            text.clone(),
            "must not be greater than 100%",
        ));
    }
}

fn deployment_strategy(spec: &Value, wrong: &mut Errors) {
    let place = path(&["spec", "strategy"]);
    let empty = Value::object();
    let strategy = spec.at(&["strategy"]).unwrap_or(&empty);
    let rolling = strategy
        .at(&["rollingUpdate"])
        .filter(|value| !value.is_null());
    match (strategy.text(&["type"]), rolling) {
        ("Recreate", Some(_)) => wrong.push(FieldError::forbidden(
            place.child("rollingUpdate"),
            "may not be specified when strategy `type` is 'Recreate'",
        )),
        ("Recreate", None) => {}
        ("RollingUpdate", Some(rolling)) => {
            let place = place.child("rollingUpdate");
            let unavailable = rolling.at(&["maxUnavailable"]);
            let surge = rolling.at(&["maxSurge"]);
            number_or_percent(unavailable, place.child("maxUnavailable"), wrong);
            number_or_percent(surge, place.child("maxSurge"), wrong);
            if is_zero(unavailable) && is_zero(surge) {
                wrong.push(FieldError::invalid(
                    place.child("maxUnavailable"),
                    unavailable.cloned().unwrap_or_default(),
                    "may not be 0 when `maxSurge` is 0",
                ));
            }
            at_most_all(unavailable, place.child("maxUnavailable"), wrong);
        }
        ("RollingUpdate", None) => wrong.push(FieldError::required(
            place.child("rollingUpdate"),
            "this should be defaulted and never be nil",
        )),
        _ => wrong.push(FieldError::not_supported(
            place,
            strategy.clone(),
            ["Recreate", "RollingUpdate"],
        )),
    }
}
