//! Validates containers.

mod env;
mod hooks;
mod mounts;
pub(super) mod security;

pub(super) use env::{field_selector, resource_selector};
pub(super) use mounts::descending;

use super::amounts::{Receiver, requirements};
use super::check::{Errors, one_of, port, port_name, required, required_label, required_one_of};
use crate::reach::Reach;
use bareboat_api::{FieldError, FieldPath, Value};
use std::collections::{BTreeSet, HashMap, HashSet};

pub(super) const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

/// Properties of the pod that its containers are checked against.
pub(super) struct Surroundings<'a> {
    /// The pod's volumes by name.
    pub(super) volumes: HashMap<&'a str, &'a Value>,
    /// The names of the pod's resource claims.
    pub(super) claims: BTreeSet<&'a str>,
    /// The termination grace period of the pod, in seconds.
    pub(super) grace: i64,
    /// The restart policy of the pod.
    pub(super) restarts: &'a str,
}

/// The list of the pod that a container is in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Main,
    Init,
    Ephemeral,
}

pub(super) fn container(
    container: &Value,
    role: Role,
    around: &Surroundings<'_>,
    path: &FieldPath,
    wrong: &mut Errors,
) {
    let name_path = path.child("name");
    required_label(container.text(&["name"]), name_path, wrong);
    image(container, path, wrong);
    one_of(
        container.text(&["imagePullPolicy"]),
        &["Always", "IfNotPresent", "Never"],
        path.child("imagePullPolicy"),
        wrong,
    );
    one_of(
        container.text(&["terminationMessagePolicy"]),
        &["File", "FallbackToLogsOnError"],
        path.child("terminationMessagePolicy"),
        wrong,
    );
    ports(container, &path.child("ports"), wrong);
    env::env(container, &path.child("env"), wrong);
    env::env_from(container, &path.child("envFrom"), wrong);
    mounts::mounts(container, around, path, wrong);
    let empty = Value::object();
    let resources = container.at(&["resources"]).unwrap_or(&empty);
    requirements(
        resources,
        Receiver::Container,
        &around.claims,
        &path.child("resources"),
        wrong,
    );
    resizing(container, around, &path.child("resizePolicy"), wrong);
    restarting(container, role, path, wrong);
    hooks::probes(container, role, around, path, wrong);
    hooks::lifecycle(container, role, around, path, wrong);
    if role != Role::Ephemeral
        && let Some(context) = container.at(&["securityContext"])
    {
        security::of_container(context, &path.child("securityContext"), wrong);
    }
}

/// Validates the resize policy of a container.
fn resizing(container: &Value, around: &Surroundings<'_>, path: &FieldPath, wrong: &mut Errors) {
    let mut seen: HashSet<&str> = HashSet::new();
    for (index, policy) in container.list(&["resizePolicy"]).iter().enumerate() {
        let resource = policy.text(&["resourceName"]);
        if !seen.insert(resource) {
            wrong.push(FieldError::duplicate(path.index(index), resource));
        }
        required_one_of(resource, &["cpu", "memory"], path.clone(), wrong);
        let restart = policy.text(&["restartPolicy"]);
        let known = ["NotRequired", "RestartContainer"];
        required_one_of(restart, &known, path.clone(), wrong);
        if around.restarts == "Never" && restart != "NotRequired" {
            let detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            wrong.push(FieldError::invalid(path.clone(), restart, detail));
        }
    }
}

/// Validates the restart policy and rules of a container.
fn restarting(container: &Value, role: Role, path: &FieldPath, wrong: &mut Errors) {
    let rules = container.list(&["restartPolicyRules"]);
    if role == Role::Ephemeral {
        return;
    }
    let place = path.child("restartPolicy");
    match container.at(&["restartPolicy"]).and_then(Value::as_str) {
        None if rules.is_empty() => return,
        None => wrong.push(FieldError::required(
            place,
            "must specify restartPolicy when restart rules are used",
        )),
        Some(policy) => one_of(policy, &["Always", "Never", "OnFailure"], place, wrong),
    }
    let place = path.child("restartPolicyRules");
    if rules.len() > 20 {
        wrong.push(FieldError::too_many(place.clone(), rules.len(), 20));
    }
    for (index, rule) in rules.iter().enumerate() {
        let place = place.index(index);
        one_of(
            rule.text(&["action"]),
            &["Restart", "RestartAllContainers"],
            place.child("action"),
            wrong,
        );
        if !rule.has(&["exitCodes"]) {
            wrong.push(FieldError::required(
                place.child("exitCodes"),
                "must be specified",
            ));
            continue;
        }
        let place = place.child("exitCodes");
        one_of(
            rule.text(&["exitCodes", "operator"]),
            &["In", "NotIn"],
            place.child("operator"),
            wrong,
        );
        let values = rule.list(&["exitCodes", "values"]).len();
        if values > 255 {
            wrong.push(FieldError::too_many(place.child("values"), values, 255));
        }
    }
}

fn image(container: &Value, path: &FieldPath, wrong: &mut Errors) {
    let image = container.text(&["image"]);
    if required(image, path.child("image"), wrong) && image.trim() != image {
        wrong.push(FieldError::invalid(
            path.child("image"),
            image,
            "must not have leading or trailing whitespace",
        ));
    }
}

fn ports(container: &Value, path: &FieldPath, wrong: &mut Errors) {
    let mut seen: HashSet<&str> = HashSet::new();
    for (index, entry) in container.list(&["ports"]).iter().enumerate() {
        let path = path.index(index);
        let port_text = entry.text(&["name"]);
        if !port_text.is_empty() {
            let complaints = port_name(port_text);
            if complaints.is_empty() && seen.contains(&port_text) {
                wrong.push(FieldError::duplicate(path.child("name"), port_text));
            }
            if complaints.is_empty() {
                seen.insert(port_text);
            }
            for message in complaints {
                wrong.push(FieldError::invalid(path.child("name"), port_text, message));
            }
        }
        match entry.int(&["containerPort"]).unwrap_or(0) {
            0 => wrong.push(FieldError::required(path.child("containerPort"), "")),
            number => port(number, path.child("containerPort"), wrong),
        }
        match entry.int(&["hostPort"]).unwrap_or(0) {
            0 => {}
            number => port(number, path.child("hostPort"), wrong),
        }
        required_one_of(
            entry.text(&["protocol"]),
            &PROTOCOLS,
            path.child("protocol"),
            wrong,
        );
    }
}
