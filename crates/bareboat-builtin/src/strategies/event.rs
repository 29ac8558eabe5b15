//! Events of the core group and of `events.k8s.io`: one storage, two representations with different validation.

use super::Rules;
use super::check::{Errors, immutable, path};
use crate::reach::Reach;
use bareboat_api::kind::ConvertError;
use bareboat_api::{FieldError, Object, Value, names};

/// Members with different names in the two groups: core, `events.k8s.io`.
const NAMES: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// Returns what a member of an event of one group is called in the other group; `None` if it has the same name there.
pub(crate) fn name_in(group: &str, member: &str) -> Option<&'static str> {
    NAMES.iter().find_map(|(core, newer)| match group {
        "" => (*newer == member).then_some(*core),
        _ => (*core == member).then_some(*newer),
    })
}

/// Converts an event to the other group.
pub(crate) fn convert(
    mut event: Value,
    to: &str,
    _stored: Option<&Value>,
) -> Result<Value, ConvertError> {
    let map = event.make_object();
    if map.get_str("apiVersion") == Some(to) {
        return Ok(event);
    }
    let to_core = to == "v1";
    for (core, newer) in NAMES {
        let (from, into) = if to_core {
            (newer, core)
        } else {
            (core, newer)
        };
        if let Some(value) = map.remove(from) {
            map.insert(into, value);
        }
    }
    // Members that one group always prints and the other omits when empty.
    let always: [(&str, Value); 2] = [
        ("reportingComponent", "".into()),
        ("reportingInstance", "".into()),
    ];
    if to_core {
        for (member, empty) in always {
            if !map.contains_key(member) {
                map.insert(member, empty);
            }
        }
        if !map.contains_key("involvedObject") {
            map.insert("involvedObject", Value::object());
        }
    } else {
        for member in ["reportingController", "reportingInstance", "note"] {
            if map.get_str(member) == Some("") {
                map.remove(member);
            }
        }
    }
    map.insert("apiVersion", to.into());
    Ok(event)
}

/// Returns the strategy of Event of the core group: validation.
pub(crate) fn core_event() -> Rules {
    Rules::validating(|event, wrong| legacy(event, &CORE, wrong))
}

/// Returns the strategy of Event of `events.k8s.io`: validation, stricter than in the core group; updates may change
/// the series only.
pub(crate) fn newer_event() -> Rules {
    Rules {
        validate: Some(|event, wrong| legacy(event, &NEWER, wrong)),
        validate_new: Some(|event, wrong| strict(event.value(), wrong)),
        validate_update: Some(strict_update),
        ..Rules::default()
    }
}

/// Member names of one group for validation.
struct EventFields {
    object: &'static str,
    controller: &'static str,
    message: &'static str,
}

const CORE: EventFields = EventFields {
    object: "involvedObject",
    controller: "reportingComponent",
    message: "message",
};
const NEWER: EventFields = EventFields {
    object: "regarding",
    controller: "reportingController",
    message: "note",
};

fn legacy(event: &Object, fields: &EventFields, wrong: &mut Errors) {
    let value = event.value();
    let namespace = event.namespace();
    let involved = value.text(&[fields.object, "namespace"]);
    let mismatch = |wrong: &mut Errors| {
        wrong.push(FieldError::invalid(
            path(&["involvedObject", "namespace"]),
            involved,
            "does not match event.namespace",
        ));
    };
    if value.text(&["eventTime"]).is_empty() {
        let fits = if involved.is_empty() {
            matches!(namespace, "" | "default")
        } else {
            namespace == involved
        };
        if !fits {
            mismatch(wrong);
        }
    } else {
        if involved.is_empty() && !matches!(namespace, "default" | "kube-system") {
            mismatch(wrong);
        }
        reporter(value, fields, wrong);
    }
    for message in names::dns1123_subdomain(namespace) {
        wrong.push(FieldError::invalid(
            path(&["namespace"]),
            namespace,
            message,
        ));
    }
}

/// Validates that an event with a time has a reporter, reason and action.
fn reporter(event: &Value, fields: &EventFields, wrong: &mut Errors) {
    let controller = event.text(&[fields.controller]);
    if controller.is_empty() {
        wrong.push(FieldError::required(path(&[fields.controller]), ""));
    }
    for message in names::qualified_name(controller) {
        wrong.push(FieldError::invalid(
            path(&[fields.controller]),
            controller,
            message,
        ));
    }
    for member in ["reportingInstance", "action", "reason"] {
        let text = event.text(&[member]);
        if text.is_empty() {
            wrong.push(FieldError::required(path(&[member]), ""));
        }
        at_most(text, 128, member, wrong);
    }
    at_most(event.text(&[fields.message]), 1024, "message", wrong);
}

fn at_most(text: &str, limit: usize, member: &str, wrong: &mut Errors) {
    if text.len() > limit {
        let detail = format!("can have at most {limit} characters");
        wrong.push(FieldError::invalid(path(&[member]), "", detail));
    }
}

fn strict(event: &Value, wrong: &mut Errors) {
    series(event, wrong);
    if event.text(&["eventTime"]).is_empty() {
        wrong.push(FieldError::required(path(&["eventTime"]), ""));
    }
    let ty = event.text(&["type"]);
    if !matches!(ty, "Normal" | "Warning") {
        let detail = format!("has invalid value: {ty}");
        wrong.push(FieldError::invalid(path(&["type"]), "", detail));
    }
    for (member, core) in [
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
    ] {
        let set = event
            .at(&[member])
            .is_some_and(|value| !value.is_null() && value.as_i64() != Some(0));
        if set {
            wrong.push(FieldError::invalid(path(&[core]), "", "needs to be unset"));
        }
    }
    if event
        .members(&["deprecatedSource"])
        .is_some_and(|source| !source.is_empty())
    {
        wrong.push(FieldError::invalid(
            path(&["source"]),
            "",
            "needs to be unset",
        ));
    }
}

fn series(event: &Value, wrong: &mut Errors) {
    if !event.has(&["series"]) {
        return;
    }
    if event.int(&["series", "count"]).unwrap_or(0) < 2 {
        wrong.push(FieldError::invalid(
            path(&["series.count"]),
            "",
            "should be at least 2",
        ));
    }
    if event.text(&["series", "lastObservedTime"]).is_empty() {
        wrong.push(FieldError::required(path(&["series.lastObservedTime"]), ""));
    }
}

/// Validates that only the series of an `events.k8s.io` event changes.
fn strict_update(new: &Object, old: &Object, wrong: &mut Errors) {
    if new.get("series") != old.get("series") {
        series(new.value(), wrong);
    }
    let text = || Value::string("");
    for (member, shown, empty) in [
        ("regarding", "involvedObject", Value::object()),
        ("reason", "reason", text()),
        ("note", "message", text()),
        ("deprecatedSource", "source", Value::object()),
        ("deprecatedFirstTimestamp", "firstTimestamp", Value::Null),
        ("deprecatedLastTimestamp", "lastTimestamp", Value::Null),
        ("deprecatedCount", "count", Value::Int(0)),
        ("type", "type", text()),
        ("eventTime", "eventTime", Value::Null),
        ("action", "action", text()),
        ("related", "related", Value::Null),
        ("reportingController", "reportingController", text()),
        ("reportingInstance", "reportingInstance", text()),
    ] {
        let (new, old) = (
            new.get(member).unwrap_or(&empty),
            old.get(member).unwrap_or(&empty),
        );
        immutable(Some(new), Some(old), path(&[shown]), wrong);
    }
}
