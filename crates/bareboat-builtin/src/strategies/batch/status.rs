//! Validates the status of jobs.

use super::super::check::{Errors, not_negative, path};
use super::policies::count_indexes;
use crate::reach::Reach;
use bareboat_api::{FieldError, Object, Value};

fn is_true(job: &Object, condition: &str) -> bool {
    let conditions = job.value().list(&["status", "conditions"]).iter();
    conditions
        .filter(|found| found.text(&["type"]) == condition)
        .any(|found| found.text(&["status"]) == "True")
}

/// Validates a status change: a finished job stays finished, and counters do not decrease.
pub(super) fn validate(new: &Object, old: &Object, wrong: &mut Errors) {
    let place = path(&["status"]);
    let status = new.get("status").unwrap_or(&Value::Null);
    for member in ["active", "succeeded", "failed", "ready", "terminating"] {
        not_negative(status.int(&[member]), place.child(member), wrong);
    }
    conditions(new, wrong);
    finished(new, wrong);
    let completions = new.value().int(&["spec", "completions"]);
    let indexes = status.text(&["completedIndexes"]);
    let at = place.child("completedIndexes");
    if let Some(Err(why)) = completions.map(|completions| count_indexes(indexes, completions)) {
        let detail = format!("error parsing completedIndexes: {why}");
        wrong.push(FieldError::invalid(at.clone(), indexes, detail));
    }
    if !indexes.is_empty() && new.value().text(&["spec", "completionMode"]) != "Indexed" {
        let detail = "cannot set non-empty completedIndexes when non-indexed completion mode";
        wrong.push(FieldError::invalid(at, indexes, detail));
    }
    let (ready, active) = (status.int(&["ready"]), status.int(&["active"]));
    if let Some(ready) = ready.filter(|ready| *ready > active.unwrap_or(0)) {
        let detail = "cannot set more ready pods than active";
        wrong.push(FieldError::invalid(place.child("ready"), ready, detail));
    }
    onwards(new, old, wrong);
}

fn conditions(job: &Object, wrong: &mut Errors) {
    let (complete, failed) = (is_true(job, "Complete"), is_true(job, "Failed"));
    let (failing, met) = (
        is_true(job, "FailureTarget"),
        is_true(job, "SuccessCriteriaMet"),
    );
    for (applies, detail) in [
        (
            complete && failed,
            "cannot set Complete=True and Failed=true conditions",
        ),
        (
            complete && failing,
            "cannot set Complete=True and FailureTarget=true conditions",
        ),
        (
            failed && !failing,
            "cannot set Failed=True condition without the FailureTarget=true condition",
        ),
        (
            complete && !met,
            "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
        ),
        (
            met && failed,
            "cannot set SuccessCriteriaMet=True and Failed=true conditions",
        ),
        (
            met && failing,
            "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions",
        ),
    ] {
        if applies {
            wrong.push(FieldError::invalid_whole(
                path(&["status", "conditions"]),
                detail,
            ));
        }
    }
}

fn finished(job: &Object, wrong: &mut Errors) {
    let status = job.get("status").unwrap_or(&Value::Null);
    let place = path(&["status"]);
    let (start, end) = (
        status.text(&["startTime"]),
        status.text(&["completionTime"]),
    );
    let complete = is_true(job, "Complete");
    let at = place.child("completionTime");
    if !end.is_empty() && !complete {
        let detail = "cannot set completionTime when there is no Complete=True condition";
        wrong.push(FieldError::invalid(at.clone(), end, detail));
    }
    if end.is_empty() && complete {
        let detail = "completionTime is required for Complete jobs";
        wrong.push(FieldError::required(at.clone(), detail));
    }
    // Timestamps of one format sort as text.
    if !start.is_empty() && !end.is_empty() && end < start {
        let detail = "must be equal to or after `startTime`";
        wrong.push(FieldError::invalid(at, end, detail));
    }
    if !complete && !is_true(job, "Failed") {
        return;
    }
    for member in ["active", "terminating"] {
        if let Some(count) = status.int(&[member]).filter(|count| *count > 0) {
            let detail = format!("{member}>0 is invalid for finished job");
            wrong.push(FieldError::invalid(place.child(member), count, detail));
        }
    }
    if start.is_empty() {
        let detail = "startTime is required for finished job";
        wrong.push(FieldError::required(place.child("startTime"), detail));
    }
    let uncounted = status
        .at(&["uncountedTerminatedPods"])
        .unwrap_or(&Value::Null);
    if !uncounted.list(&["succeeded"]).is_empty() || !uncounted.list(&["failed"]).is_empty() {
        let at = place.child("uncountedTerminatedPods");
        let detail = "must be empty for finished job";
        wrong.push(FieldError::invalid(at, uncounted.clone(), detail));
    }
}

fn onwards(new: &Object, old: &Object, wrong: &mut Errors) {
    for (condition, what) in [
        (
            "Complete",
            "cannot disable the terminal Complete=True condition",
        ),
        (
            "Failed",
            "cannot disable the terminal Failed=True condition",
        ),
        (
            "FailureTarget",
            "cannot disable the FailureTarget=True condition",
        ),
        (
            "SuccessCriteriaMet",
            "cannot disable the SuccessCriteriaMet=True condition",
        ),
    ] {
        if is_true(old, condition) && !is_true(new, condition) {
            wrong.push(FieldError::invalid_whole(
                path(&["status", "conditions"]),
                what,
            ));
        }
    }
    for member in ["succeeded", "failed"] {
        let count = |job: &Object| job.value().int(&["status", member]).unwrap_or(0);
        if count(new) < count(old) {
            let detail = format!("cannot decrease the {member} counter");
            let place = path(&["status", member]);
            wrong.push(FieldError::invalid(place, count(new), detail));
        }
    }
    let start = |job: &Object| job.value().text(&["status", "startTime"]).to_owned();
    let suspended = new.value().flag(&["spec", "suspend"]);
    if !start(old).is_empty() && start(new) != start(old) && !suspended {
        let place = path(&["status", "startTime"]);
        let (place, detail) = match start(new).as_str() {
            "" => {
                let detail = "startTime cannot be removed for unsuspended job";
                return wrong.push(FieldError::required(place, detail));
            }
            _ => (place, "startTime cannot be modified for unsuspended job"),
        };
        wrong.push(FieldError::invalid(place, start(new), detail));
    }
}
