//! Validates failure and success policies of jobs.

use super::super::check::{Errors, name, not_negative, one_of};
use super::super::pod_spec::main_names;
use crate::reach::Reach;
use bareboat_api::{FieldError, FieldPath, Value, names};
use std::cell::LazyCell;
use std::collections::HashSet;

const ACTIONS: [&str; 4] = ["Count", "FailIndex", "FailJob", "Ignore"];

/// Formats texts as Go prints a list.
fn choices(texts: &[&str]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| format!("\"{text}\"")).collect();
    format!("valid values: [{}]", quoted.join(" "))
}

/// Validates a required text that must be one of `known`.
fn chosen(text: &str, known: &[&str], place: FieldPath, wrong: &mut Errors) {
    match text {
        "" => wrong.push(FieldError::required(place, choices(known))),
        text => one_of(text, known, place, wrong),
    }
}

/// Validates the pod failure policy.
pub(super) fn failures(spec: &Value, place: &FieldPath, wrong: &mut Errors) {
    let rules = spec.list(&["podFailurePolicy", "rules"]);
    let place = place.child("rules");
    if rules.len() > 20 {
        wrong.push(FieldError::too_many(place.clone(), rules.len(), 20));
    }
    let containers = LazyCell::new(|| {
        let template = spec.at(&["template", "spec"]);
        template.map(main_names).unwrap_or_default()
    });
    for (index, rule) in rules.iter().enumerate() {
        let place = place.index(index);
        let action = rule.text(&["action"]);
        if action == "FailIndex" && !spec.has(&["backoffLimitPerIndex"]) {
            let detail = "requires the backoffLimitPerIndex to be set";
            wrong.push(FieldError::invalid(place.child("action"), action, detail));
        } else {
            chosen(action, &ACTIONS, place.child("action"), wrong);
        }
        let codes = rule.at(&["onExitCodes"]).filter(|value| !value.is_null());
        let conditions = rule.list(&["onPodConditions"]);
        if let Some(codes) = codes {
            exit_codes(&containers, codes, &place.child("onExitCodes"), wrong);
        }
        pod_conditions(conditions, &place.child("onPodConditions"), wrong);
        let complaint = match (codes.is_some(), conditions.is_empty()) {
            (true, false) => "specifying both OnExitCodes and OnPodConditions is not supported",
            (false, true) => "specifying one of OnExitCodes and OnPodConditions is required",
            _ => continue,
        };
        wrong.push(FieldError::invalid_whole(place, complaint));
    }
}

fn exit_codes(containers: &HashSet<&str>, codes: &Value, place: &FieldPath, wrong: &mut Errors) {
    let operator = codes.text(&["operator"]);
    chosen(operator, &["In", "NotIn"], place.child("operator"), wrong);
    if let Some(container) = codes.at(&["containerName"]).and_then(Value::as_str)
        && !containers.contains(container)
    {
        let detail = "must be one of the container or initContainer names in the pod template";
        let place = place.child("containerName");
        wrong.push(FieldError::invalid(place, container, detail));
    }
    let values = codes.list(&["values"]);
    let place = place.child("values");
    let shown = || Value::Array(values.to_vec());
    if values.is_empty() {
        let detail = "at least one value is required";
        wrong.push(FieldError::invalid(place.clone(), shown(), detail));
    } else if values.len() > 255 {
        wrong.push(FieldError::too_many(place.clone(), values.len(), 255));
    }
    let mut seen: HashSet<i64> = HashSet::new();
    let mut before = None;
    let mut ordered = true;
    for (index, code) in values.iter().filter_map(Value::as_i64).enumerate() {
        let place = place.index(index);
        if operator == "In" && code == 0 {
            let detail = "must not be 0 for the In operator";
            wrong.push(FieldError::invalid(place.clone(), code, detail));
        }
        if !seen.insert(code) {
            wrong.push(FieldError::duplicate(place, code));
        }
        ordered &= before.is_none_or(|before| before <= code);
        before = Some(code);
    }
    if !ordered {
        wrong.push(FieldError::invalid(place, shown(), "must be ordered"));
    }
}

fn pod_conditions(conditions: &[Value], place: &FieldPath, wrong: &mut Errors) {
    if conditions.len() > 20 {
        wrong.push(FieldError::too_many(place.clone(), conditions.len(), 20));
    }
    for (index, condition) in conditions.iter().enumerate() {
        let place = place.index(index);
        let ty = condition.text(&["type"]);
        name(ty, names::qualified_name, place.child("type"), wrong);
        let status = condition.text(&["status"]);
        let known = ["False", "True", "Unknown"];
        chosen(status, &known, place.child("status"), wrong);
    }
}

/// Validates the success policy.
pub(super) fn success(spec: &Value, place: &FieldPath, wrong: &mut Errors) {
    let policy = spec.at(&["successPolicy"]).unwrap_or(&Value::Null);
    if spec.text(&["completionMode"]) != "Indexed" {
        let detail = "requires indexed completion mode";
        return wrong.push(FieldError::invalid(place.clone(), policy.clone(), detail));
    }
    let rules = policy.list(&["rules"]);
    let place = place.child("rules");
    if rules.is_empty() {
        let detail = "at least one rules must be specified when the successPolicy is specified";
        wrong.push(FieldError::required(place.clone(), detail));
    }
    if rules.len() > 20 {
        wrong.push(FieldError::too_many(place.clone(), rules.len(), 20));
    }
    let completions = spec.int(&["completions"]).unwrap_or(0);
    for (index, rule) in rules.iter().enumerate() {
        let place = place.index(index);
        let indexes = rule.at(&["succeededIndexes"]).and_then(Value::as_str);
        let count = rule.int(&["succeededCount"]);
        if indexes.is_none() && count.is_none() {
            let detail = "at least one of succeededCount or succeededIndexes must be specified";
            wrong.push(FieldError::required(place.clone(), detail));
        }
        let mut total = 0;
        if let Some(text) = indexes {
            match count_indexes(text, completions) {
                Ok(found) => total = found,
                Err(why) => wrong.push(FieldError::invalid(
                    place.child("succeededIndexes"),
                    text,
                    format!("error parsing succeededIndexes: {why}"),
                )),
            }
        }
        let Some(count) = count else {
            continue;
        };
        let place = place.child("succeededCount");
        not_negative(Some(count), place.clone(), wrong);
        if count > completions {
            let detail = format!(
                "must be less than or equal to {completions} (the number of specified completions)"
            );
            wrong.push(FieldError::invalid(place.clone(), count, detail));
        }
        if indexes.is_some() && count > total {
            let detail = format!(
                "must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
            );
            wrong.push(FieldError::invalid(place, count, detail));
        }
    }
}

/// Counts the indexes in a text such as `0,3-5`; they must be sorted and below `completions`.
pub(super) fn count_indexes(text: &str, completions: i64) -> Result<i64, String> {
    if text.is_empty() {
        return Ok(0);
    }
    let number = |text: &str| {
        text.parse::<i64>()
            .map_err(|_| format!("cannot convert string to integer for index: \"{text}\""))
    };
    let mut last: Option<i64> = None;
    let mut total = 0;
    for part in text.split(',') {
        let ends: Vec<&str> = part.split('-').collect();
        if ends.len() > 2 {
            return Err(format!(
                "the fragment \"{part}\" violates the requirement that an index interval can have at most two parts separated by '-'"
            ));
        }
        let first = number(ends[0])?;
        if first >= completions {
            return Err(format!("too large index: \"{}\"", ends[0]));
        }
        if last.is_some_and(|last| last >= first) {
            let last = last.unwrap_or_default();
            return Err(format!(
                "non-increasing order, previous: {last}, current: {first}"
            ));
        }
        let mut end = first;
        if let Some(text) = ends.get(1) {
            end = number(text)?;
            if end >= completions {
                return Err(format!("too large index: \"{text}\""));
            }
            if first >= end {
                return Err(format!(
                    "non-increasing order, previous: {first}, current: {end}"
                ));
            }
        }
        total += end - first + 1;
        last = Some(end);
    }
    Ok(total)
}
