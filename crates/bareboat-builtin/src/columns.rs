//! Table columns of built-in kinds: shared pieces here, one file per family of kinds.
//!
//! The server adds the first column `Name`, unless a kind defines one itself.

mod cluster;
mod events;
mod extension;
mod network;
mod nodes;
mod pods;
mod services;
mod volumes;
mod workloads;

pub(crate) use cluster::*;
pub(crate) use events::events;
pub(crate) use extension::*;
pub(crate) use network::*;
pub(crate) use nodes::nodes;
pub(crate) use pods::{pod_is_done, pods};
pub(crate) use services::services;
pub(crate) use volumes::*;
pub(crate) use workloads::*;

use crate::reach::Reach;
use bareboat_api::kind::{Column, Now};
use bareboat_api::labels::Selector;
use bareboat_api::{Map, Str, Value};

/// Cell text for an empty value.
const NONE: &str = "<none>";
/// Cell text for an unset value.
const UNSET: &str = "<unset>";
/// Cell text for an unknown value.
const UNKNOWN: &str = "<unknown>";

/// Returns the table columns of kinds without columns of their own.
pub(crate) fn created_at() -> Vec<Column> {
    vec![
        Column::string("Created At", |object, _| {
            Value::string(object.text(&["metadata", "creationTimestamp"]))
        })
        .typed("date"),
    ]
}

/// Returns a column `Age`.
pub(crate) fn only_age() -> Vec<Column> {
    vec![Column::age()]
}

/// Returns a column with the text at a path, empty if missing.
fn text(name: &str, path: &'static [&'static str]) -> Column {
    Column::string(name, move |object, _| object.text(path).into())
}

/// Returns a column with the text at a path, or the given text if missing.
fn text_or(name: &str, path: &'static [&'static str], otherwise: &'static str) -> Column {
    Column::string(name, move |object, _| or(object.text(path), otherwise))
}

/// Returns a column with the number at a path, or zero.
fn number(name: &str, path: &'static [&'static str]) -> Column {
    Column::string(name, move |object, _| object.int(path).unwrap_or(0).into())
}

/// Like [`number`], with column type `integer`.
fn integer(name: &str, path: &'static [&'static str]) -> Column {
    number(name, path).typed("integer")
}

/// Returns a column with the boolean at a path, or `false`.
fn boolean(name: &str, path: &'static [&'static str]) -> Column {
    Column::string(name, move |object, _| object.flag(path).into()).typed("boolean")
}

/// Returns a column with the number of elements or members at a path.
fn count(name: &str, path: &'static [&'static str]) -> Column {
    Column::string(name, move |object, _| {
        Value::Int(match object.at(path) {
            Some(Value::Array(items)) => items.len() as i64,
            Some(Value::Object(map)) => map.len() as i64,
            _ => 0,
        })
    })
}

fn or(text: &str, otherwise: &'static str) -> Value {
    Value::string(if text.is_empty() { otherwise } else { text })
}

/// Formats the time since a timestamp as kubectl does, such as `5m`.
fn since(stamp: &str, now: Now) -> Str {
    now.since(stamp).unwrap_or(Str::const_new(UNKNOWN))
}

/// Returns wide columns with names and images of the containers of a pod template.
fn containers(path: &'static [&'static str]) -> [Column; 2] {
    let joined = move |object: &Value, member: &str| {
        let found: Vec<&str> = object
            .list(path)
            .iter()
            .map(|container| container.text(&[member]))
            .collect();
        Value::from(found.join(","))
    };
    [
        Column::string("Containers", move |object, _| joined(object, "name")),
        Column::string("Images", move |object, _| joined(object, "image")),
    ]
}

/// Formats a label selector.
fn selector_text(selector: Option<&Value>) -> Value {
    let Some(selector) = selector.filter(|value| !value.is_null()) else {
        return NONE.into();
    };
    match Selector::from_object(selector) {
        Ok(selector) => or(&selector.to_string(), NONE),
        Err(_) => "<error>".into(),
    }
}

/// Formats labels as `a=b,c=d`.
fn labels_text(labels: Option<&Map>) -> Value {
    let pairs: Vec<String> = labels
        .into_iter()
        .flat_map(Map::iter)
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or("")))
        .collect();
    or(&pairs.join(","), NONE)
}

/// Joins the first few texts and appends the number of the rest.
fn first_of(found: &[String], shown: usize) -> Value {
    if found.is_empty() {
        return UNSET.into();
    }
    with_more(found, shown, ",")
}

fn with_more(found: &[String], shown: usize, separator: &str) -> Value {
    let head = found[..found.len().min(shown)].join(separator);
    if found.len() > shown {
        return format!("{head} + {} more...", found.len() - shown).into();
    }
    head.into()
}

/// Returns the condition of the given type, if any.
fn condition<'a>(object: &'a Value, ty: &str) -> Option<&'a Value> {
    object
        .list(&["status", "conditions"])
        .iter()
        .find(|condition| condition.text(&["type"]) == ty)
}

fn condition_is_true(object: &Value, ty: &str) -> bool {
    condition(object, ty).is_some_and(|found| found.text(&["status"]) == "True")
}
