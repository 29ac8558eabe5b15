//! Columns of Event, of the core group and of `events.k8s.io`.

use super::{UNKNOWN, since, text};
use crate::reach::Reach;
use bareboat_api::kind::{Column, Now};
use bareboat_api::{Str, Value};

/// Returns the table columns of Event, for both groups.
pub(crate) fn events() -> Vec<Column> {
    vec![
        Column::string("Last Seen", |event, now| last_seen(event, now).into()),
        text("Type", &["type"]),
        text("Reason", &["reason"]),
        Column::string("Object", |event, _| object(event)),
        Column::string("Subobject", |event, _| {
            either(
                event,
                &["involvedObject", "fieldPath"],
                &["regarding", "fieldPath"],
            )
            .into()
        })
        .wide(),
        Column::string("Source", |event, _| source(event)).wide(),
        Column::string("Message", |event, _| {
            either(event, &["message"], &["note"]).trim().into()
        }),
        Column::string("First Seen", |event, now| first_seen(event, now).into()).wide(),
        Column::string("Count", |event, _| count(event).into()).wide(),
        Column {
            format: Str::const_new("name"),
            ..text("Name", &["metadata", "name"]).wide()
        },
    ]
}

/// Returns the text at the core group's path, or else at that of `events.k8s.io`.
fn either<'a>(event: &'a Value, core: &[&str], newer: &[&str]) -> &'a str {
    match event.text(core) {
        "" => event.text(newer),
        text => text,
    }
}

fn first_seen(event: &Value, now: Now) -> Str {
    match either(event, &["firstTimestamp"], &["deprecatedFirstTimestamp"]) {
        "" => since(event.text(&["eventTime"]), now),
        stamp => since(stamp, now),
    }
}

fn last_seen(event: &Value, now: Now) -> Str {
    let observed = event.text(&["series", "lastObservedTime"]);
    if !observed.is_empty() {
        return since(observed, now);
    }
    match either(event, &["lastTimestamp"], &["deprecatedLastTimestamp"]) {
        "" => match first_seen(event, now) {
            text if text.is_empty() => Str::const_new(UNKNOWN),
            text => text,
        },
        stamp => since(stamp, now),
    }
}

fn count(event: &Value) -> i64 {
    event
        .int(&["series", "count"])
        .or_else(|| event.int(&["count"]))
        .or_else(|| event.int(&["deprecatedCount"]))
        // An event without a count happened once.
        .filter(|count| *count != 0)
        .unwrap_or(1)
}

fn object(event: &Value) -> Value {
    let kind = either(event, &["involvedObject", "kind"], &["regarding", "kind"]).to_lowercase();
    let name = either(event, &["involvedObject", "name"], &["regarding", "name"]);
    if name.is_empty() {
        return kind.into();
    }
    format!("{kind}/{name}").into()
}

fn source(event: &Value) -> Value {
    let first = |candidates: [&[&str]; 3]| {
        candidates
            .into_iter()
            .map(|path| event.text(path))
            .find(|text| !text.is_empty())
            .unwrap_or("")
    };
    let component = first([
        &["source", "component"],
        &["deprecatedSource", "component"],
        &["reportingComponent"],
    ]);
    let component = if component.is_empty() {
        event.text(&["reportingController"])
    } else {
        component
    };
    let host = first([
        &["source", "host"],
        &["deprecatedSource", "host"],
        &["reportingInstance"],
    ]);
    if host.is_empty() {
        return component.into();
    }
    format!("{component}, {host}").into()
}
