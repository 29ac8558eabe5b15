//! HorizontalPodAutoscalers and PodDisruptionBudgets.

mod metrics;
mod versions;

pub(crate) use versions::{convert, normal};

use super::Rules;
use super::check::{Errors, condition, not_negative, number_or_percent, one_of, path, percent};
use crate::reach::Reach;
use bareboat_api::kind::WriteContext;
use bareboat_api::labels::validate_selector;
use bareboat_api::{FieldError, Map, Object, Value};

/// Returns the strategy of HorizontalPodAutoscaler: validation, and which of the annotations of `v1` are kept.
pub(crate) fn autoscaler() -> Rules {
    Rules::validating(validate_autoscaler)
        .creating(|new, ctx| {
            if ctx.version == "v2" {
                versions::drop_annotations(new.map_mut());
            } else {
                // A new object has no status, so no status annotations.
                versions::keep_notes(new.map_mut(), &Map::new(), None);
            }
        })
        .changing(kept_notes)
        .phases(kept_notes)
        .at_first(validate_target)
        .updating(|new, old, wrong| {
            // An unchanged reference is not checked again.
            let same = |member| {
                let at = ["spec", "scaleTargetRef", member];
                new.value().text(&at) == old.value().text(&at)
            };
            if !(same("apiVersion") && same("kind")) {
                validate_target(new, wrong);
            }
        })
}

/// Checks that the target of an autoscaler names its API group.
fn validate_target(object: &Object, wrong: &mut Errors) {
    let target = object
        .at(&["spec", "scaleTargetRef"])
        .unwrap_or(&Value::Null);
    let version = target.text(&["apiVersion"]);
    let group = version.split_once('/').map_or("", |(group, _)| group);
    // ReplicationController is the only kind of the core group that can be scaled.
    let core = target.text(&["kind"]) == "ReplicationController";
    let complaint = match version.matches('/').count() {
        2.. => format!("unexpected GroupVersion string: {version}"),
        _ if group.is_empty() && !core => "apiVersion must specify API group".to_owned(),
        _ => return,
    };
    let place = path(&["spec", "scaleTargetRef", "apiVersion"]);
    wrong.push(FieldError::invalid(place, version, complaint));
}

/// Drops `v1` annotations in `v2`; in `v1` keeps those about the part that is not written.
fn kept_notes(new: &mut Object, old: &Object, ctx: &WriteContext<'_>) {
    if ctx.version == "v2" {
        versions::drop_annotations(new.map_mut());
    } else {
        versions::keep_notes(new.map_mut(), old.map(), ctx.subresource);
    }
}

/// Returns the strategy of PodDisruptionBudget: validation of spec and status.
pub(crate) fn disruption_budget() -> Rules {
    Rules::validating(|object, wrong| {
        let spec = object.get("spec").unwrap_or(&Value::Null);
        let place = path(&["spec"]);
        if spec.has(&["minAvailable"]) && spec.has(&["maxUnavailable"]) {
            wrong.push(FieldError::invalid(
                place.clone(),
                spec.clone(),
                "minAvailable and maxUnavailable cannot be both set",
            ));
        }
        for member in ["minAvailable", "maxUnavailable"] {
            let value = spec.at(&[member]);
            number_or_percent(value, place.child(member), wrong);
            if let Some(Value::String(text)) = value
                && percent(text).is_some_and(|number| number > 100)
            {
                wrong.push(FieldError::invalid(
                    place.child(member),
                    text.clone(),
                    "must not be greater than 100%",
                ));
            }
        }
        if let Some(selector) = spec.at(&["selector"]).filter(|value| !value.is_null()) {
            wrong.extend(validate_selector(selector, &place.child("selector")));
        }
        let policy = spec.text(&["unhealthyPodEvictionPolicy"]);
        if !policy.is_empty() {
            one_of(
                policy,
                &["AlwaysAllow", "IfHealthyBudget"],
                place.child("unhealthyPodEvictionPolicy"),
                wrong,
            );
        }
    })
    .statuses(|new, _, wrong| {
        let status = new.get("status").unwrap_or(&Value::Null);
        let place = path(&["status"]);
        for (index, entry) in status.list(&["conditions"]).iter().enumerate() {
            condition(entry, &place.child("conditions").index(index), wrong);
        }
        for member in [
            "disruptionsAllowed",
            "currentHealthy",
            "desiredHealthy",
            "expectedPods",
        ] {
            not_negative(status.int(&[member]), place.child(member), wrong);
        }
    })
}

fn validate_autoscaler(object: &Object, wrong: &mut Errors) {
    // Fields of an older version are validated by their current meaning.
    let newer = convert(object.value().clone(), "autoscaling/v2", None);
    let newer = newer.unwrap_or_else(|_| object.value().clone());
    let spec = newer.at(&["spec"]).unwrap_or(&Value::Null);
    let place = path(&["spec"]);
    let minimum = spec.int(&["minReplicas"]);
    let maximum = spec.int(&["maxReplicas"]).unwrap_or(0);
    if let Some(minimum) = minimum.filter(|number| *number < 1) {
        wrong.push(FieldError::invalid(
            place.child("minReplicas"),
            minimum,
            "must be greater than or equal to 1",
        ));
    }
    let max_place = place.child("maxReplicas");
    if maximum == 0 {
        wrong.push(FieldError::required(
            max_place.clone(),
            "must be set and greater than 0",
        ));
    } else if maximum < 0 {
        wrong.push(FieldError::invalid(
            max_place.clone(),
            maximum,
            "must be greater than or equal to 1",
        ));
    }
    if minimum.is_some_and(|minimum| maximum < minimum) {
        wrong.push(FieldError::invalid(
            max_place,
            maximum,
            "must be greater than or equal to `minReplicas`",
        ));
    }
    let target = spec.at(&["scaleTargetRef"]).unwrap_or(&Value::Null);
    let target_place = place.child("scaleTargetRef");
    metrics::reference(target, &target_place, wrong);
    metrics::metrics(spec, &place.child("metrics"), wrong);
    metrics::behavior(spec, &place.child("behavior"), wrong);
}
