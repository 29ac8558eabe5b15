//! Validates the status of pods.

use super::super::check::{Errors, IMMUTABLE, ip, name, path};
use crate::reach::Reach;
use bareboat_api::{FieldError, Object, Value, names};
use std::collections::HashMap;

/// Validates a change of a pod's status.
pub(super) fn validate(new: &Object, old: &Object, wrong: &mut Errors) {
    let place = path(&["status"]);
    let status = new.get("status").unwrap_or(&Value::Null);
    let nominated = status.text(&["nominatedNodeName"]);
    if !nominated.is_empty() {
        let place = place.child("nominatedNodeName");
        name(nominated, names::dns1123_subdomain, place.clone(), wrong);
        if !new.value().text(&["spec", "nodeName"]).is_empty()
            && nominated != old.value().text(&["status", "nominatedNodeName"])
        {
            let detail = "may not be set on pods that are already bound to a node";
            wrong.push(FieldError::forbidden(place, detail));
        }
    }
    for (index, condition) in status.list(&["conditions"]).iter().enumerate() {
        let place = place.child("conditions").index(index);
        let observed = condition.int(&["observedGeneration"]);
        if let Some(observed) = observed.filter(|number| *number < 0) {
            let detail = "must be a non-negative integer";
            let place = place.child("observedGeneration");
            wrong.push(FieldError::invalid(place, observed, detail));
        }
        let kind = condition.text(&["type"]);
        if !["PodScheduled", "Ready", "Initialized"].contains(&kind) {
            name(kind, names::qualified_name, place.child("Type"), wrong);
        }
    }
    let class = old.value().text(&["status", "qosClass"]);
    let given = status.text(&["qosClass"]);
    if !class.is_empty() && given != class {
        let place = place.child("qosClass");
        wrong.push(FieldError::invalid(place, given, IMMUTABLE));
    }
    for (member, inner) in [("podIPs", "ip"), ("hostIPs", "ip")] {
        for (index, address) in status.list(&[member]).iter().enumerate() {
            ip(
                address.text(&[inner]),
                place.child(member).index(index),
                wrong,
            );
        }
    }
    let policy = new.value().text(&["spec", "restartPolicy"]);
    for (list, ends) in [
        ("containerStatuses", policy != "Always"),
        ("initContainerStatuses", policy == "Never"),
    ] {
        if ends {
            stays_ended(new, old, list, policy, wrong);
        }
    }
}

/// Validates that a terminated container stays terminated unless it is restarted.
fn stays_ended(new: &Object, old: &Object, list: &str, policy: &str, wrong: &mut Errors) {
    let before = old.value().list(&["status", list]).iter().rev();
    // Of two statuses with the same name the first counts.
    let before: HashMap<&str, &Value> = before.map(|was| (was.text(&["name"]), was)).collect();
    for (index, now) in new.value().list(&["status", list]).iter().enumerate() {
        let was = before.get(now.text(&["name"]));
        let Some(ended) = was.and_then(|was| was.at(&["state", "terminated"])) else {
            continue;
        };
        let failed = ended.int(&["exitCode"]).unwrap_or(0) != 0;
        if ended.is_null() || policy == "OnFailure" && failed {
            continue;
        }
        if !now.has(&["state", "terminated"]) {
            let place = path(&["status", list]).index(index).child("state");
            let detail = "may not be transitioned to non-terminated state";
            wrong.push(FieldError::forbidden(place, detail));
        }
    }
}
