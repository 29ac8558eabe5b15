//! PersistentVolumes and PersistentVolumeClaims.

use super::Rules;
use super::affinity::node_selector;
use super::amounts::quantity;
use super::check::{Errors, immutable, name, one_of, path, required};
use super::volume_source::source;
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

/// Members of a volume's spec that are not sources.
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

/// Returns the strategy of PersistentVolume: the phase `Pending` of new volumes, the time of phase changes, validation,
/// warnings.
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
            let affinity = ["spec", "nodeAffinity"];
            let before = old.at(&affinity).filter(|value| !value.is_null());
            if before.is_some() && new.at(&affinity) != before {
                let shown = new.at(&affinity).cloned().unwrap_or_default();
                let detail = "field is immutable, except for updating from beta label to GA";
                wrong.push(FieldError::invalid(path(&["nodeAffinity"]), shown, detail));
            }
        })
        .phases(phase_time)
        .warning(warnings::persistent_volume)
}

/// Sets the time of the last phase change.
fn phase_time(new: &mut Object, old: &Object, ctx: &WriteContext<'_>) {
    let phase = |object: &Object| object.value().text(&["status", "phase"]).to_owned();
    let status = new.map_mut().object_mut("status");
    let given = status.contains_key("lastPhaseTransitionTime");
    let is_stated =
        status.get("lastPhaseTransitionTime") != old.at(&["status", "lastPhaseTransitionTime"]);
    if phase(old) != status.get_str("phase").unwrap_or("") && !(given && is_stated) {
        status.insert("lastPhaseTransitionTime", ctx.now.into());
    } else if !given && let Some(old) = old.value().members(&["status"]) {
        copy_member(status, old, "lastPhaseTransitionTime");
    }
}

/// Returns the strategy of PersistentVolumeClaim: the phase `Pending` of new claims, equal data sources, validation,
/// warnings.
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
        sources_of_data(claim, None);
    })
    .changing(|claim, old, _| sources_of_data(claim, Some(old)))
    .updating(claim_update)
    .statuses(|new, _, wrong| claim_status(new, wrong))
    .warning(warnings::persistent_volume_claim)
}

/// Makes `dataSource` and `dataSourceRef` equal.
fn sources_of_data(claim: &mut Object, old: Option<&Object>) {
    let kept = old.and_then(|old| old.at(&["spec", "dataSource"])).cloned();
    let spec = claim.map_mut().object_mut("spec");
    let given =
        |spec: &Map, member: &str| spec.get(member).filter(|value| !value.is_null()).cloned();
    let elsewhere = |reference: &Value| !reference.text(&["namespace"]).is_empty();
    if given(spec, "dataSourceRef").is_some_and(|reference| elsewhere(&reference)) {
        // Data sources in other namespaces need a feature gate that is off by default.
        spec.remove("dataSourceRef");
    }
    if let Some(source) = given(spec, "dataSource")
        && given(spec, "dataSourceRef").is_none()
        && !is_known_source(&source)
        && kept.as_ref() != Some(&source)
    {
        spec.remove("dataSource");
    }
    match (given(spec, "dataSource"), given(spec, "dataSourceRef")) {
        (Some(source), None) => {
            spec.insert("dataSourceRef", source);
        }
        (None, Some(reference)) => {
            spec.insert("dataSource", reference);
        }
        _ => {}
    }
}

/// Returns whether `dataSource` supports a source: claims and snapshots only.
fn is_known_source(source: &Value) -> bool {
    match source.text(&["apiGroup"]) {
        "" => source.text(&["kind"]) == "PersistentVolumeClaim",
        "snapshot.storage.k8s.io" => source.text(&["kind"]) == "VolumeSnapshot",
        _ => false,
    }
}

fn claim_status(claim: &Object, wrong: &mut Errors) {
    const RESIZES: [&str; 5] = [
        "ControllerResizeInProgress",
        "ControllerResizeInfeasible",
        "NodeResizeInProgress",
        "NodeResizeInfeasible",
        "NodeResizePending",
    ];
    for list in ["capacity", "allocatedResources"] {
        let amounts = claim.value().members(&["status", list]);
        for (resource, value) in amounts.into_iter().flat_map(Map::iter) {
            if let Some(number) = quantity(value).filter(|number| number.sign() < 0) {
                let place = path(&["status", list]).key(resource);
                let detail = "must be a valid resource quantity";
                wrong.push(FieldError::invalid(place, number.units(), detail));
            }
        }
    }
    let resizes = claim
        .value()
        .members(&["status", "allocatedResourceStatuses"]);
    for (resource, state) in resizes.into_iter().flat_map(Map::iter) {
        if !state.as_str().is_some_and(|state| RESIZES.contains(&state)) {
            let place = path(&["status", "allocatedResourceStatuses"]);
            wrong.push(FieldError::not_supported(place, resource, RESIZES));
        }
    }
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
        if let Some(number) = quantity(amount).filter(|number| number.sign() < 0) {
            let place = place.child("capacity").key(resource);
            let detail = "must be a valid resource quantity";
            wrong.push(FieldError::invalid(place, number.units(), detail));
        }
        positive(amount, place.child("capacity").key(resource), wrong);
    }
    one_of(
        spec.text(&["persistentVolumeReclaimPolicy"]),
        &["Delete", "Recycle", "Retain"],
        place.child("persistentVolumeReclaimPolicy"),
        wrong,
    );
    let given = sources(volume);
    source(&given, &place, wrong);
    if let Some(driver) = given.get("csi") {
        let place = place.child("csi").child("volumeHandle");
        required(driver.text(&["volumeHandle"]), place, wrong);
    }
    let root = given
        .get("hostPath")
        .is_some_and(|host| host.text(&["path"]) == "/");
    if root && spec.text(&["persistentVolumeReclaimPolicy"]) == "Recycle" {
        wrong.push(FieldError::forbidden(
            place.child("persistentVolumeReclaimPolicy"),
            "may not be 'recycle' for a hostPath mount of '/'",
        ));
    }
    options_in_annotations(volume, &given, wrong);
    if let Some(affinity) = spec.at(&["nodeAffinity"]).filter(|value| !value.is_null()) {
        let place = place.child("nodeAffinity").child("required");
        match affinity.at(&["required"]).filter(|value| !value.is_null()) {
            Some(selector) => node_selector(selector, &place, wrong),
            None => {
                let detail = "must specify required node constraints";
                wrong.push(FieldError::required(place, detail));
            }
        }
    }
    if let Some(class) = spec
        .at(&["volumeAttributesClassName"])
        .and_then(Value::as_str)
    {
        let at = place.child("volumeAttributesClassName");
        if class.is_empty() {
            let detail = "an empty string is disallowed";
            wrong.push(FieldError::required(at, detail));
        } else {
            name(class, names::dns1123_subdomain, at, wrong);
        }
        if !given.contains_key("csi") {
            let detail = "has to be specified when using volumeAttributesClassName";
            wrong.push(FieldError::required(place.child("csi"), detail));
        }
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

/// Validates mount options in the deprecated annotation.
fn options_in_annotations(volume: &Object, given: &Map, wrong: &mut Errors) {
    const OPTIONS: &str = "volume.beta.kubernetes.io/mount-options";
    const MOUNTED: [&str; 11] = [
        "gcePersistentDisk",
        "awsElasticBlockStore",
        "glusterfs",
        "nfs",
        "rbd",
        "quobyte",
        "iscsi",
        "cephfs",
        "cinder",
        "azureFile",
        "storageos",
    ];
    const DISKS: [&str; 3] = ["vsphereVolume", "photonPersistentDisk", "azureDisk"];
    let mounted = given
        .keys()
        .any(|kind| MOUNTED.contains(&kind) || DISKS.contains(&kind));
    if volume.annotation(OPTIONS).is_some() && !mounted {
        let place = path(&["metadata", "annotations"]).child(OPTIONS);
        let detail = "may not specify mount options for this volume type";
        wrong.push(FieldError::forbidden(place, detail));
    }
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

pub(super) fn validate_claim(spec: &Value, place: &FieldPath, wrong: &mut Errors) {
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
    data_sources(spec, place, wrong);
    let class = spec.text(&["volumeAttributesClassName"]);
    if !class.is_empty() {
        let place = place.child("volumeAttributesClassName");
        name(class, names::dns1123_subdomain, place, wrong);
    }
}

fn data_sources(spec: &Value, place: &FieldPath, wrong: &mut Errors) {
    let given = |member| spec.at(&[member]).filter(|value: &&Value| !value.is_null());
    for member in ["dataSource", "dataSourceRef"] {
        let Some(source) = given(member) else {
            continue;
        };
        let place = place.child(member);
        required(source.text(&["name"]), place.child("name"), wrong);
        required(source.text(&["kind"]), place.child("kind"), wrong);
        let (group, kind) = (source.text(&["apiGroup"]), source.text(&["kind"]));
        if group.is_empty() && kind != "PersistentVolumeClaim" {
            let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
            wrong.push(FieldError::invalid(place.clone(), kind, detail));
        }
        if !group.is_empty() {
            name(
                group,
                names::dns1123_subdomain,
                place.child("apiGroup"),
                wrong,
            );
        }
    }
    if let (Some(source), Some(reference)) = (given("dataSource"), given("dataSourceRef")) {
        let same = ["apiGroup", "kind", "name"]
            .iter()
            .all(|member| source.text(&[member]) == reference.text(&[member]));
        if !same {
            let detail = "must match dataSourceRef";
            wrong.push(FieldError::invalid(place.clone(), Value::object(), detail));
        }
    }
}

/// Validates a claim update: the spec is immutable, except that a bound claim may grow.
fn claim_update(new: &Object, old: &Object, wrong: &mut Errors) {
    let bound = new.value().text(&["status", "phase"]) == "Bound";
    let mut after = new.value().members(&["spec"]).cloned().unwrap_or_default();
    let mut before = old.value().members(&["spec"]).cloned().unwrap_or_default();
    if before.get_str("volumeName").unwrap_or("").is_empty() {
        copy_member(&mut before, &after, "volumeName");
    }
    // A claim without a class may get one later.
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
