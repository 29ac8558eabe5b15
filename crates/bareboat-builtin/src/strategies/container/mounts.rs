//! Validates volume mounts and volume devices of containers.

use super::super::check::{Errors, one_of, required};
use super::Surroundings;
use crate::reach::Reach;
use bareboat_api::{FieldError, FieldPath, Value};
use std::collections::HashSet;

/// Validates the mounts and devices of a container.
pub(super) fn mounts(
    container: &Value,
    around: &Surroundings<'_>,
    path: &FieldPath,
    wrong: &mut Errors,
) {
    folders(container, around, &path.child("volumeMounts"), wrong);
    devices(container, around, &path.child("volumeDevices"), wrong);
}

/// Returns the values of a member in the entries of a list.
fn taken<'a>(container: &'a Value, list: &str, member: &str) -> HashSet<&'a str> {
    let entries = container.list(&[list]).iter();
    entries.map(|entry| entry.text(&[member])).collect()
}

fn folders(container: &Value, around: &Surroundings<'_>, path: &FieldPath, wrong: &mut Errors) {
    let device_names = taken(container, "volumeDevices", "name");
    let device_paths = taken(container, "volumeDevices", "devicePath");
    let mut seen: HashSet<&str> = HashSet::new();
    for (index, mount) in container.list(&["volumeMounts"]).iter().enumerate() {
        let place = path.index(index);
        let volume = mount.text(&["name"]);
        required(volume, place.child("name"), wrong);
        if !around.volumes.contains_key(volume) {
            wrong.push(FieldError::not_found(place.child("name"), volume));
        }
        let target = mount.text(&["mountPath"]);
        required(target, place.child("mountPath"), wrong);
        let mut complain = |member: &str, value: &str, detail: &str| {
            wrong.push(FieldError::invalid(place.child(member), value, detail));
        };
        if !seen.insert(target) {
            complain("mountPath", target, "must be unique");
        }
        if device_names.contains(volume) {
            complain("name", volume, "must not already exist in volumeDevices");
        }
        if device_paths.contains(target) {
            let detail = "must not already exist as a path in volumeDevices";
            complain("mountPath", target, detail);
        }
        let (within, expression) = (mount.text(&["subPath"]), mount.text(&["subPathExpr"]));
        if !within.is_empty() && !expression.is_empty() {
            let detail = "subPathExpr and subPath are mutually exclusive";
            complain("subPathExpr", expression, detail);
        }
        // Upstream reports these paths without the index.
        descending(within, &path.child("subPath"), wrong);
        descending(expression, &path.child("subPathExpr"), wrong);
        propagation(container, mount, &path.child("mountPropagation"), wrong);
        recursion(mount, &path.child("recursiveReadOnly"), wrong);
    }
}

fn propagation(container: &Value, mount: &Value, path: &FieldPath, wrong: &mut Errors) {
    let Some(mode) = mount.at(&["mountPropagation"]).and_then(Value::as_str) else {
        return;
    };
    let known = ["Bidirectional", "HostToContainer", "None"];
    one_of(mode, &known, path.clone(), wrong);
    if mode == "Bidirectional" && !container.flag(&["securityContext", "privileged"]) {
        let detail = "Bidirectional mount propagation is available only to privileged containers";
        wrong.push(FieldError::forbidden(path.clone(), detail));
    }
}

fn recursion(mount: &Value, path: &FieldPath, wrong: &mut Errors) {
    match mount.at(&["recursiveReadOnly"]).and_then(Value::as_str) {
        None | Some("Disabled") => {}
        Some("Enabled" | "IfPossible") => {
            if !mount.flag(&["readOnly"]) {
                let detail = "may only be specified when readOnly is true";
                wrong.push(FieldError::forbidden(path.clone(), detail));
            }
            if !matches!(mount.text(&["mountPropagation"]), "" | "None") {
                let detail = "may only be specified when mountPropagation is None or not specified";
                wrong.push(FieldError::forbidden(path.clone(), detail));
            }
        }
        Some(mode) => {
            let known = ["Disabled", "Enabled", "IfPossible"];
            one_of(mode, &known, path.clone(), wrong);
        }
    }
}

fn devices(container: &Value, around: &Surroundings<'_>, path: &FieldPath, wrong: &mut Errors) {
    if container.list(&["volumeDevices"]).is_empty() {
        return;
    }
    let mount_names = taken(container, "volumeMounts", "name");
    let mount_paths = taken(container, "volumeMounts", "mountPath");
    let mut names: HashSet<&str> = HashSet::new();
    let mut targets: HashSet<&str> = HashSet::new();
    for (index, device) in container.list(&["volumeDevices"]).iter().enumerate() {
        let place = path.index(index);
        let (volume, target) = (device.text(&["name"]), device.text(&["devicePath"]));
        required(volume, place.child("name"), wrong);
        required(target, place.child("devicePath"), wrong);
        let source = around.volumes.get(volume);
        if source.is_none() {
            wrong.push(FieldError::not_found(place.child("name"), volume));
        }
        let mut complain = |member: &str, value: &str, detail: &str| {
            wrong.push(FieldError::invalid(place.child(member), value, detail));
        };
        let claimed = source.is_none_or(|source| {
            source.has(&["persistentVolumeClaim"]) || source.has(&["ephemeral"])
        });
        if !claimed {
            let detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
            complain("name", volume, detail);
        }
        if names.contains(volume) {
            complain("name", volume, "must be unique");
        }
        if targets.contains(target) {
            complain("devicePath", target, "must be unique");
        }
        if target.split('/').any(|step| step == "..") {
            complain("devicePath", target, "can not contain backsteps ('..')");
        } else {
            targets.insert(target);
        }
        if mount_names.contains(volume) {
            complain("name", volume, "must not already exist in volumeMounts");
        }
        if mount_paths.contains(target) {
            let detail = "must not already exist as a path in volumeMounts";
            complain("devicePath", target, detail);
        }
        if !volume.is_empty() {
            names.insert(volume);
        }
    }
}

/// Validates a relative path without `..`.
pub(in super::super) fn descending(text: &str, path: &FieldPath, wrong: &mut Errors) {
    if text.starts_with('/') {
        wrong.push(FieldError::invalid(
            path.clone(),
            text,
            "must be a relative path",
        ));
    }
    if text.split('/').any(|step| step == "..") {
        wrong.push(FieldError::invalid(
            path.clone(),
            text,
            "must not contain '..'",
        ));
    }
}
