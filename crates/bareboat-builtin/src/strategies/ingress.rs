//! Ingresses and IngressClasses.

use super::Rules;
use super::check::{Errors, immutable, ip, name, one_of, path, port, port_name, required};
use super::warnings;
use crate::reach::Reach;
use bareboat_api::{FieldError, FieldPath, Object, Value, names};

/// Returns the strategy of Ingress: validation of spec and status, warnings.
pub(crate) fn ingress() -> Rules {
    Rules::validating(validate_ingress)
        .at_first(|ingress, wrong| {
            const OLD: &str = "kubernetes.io/ingress.class";
            let class = ingress.value().text(&["spec", "ingressClassName"]);
            let Some(old) = ingress.annotation(OLD).filter(|_| !class.is_empty()) else {
                return;
            };
            if old != class {
                let place = path(&["annotations"]).child(OLD);
                let detail = "must match `ingressClassName` when both are specified";
                wrong.push(FieldError::invalid(place, old, detail));
            }
        })
        .statuses(|new, _, wrong| {
            let entries = new.value().list(&["status", "loadBalancer", "ingress"]);
            for (index, entry) in entries.iter().enumerate() {
                let place = path(&["status", "loadBalancer", "ingress"]).index(index);
                balancer(entry, &place, wrong);
            }
        })
        .warning(warnings::ingress)
}

/// Validates the address or host name of a load balancer.
pub(super) fn balancer(entry: &Value, place: &FieldPath, wrong: &mut Errors) {
    let address = entry.text(&["ip"]);
    if !address.is_empty() {
        ip(address, place.child("ip"), wrong);
    }
    let named = entry.text(&["hostname"]);
    if !named.is_empty() {
        let place = place.child("hostname");
        name(named, names::dns1123_subdomain, place.clone(), wrong);
        if named.parse::<std::net::IpAddr>().is_ok() {
            let detail = "must be a DNS name, not an IP address";
            wrong.push(FieldError::invalid(place, named, detail));
        }
    }
}

fn validate_ingress(ingress: &Object, wrong: &mut Errors) {
    let spec = ingress.get("spec").unwrap_or(&Value::Null);
    let place = path(&["spec"]);
    let rules = spec.list(&["rules"]);
    let default = spec
        .at(&["defaultBackend"])
        .filter(|value| !value.is_null());
    if rules.is_empty() && default.is_none() {
        wrong.push(FieldError::invalid(
            place.clone(),
            Value::Null,
            "either `defaultBackend` or `rules` must be specified",
        ));
    }
    if let Some(default) = default {
        backend(default, &place.child("defaultBackend"), wrong);
    }
    for (index, rule) in rules.iter().enumerate() {
        let place = place.child("rules").index(index);
        host(rule.text(&["host"]), place.child("host"), wrong);
        if !rule.has(&["http"]) {
            continue;
        }
        let place = place.child("http").child("paths");
        let paths = rule.list(&["http", "paths"]);
        if paths.is_empty() {
            wrong.push(FieldError::required(place.clone(), ""));
        }
        for (index, entry) in paths.iter().enumerate() {
            http_path(entry, &place.index(index), wrong);
        }
    }
    for (index, tls) in spec.list(&["tls"]).iter().enumerate() {
        let place = place.child("tls").index(index);
        for (index, entry) in tls.list(&["hosts"]).iter().enumerate() {
            let place = place.child("hosts").index(index);
            match entry.as_str().unwrap_or("") {
                "" => name("", names::dns1123_subdomain, place, wrong),
                text => host(text, place, wrong),
            }
        }
        let secret = tls.text(&["secretName"]);
        if !secret.is_empty() {
            let place = place.child("secretName");
            name(secret, names::dns1123_subdomain, place, wrong);
        }
    }
    if spec.has(&["ingressClassName"]) {
        name(
            spec.text(&["ingressClassName"]),
            names::dns1123_subdomain,
            place.child("ingressClassName"),
            wrong,
        );
    }
}

fn host(text: &str, place: FieldPath, wrong: &mut Errors) {
    if text.is_empty() {
        return;
    }
    if text.parse::<std::net::IpAddr>().is_ok() {
        wrong.push(FieldError::invalid(
            place.clone(),
            text,
            "must be a DNS name, not an IP address",
        ));
    }
    match text.strip_prefix("*.") {
        Some(rest) if names::is_dns1123_subdomain(rest) => {}
        None if !text.contains('*') => name(text, names::dns1123_subdomain, place, wrong),
        _ => {
            let detail = names::with_regex(
                "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
                "\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*",
                &["*.example.com"],
            );
            wrong.push(FieldError::invalid(place, text, detail));
        }
    }
}

fn http_path(entry: &Value, place: &FieldPath, wrong: &mut Errors) {
    if !entry.has(&["pathType"]) {
        wrong.push(FieldError::required(
            place.child("pathType"),
            "pathType must be specified",
        ));
        return;
    }
    let text = entry.text(&["path"]);
    let absolute = |wrong: &mut Errors| {
        if !text.starts_with('/') {
            wrong.push(FieldError::invalid(
                place.child("path"),
                text,
                "must be an absolute path",
            ));
        }
    };
    match entry.text(&["pathType"]) {
        "Exact" | "Prefix" => {
            absolute(wrong);
            for sequence in ["//", "/./", "/../", "%2f", "%2F"] {
                if text.contains(sequence) {
                    let detail = format!("must not contain '{sequence}'");
                    wrong.push(FieldError::invalid(place.child("path"), text, detail));
                }
            }
            for suffix in ["/..", "/."] {
                if text.ends_with(suffix) {
                    let detail = format!("cannot end with '{suffix}'");
                    wrong.push(FieldError::invalid(place.child("path"), text, detail));
                }
            }
        }
        "ImplementationSpecific" => {
            if !text.is_empty() {
                absolute(wrong);
            }
        }
        other => one_of(
            other,
            &["Exact", "ImplementationSpecific", "Prefix"],
            place.child("pathType"),
            wrong,
        ),
    }
    let empty = Value::object();
    backend(
        entry.at(&["backend"]).unwrap_or(&empty),
        &place.child("backend"),
        wrong,
    );
}

fn backend(backend: &Value, place: &FieldPath, wrong: &mut Errors) {
    match (backend.has(&["resource"]), backend.has(&["service"])) {
        (true, true) => wrong.push(FieldError::invalid(
            place.clone(),
            "",
            "cannot set both resource and service backends",
        )),
        (true, false) => {
            let place = place.child("resource");
            let group = backend.text(&["resource", "apiGroup"]);
            if !group.is_empty() {
                let place = place.child("apiGroup");
                name(group, names::dns1123_subdomain, place, wrong);
            }
            for member in ["kind", "name"] {
                required(
                    backend.text(&["resource", member]),
                    place.child(member),
                    wrong,
                );
            }
        }
        (false, true) => {
            let service = backend.text(&["service", "name"]);
            let name_place = place.child("service").child("name");
            if required(service, name_place.clone(), wrong) {
                name(service, names::dns1123_label, name_place, wrong);
            }
            let named = backend.text(&["service", "port", "name"]);
            let number = backend.int(&["service", "port", "number"]).unwrap_or(0);
            let port_place = place.child("service").child("port");
            match (named.is_empty(), number) {
                (false, 0) => {
                    for message in port_name(named) {
                        wrong.push(FieldError::invalid(
                            port_place.child("name"),
                            named,
                            message,
                        ));
                    }
                }
                (false, _) => wrong.push(FieldError::invalid(
                    place.clone(),
                    "",
                    "cannot set both port name & port number",
                )),
                (true, 0) => wrong.push(FieldError::required(
                    place.clone(),
                    "port name or number is required",
                )),
                (true, number) => port(number, port_place.child("number"), wrong),
            }
        }
        (false, false) => wrong.push(FieldError::invalid(
            place.clone(),
            "",
            "resource or service backend is required",
        )),
    }
}

/// Validates a reference to controller parameters.
fn parameters(given: &Value, place: &FieldPath, wrong: &mut Errors) {
    let group = given.text(&["apiGroup"]);
    if !group.is_empty() {
        name(
            group,
            names::dns1123_subdomain,
            place.child("apiGroup"),
            wrong,
        );
    }
    for member in ["kind", "name"] {
        let text = given.text(&[member]);
        if required(text, place.child(member), wrong) {
            name(text, names::path_segment, place.child(member), wrong);
        }
    }
    let namespace = given.at(&["namespace"]).and_then(Value::as_str);
    let at = place.child("namespace");
    match (given.text(&["scope"]), namespace) {
        ("Cluster", Some(_)) => {
            let detail = "`parameters.scope` is set to 'Cluster'";
            wrong.push(FieldError::forbidden(at, detail));
        }
        ("Namespace", None) => {
            let detail = "`parameters.scope` is set to 'Namespace'";
            wrong.push(FieldError::required(at, detail));
        }
        ("Namespace", Some(namespace)) => name(namespace, names::dns1123_label, at, wrong),
        ("Cluster", None) => {}
        (scope, _) => one_of(
            scope,
            &["Cluster", "Namespace"],
            place.child("scope"),
            wrong,
        ),
    }
}

/// Returns the strategy of IngressClass: validation; the controller is immutable.
pub(crate) fn ingress_class() -> Rules {
    Rules::validating(|class, wrong| {
        let controller = class.value().text(&["spec", "controller"]);
        let place = path(&["spec", "controller"]);
        if required(controller, place.clone(), wrong) {
            match controller.split_once('/') {
                Some((domain, _)) => name(domain, names::dns1123_subdomain, place, wrong),
                None => {
                    let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
                    wrong.push(FieldError::invalid(place, controller, detail));
                }
            }
        }
        let given = class.at(&["spec", "parameters"]);
        if let Some(given) = given.filter(|value| !value.is_null()) {
            parameters(given, &path(&["spec", "parameters"]), wrong);
        }
    })
    .updating(|new, old, wrong| {
        immutable(
            new.at(&["spec", "controller"]),
            old.at(&["spec", "controller"]),
            path(&["spec", "controller"]),
            wrong,
        );
    })
}
