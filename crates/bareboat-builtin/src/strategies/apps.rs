//! Deployments and their relatives, and replication controllers.

use super::Rules;
use super::check::{
    Errors, immutable, name, not_negative, number_or_percent, one_of, path, percent, required,
};
use super::pod_spec;
use super::volumes::validate_claim;
use super::warnings;
use crate::defaults::TEMPLATE_GENERATION;
use crate::reach::Reach;
use bareboat_api::kind::WriteContext;
use bareboat_api::labels::{Selector, validate_selector};
use bareboat_api::{FieldError, FieldPath, Map, Object, Value, names};
use std::collections::HashSet;

/// What deployments do.
pub(crate) fn deployment() -> Rules {
    Rules::validating(|object, wrong| {
        let spec = spec_of(object);
        replicas(spec, wrong);
        selector(spec, "deployment", wrong);
        template(spec, "ReplicaSet", wrong);
        deployment_strategy(spec, wrong);
        for member in [
            "minReadySeconds",
            "revisionHistoryLimit",
            "progressDeadlineSeconds",
        ] {
            not_negative(spec.int(&[member]), path(&["spec", member]), wrong);
        }
        deadline(spec, wrong);
    })
    .updating(selector_is_immutable)
    .phases(|new, old, _| {
        // Whoever tells how far it got does not change what it is called.
        match old.meta("labels").cloned() {
            Some(labels) => new.set_meta("labels", labels),
            None => {
                new.metadata_mut().remove("labels");
            }
        }
    })
    .statuses(|new, old, wrong| {
        counts(new, &["updatedReplicas"], "readyReplicas", wrong);
        collisions(new, old, wrong);
    })
    .warning(warnings::workload)
}

/// What replica sets do.
pub(crate) fn replica_set() -> Rules {
    Rules::validating(|object, wrong| {
        let spec = spec_of(object);
        replicas(spec, wrong);
        not_negative(
            spec.int(&["minReadySeconds"]),
            path(&["spec", "minReadySeconds"]),
            wrong,
        );
        // Upstream says so.
        selector(spec, "deployment", wrong);
        template(spec, "ReplicaSet", wrong);
    })
    .updating(selector_is_immutable)
    .statuses(|new, _, wrong| counts(new, &["fullyLabeledReplicas"], "readyReplicas", wrong))
    .warning(warnings::workload)
}

/// What replication controllers do; their selector is a plain map.
pub(crate) fn replication_controller() -> Rules {
    Rules::validating(|object, wrong| {
        let spec = spec_of(object);
        replicas(spec, wrong);
        not_negative(
            spec.int(&["minReadySeconds"]),
            path(&["spec", "minReadySeconds"]),
            wrong,
        );
        let wanted = spec.members(&["selector"]).filter(|map| !map.is_empty());
        if wanted.is_none() {
            wrong.push(FieldError::required(path(&["spec", "selector"]), ""));
        }
        if !spec.has(&["template"]) {
            wrong.push(FieldError::required(path(&["spec", "template"]), ""));
            return;
        }
        let Some(wanted) = wanted else {
            return;
        };
        let labels = spec.members(&["template", "metadata", "labels"]);
        let matches = wanted
            .iter()
            .all(|(key, value)| labels.and_then(|labels| labels.get(key)) == Some(value));
        if !matches {
            mismatch(labels, wrong);
        }
        template(spec, "ReplicationController", wrong);
    })
    .statuses(|new, _, wrong| counts(new, &["fullyLabeledReplicas"], "readyReplicas", wrong))
    .warning(warnings::workload)
}

/// What stateful sets do.
pub(crate) fn stateful_set() -> Rules {
    Rules::validating(validate_stateful_set)
        .creating(|set, _| without_unavailable(set))
        .changing(|set, _, _| without_unavailable(set))
        .statuses(|new, old, wrong| {
            let others = ["currentReplicas", "updatedReplicas"];
            counts(new, &others, "status.readyReplicas", wrong);
            collisions(new, old, wrong);
        })
        .updating(|new, old, wrong| {
        const MUTABLE: [&str; 7] = [
            "replicas",
            "template",
            "updateStrategy",
            "minReadySeconds",
            "ordinals",
            "revisionHistoryLimit",
            "persistentVolumeClaimRetentionPolicy",
        ];
        let rest = |object: &Object| {
            let mut spec = spec_of(object).clone();
            if let Value::Object(map) = &mut spec {
                for member in MUTABLE {
                    map.remove(member);
                }
            }
            spec
        };
        if rest(new) != rest(old) {
            wrong.push(FieldError::forbidden(
                path(&["spec"]),
                "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
            ));
        }
    })
}

/// What daemon sets do.
pub(crate) fn daemon_set() -> Rules {
    Rules::validating(validate_daemon_set)
        .creating(|new, _| {
            if template_generation(new).is_none() {
                set_template_generation(new, 1);
            }
        })
        .changing(prepare_daemon_set)
        .updating(selector_is_immutable)
        .statuses(|new, old, wrong| {
            for member in [
                "currentNumberScheduled",
                "numberMisscheduled",
                "desiredNumberScheduled",
                "numberReady",
                "observedGeneration",
                "updatedNumberScheduled",
                "numberAvailable",
                "numberUnavailable",
                "collisionCount",
            ] {
                let count = new.value().int(&["status", member]);
                not_negative(count, path(&["status", member]), wrong);
            }
            collisions(new, old, wrong);
        })
        .warning(|new, old| warnings::template(new, old, &["spec", "template"]))
}

/// What controller revisions do: their data never changes.
pub(crate) fn controller_revision() -> Rules {
    Rules::validating(|object, wrong| {
        not_negative(
            object.value().int(&["revision"]),
            path(&["revision"]),
            wrong,
        );
        let complaint = match object.get("data") {
            None | Some(Value::Null) => "data is mandatory",
            Some(Value::Object(_)) => return,
            Some(_) => "data must be a valid JSON object",
        };
        wrong.push(FieldError::required(path(&["data"]), complaint));
    })
    .updating(|new, old, wrong| {
        immutable(new.get("data"), old.get("data"), path(&["data"]), wrong);
    })
}

/// How many pods of a rolling update may be missing is behind a gate that is shut by default.
fn without_unavailable(set: &mut Object) {
    let rolling = set
        .value_mut()
        .at_mut(&["spec", "updateStrategy", "rollingUpdate"]);
    if let Some(rolling) = rolling.and_then(Value::as_object_mut) {
        rolling.remove("maxUnavailable");
    }
}

/// Counts of pods: no part is more than the whole, and what is available is ready.
fn counts(object: &Object, others: &[&str], ready: &str, wrong: &mut Errors) {
    let place = path(&["status"]);
    let count = |member: &str| object.value().int(&["status", member]).unwrap_or(0);
    let parts = ["readyReplicas", "availableReplicas"];
    for member in ["observedGeneration", "replicas", "collisionCount"]
        .iter()
        .chain(others)
        .chain(&parts)
    {
        not_negative(Some(count(member)), place.child(member), wrong);
    }
    for member in others.iter().chain(&parts) {
        if count(member) > count("replicas") {
            let detail = "cannot be greater than status.replicas";
            wrong.push(FieldError::invalid(
                place.child(member),
                count(member),
                detail,
            ));
        }
    }
    let available = count("availableReplicas");
    if available > count("readyReplicas") {
        let detail = format!("cannot be greater than {ready}");
        let place = place.child("availableReplicas");
        wrong.push(FieldError::invalid(place, available, detail));
    }
}

/// Names that collided once count for ever.
fn collisions(new: &Object, old: &Object, wrong: &mut Errors) {
    let count = |object: &Object| object.value().int(&["status", "collisionCount"]);
    let Some(before) = count(old) else {
        return;
    };
    let after = count(new).unwrap_or(0);
    if after < before {
        let place = path(&["status", "collisionCount"]);
        wrong.push(FieldError::invalid(place, after, "cannot be decremented"));
    }
}

fn spec_of(object: &Object) -> &Value {
    object.get("spec").unwrap_or(&Value::Null)
}

fn replicas(spec: &Value, wrong: &mut Errors) {
    not_negative(spec.int(&["replicas"]), path(&["spec", "replicas"]), wrong);
}

/// The selector must say something, and it must match the template.
fn selector(spec: &Value, kind: &str, wrong: &mut Errors) {
    let place = path(&["spec", "selector"]);
    let given = spec.at(&["selector"]).filter(|value| !value.is_null());
    match given {
        // Of a daemon set only the labels are told to be wrong.
        None if kind == "daemonset" => {}
        None => wrong.push(FieldError::required(place, "")),
        Some(given) => {
            let complaints = validate_selector(given, &place);
            if !complaints.is_empty() {
                let detail = "invalid label selector";
                wrong.push(FieldError::invalid(place.clone(), given.clone(), detail));
            }
            wrong.extend(complaints);
            let terms = given.members(&["matchLabels"]).map_or(0, Map::len)
                + given.list(&["matchExpressions"]).len();
            if terms == 0 {
                let detail = format!("empty selector is invalid for {kind}");
                wrong.push(FieldError::invalid(place, given.clone(), detail));
            }
        }
    }
    matches_template(spec, wrong);
}

pub(super) fn matches_template(spec: &Value, wrong: &mut Errors) {
    let labels = spec.members(&["template", "metadata", "labels"]);
    let matches = match spec.at(&["selector"]).filter(|value| !value.is_null()) {
        // A selector nobody wrote matches nothing.
        None => Ok(false),
        Some(given) => Selector::from_object(given).map(|selector| selector.matches_map(labels)),
    };
    if matches == Ok(false) {
        mismatch(labels, wrong);
    }
}

fn mismatch(labels: Option<&Map>, wrong: &mut Errors) {
    wrong.push(FieldError::invalid(
        path(&["spec", "template", "metadata", "labels"]),
        labels.cloned().map_or(Value::Null, Value::Object),
        "`selector` does not match template `labels`",
    ));
}

fn template(spec: &Value, kind: &str, wrong: &mut Errors) {
    let place = path(&["spec", "template"]);
    let empty = Value::object();
    let template = spec.at(&["template"]).unwrap_or(&empty);
    pod_spec::validate_template(template, &place, wrong);
    let place = place.child("spec");
    let policy = template.text(&["spec", "restartPolicy"]);
    if policy != "Always" {
        one_of(policy, &["Always"], place.child("restartPolicy"), wrong);
    }
    if template.has(&["spec", "activeDeadlineSeconds"]) {
        wrong.push(FieldError::forbidden(
            place.child("activeDeadlineSeconds"),
            format!("activeDeadlineSeconds in {kind} is not Supported"),
        ));
    }
}

fn deadline(spec: &Value, wrong: &mut Errors) {
    let Some(deadline) = spec.int(&["progressDeadlineSeconds"]) else {
        return;
    };
    if deadline <= spec.int(&["minReadySeconds"]).unwrap_or(0) {
        wrong.push(FieldError::invalid(
            path(&["spec", "progressDeadlineSeconds"]),
            deadline,
            "must be greater than minReadySeconds",
        ));
    }
}

fn selector_is_immutable(new: &Object, old: &Object, wrong: &mut Errors) {
    immutable(
        new.at(&["spec", "selector"]),
        old.at(&["spec", "selector"]),
        path(&["spec", "selector"]),
        wrong,
    );
}

fn is_zero(value: Option<&Value>) -> bool {
    match value {
        Some(Value::Int(number)) => *number == 0,
        Some(Value::String(text)) => percent(text).or_else(|| text.parse().ok()).unwrap_or(0) == 0,
        _ => true,
    }
}

fn at_most_all(value: Option<&Value>, place: FieldPath, wrong: &mut Errors) {
    if let Some(Value::String(text)) = value
        && percent(text).is_some_and(|number| number > 100)
    {
        wrong.push(FieldError::invalid(
            place,
            text.clone(),
            "must not be greater than 100%",
        ));
    }
}

fn deployment_strategy(spec: &Value, wrong: &mut Errors) {
    let place = path(&["spec", "strategy"]);
    let empty = Value::object();
    let strategy = spec.at(&["strategy"]).unwrap_or(&empty);
    let rolling = strategy
        .at(&["rollingUpdate"])
        .filter(|value| !value.is_null());
    match (strategy.text(&["type"]), rolling) {
        ("Recreate", Some(_)) => wrong.push(FieldError::forbidden(
            place.child("rollingUpdate"),
            "may not be specified when strategy `type` is 'Recreate'",
        )),
        ("Recreate", None) => {}
        ("RollingUpdate", Some(rolling)) => {
            let place = place.child("rollingUpdate");
            let unavailable = rolling.at(&["maxUnavailable"]);
            let surge = rolling.at(&["maxSurge"]);
            number_or_percent(unavailable, place.child("maxUnavailable"), wrong);
            number_or_percent(surge, place.child("maxSurge"), wrong);
            if is_zero(unavailable) && is_zero(surge) {
                wrong.push(FieldError::invalid(
                    place.child("maxUnavailable"),
                    unavailable.cloned().unwrap_or_default(),
                    "may not be 0 when `maxSurge` is 0",
                ));
            }
            at_most_all(unavailable, place.child("maxUnavailable"), wrong);
        }
        ("RollingUpdate", None) => wrong.push(FieldError::required(
            place.child("rollingUpdate"),
            "this should be defaulted and never be nil",
        )),
        _ => wrong.push(FieldError::not_supported(
            place,
            strategy.clone(),
            ["Recreate", "RollingUpdate"],
        )),
    }
}

fn validate_stateful_set(object: &Object, wrong: &mut Errors) {
    let spec = spec_of(object);
    let place = path(&["spec"]);
    let management = spec.text(&["podManagementPolicy"]);
    if required(management, place.child("podManagementPolicy"), wrong)
        && !matches!(management, "OrderedReady" | "Parallel")
    {
        wrong.push(FieldError::invalid(
            place.child("podManagementPolicy"),
            management,
            "must be 'OrderedReady' or 'Parallel'",
        ));
    }
    update_strategy(spec, &place.child("updateStrategy"), wrong);
    for member in ["whenDeleted", "whenScaled"] {
        one_of(
            spec.text(&["persistentVolumeClaimRetentionPolicy", member]),
            &["Retain", "Delete"],
            place
                .child("persistentVolumeClaimRetentionPolicy")
                .child(member),
            wrong,
        );
    }
    replicas(spec, wrong);
    not_negative(
        spec.int(&["minReadySeconds"]),
        place.child("minReadySeconds"),
        wrong,
    );
    not_negative(
        spec.int(&["ordinals", "start"]),
        place.child("ordinals.start"),
        wrong,
    );
    let service = spec.text(&["serviceName"]);
    if !service.is_empty() {
        name(
            service,
            names::dns1123_label,
            place.child("serviceName"),
            wrong,
        );
    }
    selector(spec, "statefulset", wrong);
    for (index, claim) in spec.list(&["volumeClaimTemplates"]).iter().enumerate() {
        let place = place
            .child("volumeClaimTemplates")
            .index(index)
            .child("spec");
        validate_claim(claim.at(&["spec"]).unwrap_or(&Value::Null), &place, wrong);
    }
    // Claims made from templates are volumes of the pods.
    let mut with_claims = spec.clone();
    let claims: Vec<Value> = spec
        .list(&["volumeClaimTemplates"])
        .iter()
        .map(|claim| {
            let name = claim.text(&["metadata", "name"]);
            bareboat_api::value!({"name": (name), "persistentVolumeClaim": {"claimName": (name)}})
        })
        .collect();
    if !claims.is_empty()
        && let Some(pod) = with_claims
            .at_mut(&["template", "spec"])
            .and_then(Value::as_object_mut)
    {
        let volumes = pod.entry_or_insert_with("volumes", || Value::Array(Vec::new()));
        if let Value::Array(volumes) = volumes {
            let claimed: HashSet<&str> = claims.iter().map(|claim| claim.text(&["name"])).collect();
            volumes.retain(|volume| !claimed.contains(volume.text(&["name"])));
            volumes.extend(claims);
        }
    }
    template(&with_claims, "StatefulSet", wrong);
}

fn update_strategy(spec: &Value, place: &FieldPath, wrong: &mut Errors) {
    let empty = Value::object();
    let strategy = spec.at(&["updateStrategy"]).unwrap_or(&empty);
    match strategy.text(&["type"]) {
        "" => wrong.push(FieldError::required(place.clone(), "")),
        "OnDelete" => {
            if let Some(rolling) = strategy.at(&["rollingUpdate"]) {
                wrong.push(FieldError::invalid(
                    place.child("rollingUpdate"),
                    rolling.clone(),
                    "only allowed for updateStrategy 'RollingUpdate'",
                ));
            }
        }
        "RollingUpdate" => not_negative(
            strategy.int(&["rollingUpdate", "partition"]),
            place.child("rollingUpdate").child("partition"),
            wrong,
        ),
        _ => wrong.push(FieldError::invalid(
            place.clone(),
            strategy.clone(),
            "must be 'RollingUpdate' or 'OnDelete'",
        )),
    }
}

fn validate_daemon_set(object: &Object, wrong: &mut Errors) {
    let spec = spec_of(object);
    selector(spec, "daemonset", wrong);
    template(spec, "DaemonSet", wrong);
    let place = path(&["spec"]);
    for member in ["minReadySeconds", "revisionHistoryLimit"] {
        not_negative(spec.int(&[member]), place.child(member), wrong);
    }
    let place = place.child("updateStrategy");
    let empty = Value::object();
    let strategy = spec.at(&["updateStrategy"]).unwrap_or(&empty);
    match strategy.text(&["type"]) {
        "OnDelete" => {}
        "RollingUpdate" => {
            let place = place.child("rollingUpdate");
            let unavailable = strategy.at(&["rollingUpdate", "maxUnavailable"]);
            let surge = strategy.at(&["rollingUpdate", "maxSurge"]);
            for (member, value) in [("maxUnavailable", unavailable), ("maxSurge", surge)] {
                number_or_percent(value, place.child(member), wrong);
                at_most_all(value, place.child(member), wrong);
            }
            match (is_zero(unavailable), is_zero(surge)) {
                (false, false) => wrong.push(FieldError::invalid(
                    place.child("maxSurge"),
                    surge.cloned().unwrap_or_default(),
                    "may not be set when maxUnavailable is non-zero",
                )),
                (true, true) => wrong.push(FieldError::required(
                    place.child("maxUnavailable"),
                    "cannot be 0 when maxSurge is 0",
                )),
                _ => {}
            }
        }
        _ => wrong.push(FieldError::not_supported(
            place,
            strategy.clone(),
            ["RollingUpdate", "OnDelete"],
        )),
    }
}

fn template_generation(object: &Object) -> Option<i64> {
    let text = object.annotation(TEMPLATE_GENERATION)?;
    text.parse().ok().filter(|number| *number > 0)
}

fn set_template_generation(object: &mut Object, number: i64) {
    object
        .metadata_mut()
        .object_mut("annotations")
        .insert(TEMPLATE_GENERATION, number.to_string().into());
}

/// The count of template changes follows the template, whatever the writer says.
fn prepare_daemon_set(new: &mut Object, old: &Object, _ctx: &WriteContext<'_>) {
    let known = template_generation(old).unwrap_or(1);
    let changed = new.at(&["spec", "template"]) != old.at(&["spec", "template"]);
    set_template_generation(new, if changed { known + 1 } else { known });
}
