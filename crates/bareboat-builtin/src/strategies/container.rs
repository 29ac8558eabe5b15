//! What containers may look like.

use super::check::{
    Errors, amount, name, not_negative, one_of, port, port_name, port_or_name, required,
    required_label, required_one_of,
};
use crate::reach::Reach;
use bareboat_api::quantity::Quantity;
use bareboat_api::{FieldError, FieldPath, Value, names};
use std::collections::HashSet;

pub(super) const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

/// What a pod says that its containers are checked against.
pub(super) struct Surroundings<'a> {
    /// The names of the pod's volumes.
    pub(super) volumes: HashSet<&'a str>,
}

/// Which list of a pod a container stands in.
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
        &["FallbackToLogsOnError", "File"],
        path.child("terminationMessagePolicy"),
        wrong,
    );
    ports(container, &path.child("ports"), wrong);
    env(container, &path.child("env"), wrong);
    mounts(container, around, &path.child("volumeMounts"), wrong);
    resources(
        container.at(&["resources"]),
        &path.child("resources"),
        wrong,
    );
    probes(container, role, path, wrong);
    lifecycle(container, role, path, wrong);
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

fn env(container: &Value, path: &FieldPath, wrong: &mut Errors) {
    const SOURCES: [&str; 5] = [
        "fieldRef",
        "resourceFieldRef",
        "configMapKeyRef",
        "secretKeyRef",
        "fileKeyRef",
    ];
    for (index, variable) in container.list(&["env"]).iter().enumerate() {
        let path = path.index(index);
        let text = variable.text(&["name"]);
        if required(text, path.child("name"), wrong) {
            let printable = text
                .bytes()
                .all(|byte| (b' '..=b'~').contains(&byte) && byte != b'=');
            if !printable {
                let detail = "a valid environment variable name must consist only of printable ASCII characters other than '='";
                wrong.push(FieldError::invalid(path.child("name"), text, detail));
            }
        }
        let Some(source) = variable.at(&["valueFrom"]).filter(|value| !value.is_null()) else {
            continue;
        };
        let path = path.child("valueFrom");
        let given: Vec<&&str> = SOURCES.iter().filter(|name| source.has(&[name])).collect();
        let complaint = match given.len() {
            0 => Some(
                "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
            ),
            _ if !variable.text(&["value"]).is_empty() => {
                Some("may not be specified when `value` is not empty")
            }
            1 => None,
            _ => Some("may not have more than one field specified at a time"),
        };
        if let Some(complaint) = complaint {
            wrong.push(FieldError::invalid(path.clone(), "", complaint));
        }
        for reference in ["configMapKeyRef", "secretKeyRef"] {
            if source.has(&[reference]) {
                let key = source.text(&[reference, "key"]);
                let path = path.child(reference).child("key");
                if required(key, path.clone(), wrong) {
                    name(key, names::config_key, path, wrong);
                }
            }
        }
    }
}

fn mounts(container: &Value, around: &Surroundings<'_>, path: &FieldPath, wrong: &mut Errors) {
    let mut seen: HashSet<&str> = HashSet::new();
    for (index, mount) in container.list(&["volumeMounts"]).iter().enumerate() {
        let path = path.index(index);
        let volume = mount.text(&["name"]);
        required(volume, path.child("name"), wrong);
        if !around.volumes.contains(&volume) {
            wrong.push(FieldError::not_found(path.child("name"), volume));
        }
        let target = mount.text(&["mountPath"]);
        required(target, path.child("mountPath"), wrong);
        if seen.contains(&target) {
            wrong.push(FieldError::invalid(
                path.child("mountPath"),
                target,
                "must be unique",
            ));
        }
        seen.insert(target);
    }
}

/// Amounts must not be negative, and nobody may ask for more than the limit.
pub(super) fn resources(resources: Option<&Value>, path: &FieldPath, wrong: &mut Errors) {
    let Some(resources) = resources else {
        return;
    };
    for list in ["limits", "requests"] {
        let Some(amounts) = resources.members(&[list]) else {
            continue;
        };
        for (resource, value) in amounts.iter() {
            amount(value, path.child(list).key(resource), wrong);
        }
    }
    let (Some(limits), Some(requests)) = (
        resources.members(&["limits"]),
        resources.members(&["requests"]),
    ) else {
        return;
    };
    for (resource, request) in requests.iter() {
        let parse = |value: &Value| value.as_str().and_then(|text| Quantity::parse(text).ok());
        let (Some(limit), Some(asked)) = (limits.get(resource).and_then(parse), parse(request))
        else {
            continue;
        };
        if asked > limit {
            let detail = format!(
                "must be less than or equal to {resource} limit of {}",
                limit
            );
            wrong.push(FieldError::invalid(
                path.child("requests"),
                request.clone(),
                detail,
            ));
        }
    }
}

fn probes(container: &Value, role: Role, path: &FieldPath, wrong: &mut Errors) {
    let restarts = container.text(&["restartPolicy"]) == "Always";
    for member in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = container.at(&[member]).filter(|probe| !probe.is_null()) else {
            continue;
        };
        let path = path.child(member);
        match role {
            Role::Init if !restarts => {
                let detail = "may not be set for init containers without restartPolicy=Always";
                wrong.push(FieldError::forbidden(path, detail));
                continue;
            }
            Role::Ephemeral => {
                let detail = "cannot be set for an Ephemeral Container";
                wrong.push(FieldError::forbidden(path, detail));
                continue;
            }
            _ => {}
        }
        handler(probe, &path, wrong);
        for number in [
            "initialDelaySeconds",
            "timeoutSeconds",
            "periodSeconds",
            "successThreshold",
            "failureThreshold",
        ] {
            not_negative(probe.int(&[number]), path.child(number), wrong);
        }
        if let Some(grace) = probe
            .int(&["terminationGracePeriodSeconds"])
            .filter(|n| *n <= 0)
        {
            wrong.push(FieldError::invalid(
                path.child("terminationGracePeriodSeconds"),
                grace,
                "must be greater than 0",
            ));
        }
        let successes = probe.int(&["successThreshold"]).unwrap_or(1);
        if member != "readinessProbe" && successes != 1 {
            wrong.push(FieldError::invalid(
                path.child("successThreshold"),
                successes,
                "must be 1",
            ));
        }
    }
}

fn lifecycle(container: &Value, role: Role, path: &FieldPath, wrong: &mut Errors) {
    let Some(lifecycle) = container.at(&["lifecycle"]) else {
        return;
    };
    let path = path.child("lifecycle");
    if role == Role::Init && container.text(&["restartPolicy"]) != "Always" {
        let detail = "may not be set for init containers without restartPolicy=Always";
        wrong.push(FieldError::forbidden(path, detail));
        return;
    }
    for hook in ["postStart", "preStop"] {
        if let Some(action) = lifecycle.at(&[hook]).filter(|hook| !hook.is_null()) {
            handler(action, &path.child(hook), wrong);
        }
    }
}

/// Exactly one way to probe or to act.
fn handler(handler: &Value, path: &FieldPath, wrong: &mut Errors) {
    let mut given = 0;
    for kind in ["exec", "httpGet", "tcpSocket", "grpc", "sleep"] {
        if !handler.has(&[kind]) {
            continue;
        }
        let path = path.child(kind);
        given += 1;
        if given > 1 {
            let detail = "may not specify more than 1 handler type";
            wrong.push(FieldError::forbidden(path, detail));
            continue;
        }
        match kind {
            "exec" if handler.list(&["exec", "command"]).is_empty() => {
                wrong.push(FieldError::required(path.child("command"), ""));
            }
            "httpGet" => {
                required(
                    handler.text(&["httpGet", "path"]),
                    path.child("path"),
                    wrong,
                );
                port_or_name(handler.at(&["httpGet", "port"]), path.child("port"), wrong);
                one_of(
                    handler.text(&["httpGet", "scheme"]),
                    &["HTTP", "HTTPS"],
                    path.child("scheme"),
                    wrong,
                );
            }
            "tcpSocket" => {
                port_or_name(
                    handler.at(&["tcpSocket", "port"]),
                    path.child("port"),
                    wrong,
                );
            }
            "grpc" => port(
                handler.int(&["grpc", "port"]).unwrap_or(0),
                path.child("port"),
                wrong,
            ),
            _ => {}
        }
    }
    if given == 0 {
        wrong.push(FieldError::required(
            path.clone(),
            "must specify a handler type",
        ));
    }
}
