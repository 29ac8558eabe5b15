//! What is left out of events whatever a policy says: the data of secrets, and tokens.

use crate::event::ObjectRef;
use bareboat_api::{Map, Value};

/// Stands for what is left out.
pub(crate) const REDACTED: &str = "<redacted>";
/// The members of a secret that may be shown.
const OPEN: [&str; 5] = ["apiVersion", "kind", "metadata", "type", "immutable"];
/// kubectl keeps a copy of what was applied here.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Leaves out of a body what nobody may read in an event.
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

/// Hides everything in a secret, or in a patch of one, but its metadata and type.
fn secret(body: &mut Value) {
    match body {
        Value::Array(operations) => operations.iter_mut().for_each(operation),
        Value::Object(map) => match map.get_str("kind") {
            // An answer without an object.
            Some("Status") => answer(map),
            Some("DeleteOptions") => data(map),
            Some("SecretList" | "Table" | "List") => list(map),
            _ => members(map),
        },
        other => *other = hidden(),
    }
}

/// One step of a JSON patch: where is shown, what is not.
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

/// Hides values and shows their keys.
fn values(value: &mut Value) {
    match value {
        Value::Object(map) => map.iter_mut().for_each(|(_, value)| *value = hidden()),
        other => *other = hidden(),
    }
}

/// Hides the data of what calls itself something else than a secret.
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

/// Hides what a Status may quote.
fn answer(map: &mut Map) {
    data(map);
    for key in ["message", "details"] {
        if let Some(value) = map.get_mut(key) {
            *value = hidden();
        }
    }
}

/// Hides every member called `token`, and what a Status may quote.
fn tokens(body: &mut Value) {
    match body {
        Value::Array(items) => items.iter_mut().for_each(tokens),
        Value::Object(map) => {
            if map.get_str("kind") == Some("Status") {
                answer(map);
            }
            for (key, value) in map.iter_mut() {
                // A JSON patch has it as a value.
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
