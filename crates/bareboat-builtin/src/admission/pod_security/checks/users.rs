//! Privileges and users of containers.

use super::super::pod::{Failure, Pod, Setters, containers, unless_empty};
use bareboat_api::Value;

/// No privileged containers.
pub(crate) fn privileged(pod: &Pod<'_>) -> Option<Failure> {
    let bad = pod.containers().filter(|container| {
        let found = container.security(&["privileged"]);
        found.and_then(Value::as_bool) == Some(true)
    });
    let bad: Vec<&str> = bad.map(|container| container.name()).collect();
    unless_empty(&bad, "privileged", || {
        let who = containers(&bad);
        format!("{who} must not set securityContext.privileged=true")
    })
}

/// Processes must not gain privileges.
pub(crate) fn escalation(pod: &Pod<'_>) -> Option<Failure> {
    let bad = pod.containers().filter(|container| {
        let found = container.security(&["allowPrivilegeEscalation"]);
        found.and_then(Value::as_bool) != Some(false)
    });
    let bad: Vec<&str> = bad.map(|container| container.name()).collect();
    unless_empty(&bad, "allowPrivilegeEscalation != false", || {
        let who = containers(&bad);
        format!("{who} must set securityContext.allowPrivilegeEscalation=false")
    })
}

/// Pods on Windows cannot set it.
pub(crate) fn escalation_1_25(pod: &Pod<'_>) -> Option<Failure> {
    match pod.is_windows() {
        true => None,
        false => escalation(pod),
    }
}

/// The pod or each of its containers must not run as root.
pub(crate) fn non_root(pod: &Pod<'_>) -> Option<Failure> {
    let reason = "runAsNonRoot != true";
    let wish = |value: Option<&Value>| value.and_then(Value::as_bool);
    let of_pod = wish(pod.security(&["runAsNonRoot"]));
    let (mut refusing, mut silent) = (Vec::new(), Vec::new());
    for container in pod.containers() {
        match wish(container.security(&["runAsNonRoot"])) {
            Some(true) => {}
            Some(false) => refusing.push(container.name()),
            None if of_pod == Some(true) => {}
            None => silent.push(container.name()),
        }
    }
    let setters = Setters {
        pod: of_pod == Some(false),
        containers: refusing,
        ..Setters::default()
    };
    if let Some(who) = setters.words() {
        let detail = format!("{who} must not set securityContext.runAsNonRoot=false");
        return Some(Failure { reason, detail });
    }
    unless_empty(&silent, reason, || {
        let who = containers(&silent);
        format!("pod or {who} must set securityContext.runAsNonRoot=true")
    })
}

/// Root of a user namespace is not root of the host.
pub(crate) fn non_root_1_35(pod: &Pod<'_>) -> Option<Failure> {
    match pod.has_user_namespace() {
        true => None,
        false => non_root(pod),
    }
}

/// Neither the pod nor a container may set the user root.
pub(crate) fn user(pod: &Pod<'_>) -> Option<Failure> {
    let is_root = |value: Option<&Value>| value.and_then(Value::as_i64) == Some(0);
    let bad = pod.containers();
    let bad = bad.filter(|container| is_root(container.security(&["runAsUser"])));
    let setters = Setters {
        pod: is_root(pod.security(&["runAsUser"])),
        containers: bad.map(|container| container.name()).collect(),
        ..Setters::default()
    };
    setters.words().map(|who| Failure {
        reason: "runAsUser=0",
        detail: format!("{who} must not set runAsUser=0"),
    })
}

/// Root of a user namespace is not root of the host.
pub(crate) fn user_1_35(pod: &Pod<'_>) -> Option<Failure> {
    match pod.has_user_namespace() {
        true => None,
        false => user(pod),
    }
}
