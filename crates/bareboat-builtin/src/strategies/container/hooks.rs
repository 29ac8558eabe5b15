//! Validates probes and lifecycle handlers of containers.

use super::super::check::{Errors, not_negative, one_of, port, port_or_name, required};
use super::{Role, Surroundings};
use crate::reach::Reach;
use bareboat_api::{FieldError, FieldPath, Value, names};

/// Validates the name of an HTTP header.
fn header_name(text: &str, path: FieldPath, wrong: &mut Errors) {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if text.is_empty() || !text.bytes().all(plain) {
        let detail = names::with_regex(
            "a valid HTTP header must consist of alphanumeric characters or '-'",
            "[-A-Za-z0-9]+",
            &["X-Header-Name"],
        );
        wrong.push(FieldError::invalid(path, text, detail));
    }
}

/// Validates the probes of a container.
pub(super) fn probes(
    container: &Value,
    role: Role,
    around: &Surroundings<'_>,
    path: &FieldPath,
    wrong: &mut Errors,
) {
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
        handler(probe, around, &path, wrong);
        for number in [
            "initialDelaySeconds",
            "timeoutSeconds",
            "periodSeconds",
            "successThreshold",
            "failureThreshold",
        ] {
            not_negative(probe.int(&[number]), path.child(number), wrong);
        }
        let grace = probe.int(&["terminationGracePeriodSeconds"]);
        if member == "readinessProbe" && grace.is_some() {
            wrong.push(FieldError::invalid(
                path.child("terminationGracePeriodSeconds"),
                grace.unwrap_or_default(),
                "must not be set for readinessProbes",
            ));
        } else if let Some(grace) = grace.filter(|seconds| *seconds <= 0) {
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

/// Validates the lifecycle handlers of a container.
pub(super) fn lifecycle(
    container: &Value,
    role: Role,
    around: &Surroundings<'_>,
    path: &FieldPath,
    wrong: &mut Errors,
) {
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
            handler(action, around, &path.child(hook), wrong);
        }
    }
}

/// Validates that a handler has exactly one action.
fn handler(handler: &Value, around: &Surroundings<'_>, path: &FieldPath, wrong: &mut Errors) {
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
                for header in handler.list(&["httpGet", "httpHeaders"]) {
                    header_name(header.text(&["name"]), path.child("httpHeaders"), wrong);
                }
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
            "sleep" => {
                let seconds = handler.int(&["sleep", "seconds"]).unwrap_or(0);
                let grace = around.grace;
                if !(0..=grace.max(0)).contains(&seconds) {
                    let detail = format!(
                        "must be non-negative and less than terminationGracePeriodSeconds ({grace})"
                    );
                    wrong.push(FieldError::invalid(path, seconds, detail));
                }
            }
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
