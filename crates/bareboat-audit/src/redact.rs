//! Removes the data of secrets and tokens from events, whatever the policy says.

use crate::event::ObjectRef;
use bareboat_api::{Map, Value};

/// Replaces a redacted value.
pub(crate) const REDACTED: &str = "<redacted>";
/// The members of a secret that may be shown.
const OPEN: [&str; 5] = ["apiVersion", "kind", "metadata", "type", "immutable"];
/// The annotation in which kubectl keeps a copy of the applied object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Redacts confidential data in a body.
pub(crate) fn redact(object: Option<&ObjectRef>, body: &mut Value) {
    let Some(object) = object.filter(|object| object.is_confidential()) else {
        return;
    };
    if object.resource == "secrets" {
        secret(body);
    } else {
        tokens(body);
    }
}

fn hidden() -> Value {
    Value::string(REDACTED)
}

/// Redacts everything but metadata and type in a secret, or in a patch of one.
fn secret(body: &mut Value) {
    match body {
        Value::Array(operations) => operations.iter_mut().for_each(operation),
        Value::Object(map) => match map.get_str("kind") {
            // The answer is a Status, not an object.
            Some("Status") => answer(map),
            Some("DeleteOptions") => data(map),
            Some("SecretList" | "Table" | "List") => list(map),
            _ => members(map),
        },
        other => *other = hidden(),
    }
}

/// Redacts the value of one operation of a JSON patch, and keeps its path.
fn operation(operation: &mut Value) {
    match operation {
        Value::Object(map) => {
            if let Some(value) = map.get_mut("value") {
                *value = hidden();
            }
        }
        other => *other = hidden(),
    }
}

fn members(map: &mut Map) {
    for (key, value) in map.iter_mut() {
        if OPEN.contains(&key) {
            continue;
        }
        values(value);
    }
    if let Some(Value::Object(annotations)) = map
        .get_mut("metadata")
        .and_then(|it| it.at_mut(&["annotations"]))
        && let Some(copy) = annotations.get_mut(LAST_APPLIED)
    {
        *copy = hidden();
    }
}

/// Redacts values and keeps their keys.
fn values(value: &mut Value) {
    match value {
        Value::Object(map) => map.iter_mut().for_each(|(_, value)| *value = hidden()),
        other => *other = hidden(),
    }
}

/// Redacts the data of an object whose kind is not Secret.
fn data(map: &mut Map) {
    for key in ["data", "stringData"] {
        if let Some(value) = map.get_mut(key) {
            values(value);
        }
    }
}

fn list(map: &mut Map) {
    data(map);
    if let Some(Value::Array(items)) = map.get_mut("items") {
        items.iter_mut().for_each(secret);
    }
    if let Some(Value::Array(rows)) = map.get_mut("rows") {
        for row in rows {
            if let Some(shown) = row.at_mut(&["object"]) {
                secret(shown);
            }
        }
    }
}

/// Redacts the parts of a Status that may quote a body.
fn answer(map: &mut Map) {
    data(map);
    for key in ["message", "details"] {
        if let Some(value) = map.get_mut(key) {
            *value = hidden();
        }
    }
}

/// Redacts every member called `token`, and the parts of a Status that may quote a body.
fn tokens(body: &mut Value) {
    match body {
        Value::Array(items) => items.iter_mut().for_each(tokens),
        Value::Object(map) => {
            if map.get_str("kind") == Some("Status") {
                answer(map);
            }
            for (key, value) in map.iter_mut() {
                // In a JSON patch the token is the value of an operation.
                if matches!(key, "token" | "value" | "error") || key == LAST_APPLIED {
                    *value = hidden();
                } else {
                    tokens(value);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
