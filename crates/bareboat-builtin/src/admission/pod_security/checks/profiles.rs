//! Profiles of Linux security modules: AppArmor, SELinux, seccomp.

use super::super::pod::{Failure, Pod, Setters, containers, plural, quoted, unless_empty};
use crate::reach::Reach as _;
use bareboat_api::Value;
use bareboat_api::field::go_quote;
use std::collections::BTreeSet;

/// The prefix of annotations with the profile of a container.
const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
/// The annotation with the seccomp profile of a pod.
const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
/// The prefix of annotations with the seccomp profile of a container.
const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";

/// Returns who sets a profile of another type than the allowed ones.
fn setting<'a>(pod: &Pod<'a>, profile: &str) -> Setters<'a> {
    let bad = |found: Option<&'a Value>| {
        let kind = found.map(|found| found.text(&["type"]));
        kind.filter(|kind| !matches!(*kind, "RuntimeDefault" | "Localhost"))
    };
    let mut setters = Setters::default();
    if let Some(kind) = bad(pod.security(&[profile])) {
        setters.pod = true;
        setters.values.insert(kind);
    }
    for container in pod.containers() {
        if let Some(kind) = bad(container.security(&[profile])) {
            setters.containers.push(container.name());
            setters.values.insert(kind);
        }
    }
    setters
}

/// Only AppArmor profiles of the runtime and of the host.
pub(crate) fn app_armor(pod: &Pod<'_>) -> Option<Failure> {
    let setters = setting(pod, "appArmorProfile");
    let allowed =
        |value: &str| matches!(value, "" | "runtime/default") || value.starts_with("localhost/");
    let annotations = pod.annotations().into_iter().flat_map(|map| map.iter());
    let forbidden: BTreeSet<String> = annotations
        .filter_map(|(key, value)| Some((key, value.as_str()?)))
        .filter(|(key, value)| key.starts_with(APP_ARMOR) && !allowed(value))
        .map(|(key, value)| format!("{key}={}", go_quote(value)))
        .collect();
    let mut who: Vec<String> = setters.words().into_iter().collect();
    if !forbidden.is_empty() {
        who.push(plural("annotation", "annotations", forbidden.len()).to_owned());
    }
    let count = setters.values.len() + forbidden.len();
    let values = setters.values.into_iter().map(str::to_owned);
    (!who.is_empty()).then(|| Failure {
        reason: plural(
            "forbidden AppArmor profile",
            "forbidden AppArmor profiles",
            count,
        ),
        detail: format!(
            "{} must not set AppArmor profile type to {}",
            who.join(" and "),
            quoted(values.chain(forbidden))
        ),
    })
}

fn se_linux_beside(pod: &Pod<'_>, allowed: &[&str]) -> Option<Failure> {
    let mut types = BTreeSet::new();
    let (mut with_user, mut with_role) = (false, false);
    let mut is_bad = |options: Option<&Value>| {
        let Some(options) = options else { return false };
        let kind = options.text(&["type"]);
        let bad_type = !kind.is_empty() && !allowed.contains(&kind);
        if bad_type {
            types.insert(kind.to_owned());
        }
        let user = !options.text(&["user"]).is_empty();
        let role = !options.text(&["role"]).is_empty();
        with_user |= user;
        with_role |= role;
        bad_type || user || role
    };
    let mut setters = Setters {
        pod: is_bad(pod.security(&["seLinuxOptions"])),
        ..Setters::default()
    };
    for container in pod.containers() {
        if is_bad(container.security(&["seLinuxOptions"])) {
            setters.containers.push(container.name());
        }
    }
    let who = setters.words()?;
    let mut what = Vec::new();
    if !types.is_empty() {
        let noun = plural("type", "types", types.len());
        what.push(format!("{noun} {}", quoted(types)));
    }
    if with_user {
        what.push("user may not be set".to_owned());
    }
    if with_role {
        what.push("role may not be set".to_owned());
    }
    let what = what.join("; ");
    Some(Failure {
        reason: "seLinuxOptions",
        detail: format!("{who} set forbidden securityContext.seLinuxOptions: {what}"),
    })
}

/// Only SELinux types of containers, and no users and roles.
pub(crate) fn se_linux(pod: &Pod<'_>) -> Option<Failure> {
    se_linux_beside(pod, &["container_t", "container_init_t", "container_kvm_t"])
}

/// With the type of engines in containers.
pub(crate) fn se_linux_1_31(pod: &Pod<'_>) -> Option<Failure> {
    let types = [
        "container_t",
        "container_init_t",
        "container_kvm_t",
        "container_engine_t",
    ];
    se_linux_beside(pod, &types)
}

/// Only seccomp profiles of the runtime and of the host, in the annotations of old.
pub(crate) fn seccomp_annotations(pod: &Pod<'_>) -> Option<Failure> {
    let annotations = pod.annotations()?;
    let names = pod
        .containers()
        .map(|one| SECCOMP_CONTAINER.to_owned() + one.name());
    let keys = std::iter::once(SECCOMP_POD.to_owned()).chain(names);
    let allowed = |value: &str| {
        matches!(value, "runtime/default" | "docker/default") || value.starts_with("localhost/")
    };
    let forbidden: BTreeSet<String> = keys
        .filter_map(|key| {
            let value = annotations.get(&key)?.as_str()?;
            (!allowed(value)).then(|| format!("{key}={}", go_quote(value)))
        })
        .collect();
    let forbidden: Vec<&str> = forbidden.iter().map(String::as_str).collect();
    unless_empty(&forbidden, "seccompProfile", || {
        let noun = plural("annotation", "annotations", forbidden.len());
        format!("forbidden {noun} {}", forbidden.join(", "))
    })
}

/// Only seccomp profiles of the runtime and of the host, if any.
pub(crate) fn seccomp_allowed(pod: &Pod<'_>) -> Option<Failure> {
    let setters = setting(pod, "seccompProfile");
    setters.words().map(|who| Failure {
        reason: "seccompProfile",
        detail: format!(
            "{who} must not set securityContext.seccompProfile.type to {}",
            quoted(setters.values)
        ),
    })
}

/// Fails unless each container, or its pod, has the seccomp profile `RuntimeDefault` or `Localhost`.
pub(crate) fn seccomp_required(pod: &Pod<'_>) -> Option<Failure> {
    if let Some(failure) = seccomp_allowed(pod) {
        return Some(failure);
    }
    if pod.security(&["seccompProfile"]).is_some() {
        return None;
    }
    let without = pod.containers();
    let without = without.filter(|one| one.security(&["seccompProfile"]).is_none());
    let names: Vec<&str> = without.map(|container| container.name()).collect();
    unless_empty(&names, "seccompProfile", || {
        format!(
            "pod or {} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\"",
            containers(&names)
        )
    })
}

/// Windows has no seccomp.
pub(crate) fn seccomp_required_1_25(pod: &Pod<'_>) -> Option<Failure> {
    match pod.is_windows() {
        true => None,
        false => seccomp_required(pod),
    }
}
