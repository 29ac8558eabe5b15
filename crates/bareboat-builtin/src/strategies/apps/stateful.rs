//! StatefulSets.

use super::super::Rules;
use super::super::check::{Errors, name, not_negative, one_of, path, required};
use super::super::volumes::validate_claim;
use super::{collisions, counts, replicas, selector, spec_of, template};
use crate::reach::Reach;
use bareboat_api::{FieldError, FieldPath, Object, Value, names};
use std::collections::HashSet;

/// Returns the strategy of StatefulSet: validation; updates may change some fields of the spec only.
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

/// Drops `maxUnavailable`, whose feature gate is off by default.
fn without_unavailable(set: &mut Object) {
    let rolling = set
        .value_mut()
        .at_mut(&["spec", "updateStrategy", "rollingUpdate"]);
    if let Some(rolling) = rolling.and_then(Value::as_object_mut) {
        rolling.remove("maxUnavailable");
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
    // Claims from templates are volumes of the pods.
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
