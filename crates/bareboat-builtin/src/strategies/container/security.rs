//! Validates security contexts of containers and pods.

use super::super::check::{Errors, between, one_of, required_one_of};
use crate::reach::Reach;
use bareboat_api::{FieldError, FieldPath, Value};

/// The range of user and group IDs.
const IDS: (i64, i64) = (0, i32::MAX as i64);

/// Validates the security context of a container.
pub(super) fn of_container(context: &Value, path: &FieldPath, wrong: &mut Errors) {
    ids(context, path, wrong);
    if let Some(mount) = context.at(&["procMount"]).and_then(Value::as_str) {
        let place = path.child("procMount");
        one_of(mount, &["Default", "Unmasked"], place, wrong);
    }
    profiles(context, path, wrong);
    if context.at(&["allowPrivilegeEscalation"]) == Some(&Value::Bool(false)) {
        let mut complain = |what: &str| {
            let detail = format!("cannot set `allowPrivilegeEscalation` to false and {what}");
            wrong.push(FieldError::invalid(path.clone(), context.clone(), detail));
        };
        if context.flag(&["privileged"]) {
            complain("`privileged` to true");
        }
        let mut added = context.list(&["capabilities", "add"]).iter();
        if added.any(|capability| capability.as_str() == Some("CAP_SYS_ADMIN")) {
            complain("`capabilities.Add` CAP_SYS_ADMIN");
        }
    }
    windows(context, &path.child("windowsOptions"), wrong);
}

/// Validates the security context of a pod.
pub(in super::super) fn of_pod(context: &Value, path: &FieldPath, wrong: &mut Errors) {
    let group = context.int(&["fsGroup"]);
    between(group, IDS, path.child("fsGroup"), wrong);
    ids(context, path, wrong);
    for (index, group) in context.list(&["supplementalGroups"]).iter().enumerate() {
        let place = path.child("supplementalGroups").index(index);
        between(group.as_i64(), IDS, place, wrong);
    }
    for (member, known) in [
        ("fsGroupChangePolicy", ["Always", "OnRootMismatch"]),
        ("supplementalGroupsPolicy", ["Merge", "Strict"]),
        ("seLinuxChangePolicy", ["MountOption", "Recursive"]),
    ] {
        if let Some(policy) = context.at(&[member]).and_then(Value::as_str) {
            one_of(policy, &known, path.child(member), wrong);
        }
    }
    profiles(context, path, wrong);
    windows(context, &path.child("windowsOptions"), wrong);
}

fn ids(context: &Value, path: &FieldPath, wrong: &mut Errors) {
    for member in ["runAsUser", "runAsGroup"] {
        between(context.int(&[member]), IDS, path.child(member), wrong);
    }
}

/// Validates seccomp and AppArmor profiles.
fn profiles(context: &Value, path: &FieldPath, wrong: &mut Errors) {
    const TYPES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];
    for (member, name) in [
        ("seccompProfile", "seccomp"),
        ("appArmorProfile", "AppArmor"),
    ] {
        let Some(profile) = context.at(&[member]).filter(|value| !value.is_null()) else {
            continue;
        };
        let path = path.child(member);
        let ty = profile.text(&["type"]);
        let place = path.child("type");
        if ty.is_empty() {
            let detail = format!("type is required when {member} is set");
            wrong.push(FieldError::required(place, detail));
        } else {
            required_one_of(ty, &TYPES, place, wrong);
        }
        let place = path.child("localhostProfile");
        let local = profile.at(&["localhostProfile"]).and_then(Value::as_str);
        match (ty, local) {
            ("Localhost", None) => {
                let detail = format!("must be set when {name} type is Localhost");
                wrong.push(FieldError::required(place, detail));
            }
            ("Localhost", Some(_)) | (_, None) => {}
            (_, Some(_)) => {
                let detail = format!("can only be set when {name} type is Localhost");
                wrong.push(FieldError::invalid(place, profile.clone(), detail));
            }
        }
    }
}

/// Validates Windows options.
fn windows(context: &Value, path: &FieldPath, wrong: &mut Errors) {
    let text = |member| {
        context
            .at(&["windowsOptions", member])
            .and_then(Value::as_str)
    };
    if text("gmsaCredentialSpec") == Some("") {
        let place = path.child("gmsaCredentialSpec");
        let detail = "gmsaCredentialSpec cannot be an empty string";
        wrong.push(FieldError::invalid(place, "", detail));
    }
    let Some(full) = text("runAsUserName") else {
        return;
    };
    let place = path.child("runAsUserName");
    let mut complain = |detail: &str| {
        wrong.push(FieldError::invalid(place.clone(), full, detail));
    };
    if full.is_empty() {
        return complain("runAsUserName cannot be an empty string");
    }
    if full.chars().any(|character| character.is_ascii_control()) {
        complain("runAsUserName cannot contain control characters");
    }
    let user = full.rsplit('\\').next().unwrap_or(full);
    if user.is_empty() {
        complain("runAsUserName's User cannot be empty");
    }
    if user.contains([
        '"', '/', '\\', ':', ';', '|', '=', ',', '+', '*', '?', '<', '>', '@', '[', ']',
    ]) {
        complain(
            "runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]",
        );
    }
}
