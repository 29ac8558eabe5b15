//! Capabilities that containers add and drop.

use super::super::pod::{Failure, Pod, containers, quoted, unless_empty};
use bareboat_api::Value;
use std::collections::BTreeSet;

/// Those that runtimes give by default, without NET_RAW.
const DEFAULTS: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

fn texts(list: Option<&Value>) -> impl Iterator<Item = &str> {
    let list = list.and_then(Value::as_array).unwrap_or(&[]);
    list.iter().filter_map(Value::as_str)
}

/// Returns the containers that add capabilities beside the allowed ones, and these.
fn adding<'a>(pod: &Pod<'a>, allowed: &[&str]) -> (Vec<&'a str>, BTreeSet<&'a str>) {
    let (mut bad, mut added) = (Vec::new(), BTreeSet::new());
    for container in pod.containers() {
        let before = bad.len();
        for capability in texts(container.security(&["capabilities", "add"])) {
            if !allowed.contains(&capability) {
                added.insert(capability);
                bad.truncate(before);
                bad.push(container.name());
            }
        }
    }
    (bad, added)
}

/// No capabilities beyond the default ones may be added.
pub(crate) fn added(pod: &Pod<'_>) -> Option<Failure> {
    let (bad, added) = adding(pod, &DEFAULTS);
    unless_empty(&bad, "non-default capabilities", || {
        format!(
            "{} must not include {} in securityContext.capabilities.add",
            containers(&bad),
            quoted(added)
        )
    })
}

/// All capabilities must be dropped, and only NET_BIND_SERVICE may be added.
pub(crate) fn dropped(pod: &Pod<'_>) -> Option<Failure> {
    let keeps = pod.containers().filter(|container| {
        let mut dropped = texts(container.security(&["capabilities", "drop"]));
        !dropped.any(|capability| capability == "ALL")
    });
    let keeping: Vec<&str> = keeps.map(|container| container.name()).collect();
    let (adding, added) = adding(pod, &["NET_BIND_SERVICE"]);
    let mut details = Vec::new();
    if !keeping.is_empty() {
        details.push(format!(
            "{} must set securityContext.capabilities.drop=[\"ALL\"]",
            containers(&keeping)
        ));
    }
    if !adding.is_empty() {
        details.push(format!(
            "{} must not include {} in securityContext.capabilities.add",
            containers(&adding),
            quoted(added)
        ));
    }
    (!details.is_empty()).then(|| Failure {
        reason: "unrestricted capabilities",
        detail: details.join("; "),
    })
}

/// Windows has no capabilities.
pub(crate) fn dropped_1_25(pod: &Pod<'_>) -> Option<Failure> {
    match pod.is_windows() {
        true => None,
        false => dropped(pod),
    }
}
