//! Persistent volumes and claims.

use super::Rules;
use super::check::{Errors, immutable, name, one_of, path};
use super::warnings;
use crate::reach::{Reach, copy_member};
use bareboat_api::kind::WriteContext;
use bareboat_api::labels::validate_selector;
use bareboat_api::quantity::Quantity;
use bareboat_api::{FieldError, FieldPath, Map, Object, Value, names};

const MODES: [&str; 4] = [
    "ReadOnlyMany",
    "ReadWriteMany",
    "ReadWriteOnce",
    "ReadWriteOncePod",
];

/// The members of a volume's spec that are no sources.
const PLAIN: [&str; 9] = [
    "accessModes",
    "capacity",
    "claimRef",
    "mountOptions",
    "nodeAffinity",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "volumeAttributesClassName",
    "volumeMode",
];

/// What persistent volumes do.
pub(crate) fn persistent_volume() -> Rules {
    Rules::validating(validate_volume)
        .creating(|volume, ctx| {
            let status = volume.map_mut().object_mut("status");
            status.insert("phase", "Pending".into());
            status.insert("lastPhaseTransitionTime", ctx.now.into());
        })
        .updating(|new, old, wrong| {
            if sources(new) != sources(old) {
                wrong.push(FieldError::forbidden(
                    path(&["spec", "persistentvolumesource"]),
                    "spec.persistentvolumesource is immutable after creation",
                ));
            }
            immutable(
                new.at(&["spec", "volumeMode"]),
                old.at(&["spec", "volumeMode"]),
                path(&["volumeMode"]),
                wrong,
            );
        })
        .phases(phase_time)
        .warning(warnings::persistent_volume)
}

/// A volume remembers when its phase last changed.
fn phase_time(new: &mut Object, old: &Object, ctx: &WriteContext<'_>) {
    let phase = |object: &Object| object.value().text(&["status", "phase"]).to_owned();
    let status = new.map_mut().object_mut("status");
    let given = status.contains_key("lastPhaseTransitionTime");
    if phase(old) != status.get_str("phase").unwrap_or("") {
        status.insert("lastPhaseTransitionTime", ctx.now.into());
    } else if !given && let Some(old) = old.value().members(&["status"]) {
        copy_member(status, old, "lastPhaseTransitionTime");
    }
}

/// What claims do.
pub(crate) fn persistent_volume_claim() -> Rules {
    Rules::validating(|claim, wrong| {
        validate_claim(
            claim.get("spec").unwrap_or(&Value::Null),
            &path(&["spec"]),
            wrong,
        );
    })
    .creating(|claim, _| {
        claim
            .map_mut()
            .object_mut("status")
            .insert("phase", "Pending".into());
    })
    .updating(claim_update)
}

fn sources(volume: &Object) -> Map {
    let mut spec = volume
        .value()
        .members(&["spec"])
        .cloned()
        .unwrap_or_default();
    spec.retain(|member, _| !PLAIN.contains(&member));
    spec
}

fn access_modes(spec: &Value, place: &FieldPath, wrong: &mut Errors) {
    let modes: Vec<&str> = spec
        .list(&["accessModes"])
        .iter()
        .filter_map(Value::as_str)
        .collect();
    for mode in &modes {
        one_of(mode, &MODES, place.clone(), wrong);
    }
    let alone = modes.contains(&"ReadWriteOncePod");
    let others = modes
        .iter()
        .any(|mode| *mode != "ReadWriteOncePod" && MODES.contains(mode));
    if alone && others {
        let detail = "may not use ReadWriteOncePod with other access modes";
        wrong.push(FieldError::forbidden(place.clone(), detail));
    }
}

fn positive(amount: &Value, place: FieldPath, wrong: &mut Errors) {
    let good = amount
        .as_str()
        .and_then(|text| Quantity::parse(text).ok())
        .is_some_and(|amount| amount.sign() > 0);
    if !good {
        wrong.push(FieldError::invalid(
            place,
            amount.clone(),
            "must be greater than zero",
        ));
    }
}

fn validate_volume(volume: &Object, wrong: &mut Errors) {
    let spec = volume.get("spec").unwrap_or(&Value::Null);
    let place = path(&["spec"]);
    if spec.list(&["accessModes"]).is_empty() {
        wrong.push(FieldError::required(place.child("accessModes"), ""));
    }
    access_modes(spec, &place.child("accessModes"), wrong);
    let capacity = spec.members(&["capacity"]);
    if capacity.is_none_or(Map::is_empty) {
        wrong.push(FieldError::required(place.child("capacity"), ""));
    }
    if capacity.is_none_or(|map| !map.contains_key("storage") || map.len() > 1) {
        let shown = capacity.cloned().map_or(Value::Null, Value::Object);
        wrong.push(FieldError::not_supported(
            place.child("capacity"),
            shown,
            ["storage"],
        ));
    }
    for (resource, amount) in capacity.into_iter().flat_map(Map::iter) {
        positive(amount, place.child("capacity").key(resource), wrong);
    }
    one_of(
        spec.text(&["persistentVolumeReclaimPolicy"]),
        &["Delete", "Recycle", "Retain"],
        place.child("persistentVolumeReclaimPolicy"),
        wrong,
    );
    let given = sources(volume);
    if given.is_empty() {
        wrong.push(FieldError::required(
            place.clone(),
            "must specify a volume type",
        ));
    }
    for source in given.keys().skip(1) {
        wrong.push(FieldError::forbidden(
            place.child(source),
            "may not specify more than 1 volume type",
        ));
    }
    if given.contains_key("local") && !spec.has(&["nodeAffinity"]) {
        wrong.push(FieldError::required(
            place.child("nodeAffinity"),
            "Local volume requires node affinity",
        ));
    }
    volume_mode(spec, &place, wrong);
    class_name(spec, &place, wrong);
}

fn volume_mode(spec: &Value, place: &FieldPath, wrong: &mut Errors) {
    if spec.has(&["volumeMode"]) {
        one_of(
            spec.text(&["volumeMode"]),
            &["Block", "Filesystem"],
            place.child("volumeMode"),
            wrong,
        );
    }
}

fn class_name(spec: &Value, place: &FieldPath, wrong: &mut Errors) {
    let class = spec.text(&["storageClassName"]);
    if !class.is_empty() {
        name(
            class,
            names::dns1123_subdomain,
            place.child("storageClassName"),
            wrong,
        );
    }
}

fn validate_claim(spec: &Value, place: &FieldPath, wrong: &mut Errors) {
    if spec.list(&["accessModes"]).is_empty() {
        wrong.push(FieldError::required(
            place.child("accessModes"),
            "at least 1 access mode is required",
        ));
    }
    if let Some(selector) = spec.at(&["selector"]).filter(|value| !value.is_null()) {
        wrong.extend(validate_selector(selector, &place.child("selector")));
    }
    access_modes(spec, &place.child("accessModes"), wrong);
    let storage = place.child("resources").key("storage");
    match spec.at(&["resources", "requests", "storage"]) {
        None => wrong.push(FieldError::required(storage, "")),
        Some(amount) => positive(amount, storage, wrong),
    }
    class_name(spec, place, wrong);
    volume_mode(spec, place, wrong);
}

/// A claim is a promise: only a bound one may grow.
fn claim_update(new: &Object, old: &Object, wrong: &mut Errors) {
    let bound = new.value().text(&["status", "phase"]) == "Bound";
    let mut after = new.value().members(&["spec"]).cloned().unwrap_or_default();
    let mut before = old.value().members(&["spec"]).cloned().unwrap_or_default();
    if before.get_str("volumeName").unwrap_or("").is_empty() {
        copy_member(&mut before, &after, "volumeName");
    }
    // A claim that named no class may be told one later.
    if !before.contains_key("storageClassName") {
        copy_member(&mut before, &after, "storageClassName");
    }
    let storage = |spec: &Map| {
        let amount = spec.get("resources")?.at(&["requests", "storage"])?;
        Quantity::parse(amount.as_str()?).ok()
    };
    let (size, previous) = (storage(&after), storage(&before));
    if bound {
        copy_member(&mut after, &before, "volumeAttributesClassName");
        let kept = before
            .get("resources")
            .and_then(|resources| resources.at(&["requests", "storage"]))
            .cloned();
        if let (Some(kept), Some(requests)) = (
            kept,
            after
                .get_mut("resources")
                .and_then(|resources| resources.at_mut(&["requests"]))
                .and_then(Value::as_object_mut),
        ) {
            requests.insert("storage", kept);
        }
    }
    if after != before {
        wrong.push(FieldError::forbidden(
            path(&["spec"]),
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims",
        ));
    }
    let (Some(size), Some(previous)) = (size, previous) else {
        return;
    };
    if size < previous {
        let held = old.value().text(&["status", "capacity", "storage"]);
        let held = Quantity::parse(held).ok();
        if held.is_none_or(|held| size <= held) {
            wrong.push(FieldError::forbidden(
                path(&["spec", "resources", "requests", "storage"]),
                "field can not be less than status.capacity",
            ));
        }
    }
}
