//! Differences that are known, by what both servers answer: a sequence ends where there is one.
//!
//! Each rule wants to see the whole shape of its difference on both sides. Anything else that differs is told.

use super::Done;
use crate::support::{Value, json};

/// Whether a difference is one: the request, their answer and ours.
type Rule = fn(&str, &Value, &Value) -> bool;

/// Why two answers may differ, if they may.
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
            "what lost its last element to an apply is null to it, and no good",
        ),
        (
            looks_early,
            "it looks for an address before it judges the service",
        ),
        (
            doubles_manager,
            "a write to the scale makes two entries of one manager",
        ),
        (stores_unseen, "it stores what nobody sees"),
        (
            counts_empty,
            "a list that is empty and one that is not there differ to it",
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

/// The order of elements without a key makes it panic; here such a patch is judged like any other.
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

/// Applying to the scale of a custom kind fails there; here it does what it does to the scale of any kind.
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

/// Whether nothing of an object changed but its replicas and what follows from that.
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

/// It refuses the null it made itself; here the member is gone, or nothing is left to be refused.
fn loses_last(_: &str, theirs: &Value, ours: &Value) -> bool {
    let made = |cause: &Value| {
        let text = cause["message"].as_str().unwrap_or("");
        text.ends_with("in body must be of type object: \"null\"")
            || text.ends_with("in body must be of type array: \"null\"")
    };
    let theirs_made = !causes(theirs).is_empty() && causes(theirs).iter().all(made);
    theirs["code"] == 422 && theirs_made && matches!(ours["code"].as_u64(), Some(200 | 201))
}

/// Both refuse, for different reasons.
fn looks_early(request: &str, theirs: &Value, ours: &Value) -> bool {
    request.contains("/services")
        && message(theirs).contains("failed to allocate IP: ")
        && theirs["live"].is_null()
        && ours["code"] == 422
        && !causes(ours).is_empty()
        && ours["live"].is_null()
}

/// Only the entries of managers differ, of which one is there twice.
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

/// Only the version moved.
fn stores_unseen(_: &str, theirs: &Value, ours: &Value) -> bool {
    let moved = &theirs["live"];
    let version = &moved["metadata"]["resourceVersion"];
    *moved == json!({"metadata": {"resourceVersion": version}})
        && ours["live"].is_null()
        && without(theirs, &["resourceVersion"]) == without(ours, &["resourceVersion"])
}

/// Only the generation moved, and with it the version.
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

/// An answer without some metadata, and without what is empty because of that.
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
