//! Known differences, recognized by both responses: a sequence ends at the first one.
//!
//! Each rule checks its whole difference on both sides. Any other difference is reported.

use super::Done;
use crate::support::{Value, json};

/// Recognizes a difference from the request, their response and ours.
type Rule = fn(&str, &Value, &Value) -> bool;

/// Returns why two responses may differ, if they may.
pub(super) fn excuse(theirs: &Done, ours: &Done) -> Option<&'static str> {
    if theirs.name != ours.name {
        return None;
    }
    let (request, theirs, ours) = (&theirs.request, &theirs.answer, &ours.answer);
    let rules: [(Rule, &'static str); 7] = [
        (panics, "it panics and hangs up"),
        (
            applies_scale,
            "it cannot apply to the scale of a custom kind",
        ),
        (
            loses_last,
            "a list that lost its last element to an apply becomes null and is rejected",
        ),
        (
            looks_early,
            "it allocates an address before it validates the service",
        ),
        (
            doubles_manager,
            "a write to the scale makes two entries of one manager",
        ),
        (stores_unseen, "it stores a change that is not visible"),
        (
            counts_empty,
            "it distinguishes an empty list from a missing one",
        ),
    ];
    let found = rules.iter().find(|(rule, _)| rule(request, theirs, ours));
    found.map(|(_, why)| *why)
}

fn message(answer: &Value) -> &str {
    answer["body"]["message"].as_str().unwrap_or("")
}

fn causes(answer: &Value) -> &[Value] {
    let causes = answer["body"]["details"]["causes"].as_array();
    causes.map_or(&[], Vec::as_slice)
}

/// Ordering elements without a key makes kube-apiserver panic; here such a patch is handled like any other.
fn panics(request: &str, theirs: &Value, ours: &Value) -> bool {
    let no_reason = ours["body"]["reason"].is_null();
    let judged = match ours["code"].as_u64() {
        Some(200 | 400 | 422) => true,
        Some(500) => no_reason,
        _ => false,
    };
    theirs["code"] == 0
        && theirs["live"].is_null()
        && request.starts_with("PATCH ")
        && request.contains("\"$setElementOrder/")
        && judged
}

/// kube-apiserver cannot apply to the scale of a custom kind; here it works as for any kind.
fn applies_scale(request: &str, theirs: &Value, ours: &Value) -> bool {
    const WORDS: &str = "request to convert CR to an invalid group/version: autoscaling/v1";
    let refused = theirs["code"] == 500 && message(theirs).ends_with(WORDS);
    let of_replicas = |cause: &Value| cause["field"] == ".spec.replicas";
    let fits = match ours["code"].as_u64() {
        Some(200) => ours["body"]["kind"] == "Scale" && only_replicas(&ours["live"]),
        Some(409 | 422) => {
            ours["live"].is_null() && matches!(causes(ours), [one] if of_replicas(one))
        }
        Some(500) => ours["live"].is_null() && message(ours).contains("the spec replicas field"),
        _ => false,
    };
    refused && theirs["live"].is_null() && request.contains("/scale?") && fits
}

/// Returns whether only the replicas of an object changed, and fields that depend on them.
fn only_replicas(live: &Value) -> bool {
    let within = |part: &Value, known: &[&str]| match part.as_object() {
        Some(members) => members.keys().all(|key| known.contains(&key.as_str())),
        None => part.is_null(),
    };
    let metadata = ["generation", "managedFields", "resourceVersion"];
    within(live, &["metadata", "spec"])
        && within(&live["metadata"], &metadata)
        && within(&live["spec"], &["replicas"])
}

/// kube-apiserver rejects a null that it created itself; here the member is removed.
fn loses_last(_: &str, theirs: &Value, ours: &Value) -> bool {
    let made = |cause: &Value| {
        let text = cause["message"].as_str().unwrap_or("");
        text.ends_with("in body must be of type object: \"null\"")
            || text.ends_with("in body must be of type array: \"null\"")
    };
    let theirs_made = !causes(theirs).is_empty() && causes(theirs).iter().all(made);
    theirs["code"] == 422 && theirs_made && matches!(ours["code"].as_u64(), Some(200 | 201))
}

/// Both reject, for different reasons.
fn looks_early(request: &str, theirs: &Value, ours: &Value) -> bool {
    request.contains("/services")
        && message(theirs).contains("failed to allocate IP: ")
        && theirs["live"].is_null()
        && ours["code"] == 422
        && !causes(ours).is_empty()
        && ours["live"].is_null()
}

/// Only the entries of managers differ, one of which exists twice.
fn doubles_manager(request: &str, theirs: &Value, ours: &Value) -> bool {
    let twice = |answer: &Value| {
        let order = answer["live"]["metadata"]["managedFields"]["order"].as_array();
        order.is_some_and(|order| (1..order.len()).any(|at| order[..at].contains(&order[at])))
    };
    let ignored = ["managedFields", "resourceVersion"];
    request.contains("/scale?")
        && twice(theirs)
        && !twice(ours)
        && without(theirs, &ignored) == without(ours, &ignored)
}

/// Only the version changed.
fn stores_unseen(_: &str, theirs: &Value, ours: &Value) -> bool {
    let moved = &theirs["live"];
    let version = &moved["metadata"]["resourceVersion"];
    *moved == json!({"metadata": {"resourceVersion": version}})
        && ours["live"].is_null()
        && without(theirs, &["resourceVersion"]) == without(ours, &["resourceVersion"])
}

/// Only the generation and the version changed.
fn counts_empty(request: &str, theirs: &Value, ours: &Value) -> bool {
    let counted = |answer: &Value| {
        let places = [&answer["live"], &answer["body"]];
        (places.iter()).any(|place| !place["metadata"]["generation"].is_null())
    };
    let ignored = ["generation", "resourceVersion"];
    request.contains("/networkpolicies/")
        && counted(theirs)
        && !counted(ours)
        && without(theirs, &ignored) == without(ours, &ignored)
}

/// Returns a response without some metadata, and without members that become empty.
fn without(answer: &Value, ignored: &[&str]) -> Value {
    let mut rest = answer.clone();
    for part in ["live", "body"] {
        let Some(place) = rest.get_mut(part) else {
            continue;
        };
        if let Some(metadata) = place.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|key, _| !ignored.contains(&key.as_str()));
        }
        if place["metadata"] == json!({})
            && let Some(members) = place.as_object_mut()
        {
            members.remove("metadata");
        }
        if *place == json!({})
            && let Some(members) = rest.as_object_mut()
        {
            members.remove(part);
        }
    }
    rest
}
