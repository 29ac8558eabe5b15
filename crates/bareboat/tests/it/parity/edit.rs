//! Small edits of objects: `spec/containers/0/image: nginx` sets a member, `null` removes it.

use crate::support::Value;

/// Applies all edits.
pub(super) fn edit(object: &mut Value, edits: &Value) {
    for (path, value) in edits.as_object().expect("edits are a map") {
        let steps: Vec<String> = path
            .split('/')
            .map(|step| step.replace("~1", "/"))
            .collect();
        set(object, &steps, value);
    }
}

fn set(at: &mut Value, steps: &[String], value: &Value) {
    let (first, rest) = steps.split_first().expect("a path is not empty");
    if let Value::Array(items) = at {
        let index = match first.as_str() {
            "-" => items.len(),
            digits => digits.parse().expect("an index or a dash"),
        };
        if rest.is_empty() && value.is_null() {
            items.remove(index);
            return;
        }
        if index == items.len() {
            items.push(Value::Null);
        }
        return put(&mut items[index], rest, value);
    }
    if !at.is_object() {
        *at = serde_json::json!({});
    }
    let map = at.as_object_mut().expect("just made one");
    if rest.is_empty() && value.is_null() {
        map.remove(first);
        return;
    }
    put(map.entry(first).or_insert(Value::Null), rest, value);
}

fn put(place: &mut Value, rest: &[String], value: &Value) {
    match rest {
        [] => *place = value.clone(),
        rest => set(place, rest, value),
    }
}

/// Formats edits briefly, for the name of a step.
pub(super) fn brief(edits: &Value) -> String {
    let text = |value: &Value| -> String {
        let text = value.to_string();
        match text.chars().count() {
            0..=32 => text,
            _ => text.chars().take(31).chain(['…']).collect(),
        }
    };
    match edits {
        Value::Object(map) => {
            let parts: Vec<String> = map
                .iter()
                .map(|(path, value)| format!("{path}={}", text(value)))
                .collect();
            parts.join(" ")
        }
        other => text(other),
    }
    .replace('|', "/")
}
