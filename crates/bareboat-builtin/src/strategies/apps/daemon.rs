//! DaemonSets.

use super::super::Rules;
use super::super::check::{Errors, not_negative, number_or_percent, path};
use super::super::warnings;
use super::{at_most_all, collisions, is_zero, selector, selector_is_immutable, spec_of, template};
use crate::defaults::TEMPLATE_GENERATION;
use crate::reach::Reach;
use bareboat_api::kind::WriteContext;
use bareboat_api::{FieldError, Object, Value};

/// Returns the strategy of DaemonSet: the template generation, validation, warnings, an immutable selector.
pub(crate) fn daemon_set() -> Rules {
    Rules::validating(validate_daemon_set)
        .creating(|new, _| {
            if template_generation(new).is_none() {
                set_template_generation(new, 1);
            }
        })
        .changing(prepare_daemon_set)
        .updating(selector_is_immutable)
        .statuses(|new, old, wrong| {
            for member in [
                "currentNumberScheduled",
                "numberMisscheduled",
                "desiredNumberScheduled",
                "numberReady",
                "observedGeneration",
                "updatedNumberScheduled",
                "numberAvailable",
                "numberUnavailable",
                "collisionCount",
            ] {
                let count = new.value().int(&["status", member]);
                not_negative(count, path(&["status", member]), wrong);
            }
            collisions(new, old, wrong);
        })
        .warning(|new, old| warnings::template(new, old, &["spec", "template"]))
}

fn validate_daemon_set(object: &Object, wrong: &mut Errors) {
    let spec = spec_of(object);
    selector(spec, "daemonset", wrong);
    template(spec, "DaemonSet", wrong);
    let place = path(&["spec"]);
    for member in ["minReadySeconds", "revisionHistoryLimit"] {
        not_negative(spec.int(&[member]), place.child(member), wrong);
    }
    let place = place.child("updateStrategy");
    let empty = Value::object();
    let strategy = spec.at(&["updateStrategy"]).unwrap_or(&empty);
    match strategy.text(&["type"]) {
        "OnDelete" => {}
        "RollingUpdate" => {
            let place = place.child("rollingUpdate");
            let unavailable = strategy.at(&["rollingUpdate", "maxUnavailable"]);
            let surge = strategy.at(&["rollingUpdate", "maxSurge"]);
            for (member, value) in [("maxUnavailable", unavailable), ("maxSurge", surge)] {
                number_or_percent(value, place.child(member), wrong);
                at_most_all(value, place.child(member), wrong);
            }
            match (is_zero(unavailable), is_zero(surge)) {
                (false, false) => wrong.push(FieldError::invalid(
                    place.child("maxSurge"),
                    surge.cloned().unwrap_or_default(),
                    "may not be set when maxUnavailable is non-zero",
                )),
                (true, true) => wrong.push(FieldError::required(
                    place.child("maxUnavailable"),
                    "cannot be 0 when maxSurge is 0",
                )),
                _ => {}
            }
        }
        _ => wrong.push(FieldError::not_supported(
            place,
            strategy.clone(),
            ["RollingUpdate", "OnDelete"],
        )),
    }
}

fn template_generation(object: &Object) -> Option<i64> {
    let text = object.annotation(TEMPLATE_GENERATION)?;
    text.parse().ok().filter(|number| *number > 0)
}

fn set_template_generation(object: &mut Object, number: i64) {
    object
        .metadata_mut()
        .object_mut("annotations")
        .insert(TEMPLATE_GENERATION, number.to_string().into());
}

/// Sets the template generation from the template and ignores the client's value.
fn prepare_daemon_set(new: &mut Object, old: &Object, _ctx: &WriteContext<'_>) {
    let known = template_generation(old).unwrap_or(1);
    let changed = new.at(&["spec", "template"]) != old.at(&["spec", "template"]);
    set_template_generation(new, if changed { known + 1 } else { known });
}
