//! Answers of the other server that are no example: what follows them in a sequence is not compared.

use crate::support::{Value, json};

/// Why an answer is no example, if it is none.
pub(super) fn excuse(answer: &Value) -> Option<&'static str> {
    if answer["code"] == 0 {
        return Some("it panics and hangs up");
    }
    let message = answer["body"]["message"].as_str().unwrap_or("");
    if message.contains("request to convert CR to an invalid group/version: autoscaling/v1") {
        return Some("it cannot apply to the scale of a custom kind");
    }
    if message.contains("in body must be of type object: \"null\"")
        || message.contains("in body must be of type array: \"null\"")
    {
        return Some("what lost its last element to an apply is null to it, and no good");
    }
    if message.contains("failed to allocate IP: ") {
        return Some("it looks for an address before it judges the service");
    }
    let live = &answer["live"];
    let order = live["metadata"]["managedFields"]["order"].as_array();
    if order.is_some_and(|order| (1..order.len()).any(|at| order[..at].contains(&order[at]))) {
        return Some("a write to the scale makes two entries of one manager");
    }
    let mut rest = live.clone();
    if let Some(metadata) = rest.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("resourceVersion");
        if metadata.is_empty() {
            return (rest == json!({"metadata": {}})).then_some("it stores what nobody sees");
        }
        if metadata.remove("generation").is_some() && live["spec"].is_null() {
            return Some("a list that is empty and one that is not there differ to it");
        }
    }
    None
}
