//! Services: ports, addresses, and what of them survives an update that leaves it out.
//!
//! Allocating cluster IPs and node ports is the server's business.

use super::Rules;
use super::check::{
    Errors, between, immutable, ip, name, path, port, port_or_name, required_one_of,
};
use super::container::PROTOCOLS;
use super::warnings;
use crate::reach::{Fill, Reach};
use bareboat_api::kind::WriteContext;
use bareboat_api::metadata::validate_labels;
use bareboat_api::{FieldError, FieldErrorKind, Object, Value, names, value};
use std::collections::{HashMap, HashSet};

const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];

/// What services do.
pub(crate) fn service() -> Rules {
    Rules::validating(validate)
        .creating(|service, _| complete_addresses(service))
        .changing(prepare_update)
        .updating(validate_update)
        .warning(warnings::service)
}

/// The first of several cluster IPs also has a field of its own, and families follow from them.
fn complete_addresses(service: &mut Object) {
    let spec = service.map_mut().object_mut("spec");
    if spec.get_str("type") == Some("ExternalName") {
        return;
    }
    let single = spec.get_str("clusterIP").unwrap_or("").to_owned();
    if !single.is_empty() && !spec.contains_key("clusterIPs") {
        spec.insert("clusterIPs", value!([(single.clone())]));
    }
    let addresses: Vec<String> = spec
        .get("clusterIPs")
        .and_then(Value::as_array)
        .unwrap_or(&[])
        .iter()
        .filter_map(|address| address.as_str().map(str::to_owned))
        .collect();
    if single.is_empty()
        && let Some(first) = addresses.first()
    {
        spec.insert("clusterIP", first.as_str().into());
    }
    let headless = addresses.first().is_some_and(|first| first == "None");
    let no_selector = spec
        .get("selector")
        .and_then(Value::as_object)
        .is_none_or(bareboat_api::Map::is_empty);
    if headless && no_selector {
        // Whoever fills in the endpoints of such a service may use either family.
        spec.fill("ipFamilyPolicy", "RequireDualStack");
        spec.fill("ipFamilies", value!(["IPv4", "IPv6"]));
        return;
    }
    let families: Vec<Value> = addresses
        .iter()
        .filter_map(|address| address.parse::<std::net::IpAddr>().ok())
        .map(|address| if address.is_ipv6() { "IPv6" } else { "IPv4" }.into())
        .collect();
    if headless || !families.is_empty() {
        let families = if headless {
            vec!["IPv4".into()]
        } else {
            families
        };
        let policy = if families.len() > 1 {
            "RequireDualStack"
        } else {
            "SingleStack"
        };
        spec.fill("ipFamilyPolicy", policy);
        spec.fill("ipFamilies", Value::Array(families));
    }
}

/// Addresses and node ports that an update leaves out stay as they are.
fn prepare_update(new: &mut Object, old: &Object, _ctx: &WriteContext<'_>) {
    let before = old.value();
    let was_name = before.text(&["spec", "type"]) == "ExternalName";
    let spec = new.map_mut().object_mut("spec");
    if spec.get_str("type") == Some("ExternalName") {
        if !was_name {
            for member in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                spec.remove(member);
            }
        }
        return;
    }
    if !was_name {
        for member in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            if let Some(value) = before.at(&["spec", member]).cloned() {
                spec.fill(member, value);
            }
        }
        node_ports(spec, before);
        let balancer = |ty: Option<&str>| ty == Some("LoadBalancer");
        if balancer(spec.get_str("type"))
            && balancer(Some(before.text(&["spec", "type"])))
            && let Some(port) = before.at(&["spec", "healthCheckNodePort"]).cloned()
        {
            spec.fill("healthCheckNodePort", port);
        }
    }
    complete_addresses(new);
}

fn node_ports(spec: &mut bareboat_api::Map, before: &Value) {
    if !matches!(spec.get_str("type"), Some("NodePort" | "LoadBalancer")) {
        return;
    }
    let known: HashMap<(Option<i64>, &str), &Value> = before
        .list(&["spec", "ports"])
        .iter()
        .filter_map(|port| {
            let key = (port.int(&["port"]), port.text(&["protocol"]));
            Some((key, port.at(&["nodePort"])?))
        })
        .collect();
    for port in spec.each("ports") {
        let number = port.get("port").and_then(Value::as_i64);
        let protocol = port.get_str("protocol").unwrap_or("");
        if let Some(node) = known.get(&(number, protocol)).copied().cloned() {
            port.fill("nodePort", node);
        }
    }
}

fn validate(service: &Object, wrong: &mut Errors) {
    let spec = service.get("spec").unwrap_or(&Value::Null);
    let place = path(&["spec"]);
    let ty = spec.text(&["type"]);
    let headless = spec.text(&["clusterIP"]) == "None";
    let ports = spec.list(&["ports"]);
    if ports.is_empty() && !headless && ty != "ExternalName" {
        wrong.push(FieldError::required(place.child("ports"), ""));
    }
    validate_ports(ports, wrong);
    validate_labels(
        spec.at(&["selector"]),
        &place.child("selector"),
        wrong.list(),
    );
    required_one_of(
        spec.text(&["sessionAffinity"]),
        &["ClientIP", "None"],
        place.child("sessionAffinity"),
        wrong,
    );
    between(
        spec.int(&["sessionAffinityConfig", "clientIP", "timeoutSeconds"]),
        (1, 86400),
        place
            .child("sessionAffinityConfig")
            .child("clientIP")
            .child("timeoutSeconds"),
        wrong,
    );
    addresses(spec, wrong);
    required_one_of(ty, &TYPES, place.child("type"), wrong);
    if ty == "ExternalName" {
        let external = spec.text(&["externalName"]);
        if external.is_empty() {
            wrong.push(FieldError::required(place.child("externalName"), ""));
        } else {
            name(
                external,
                names::dns1123_subdomain,
                place.child("externalName"),
                wrong,
            );
        }
    }
    for (index, address) in spec.list(&["externalIPs"]).iter().enumerate() {
        ip(
            address.as_str().unwrap_or(""),
            place.child("externalIPs").index(index),
            wrong,
        );
    }
}

fn validate_ports(ports: &[Value], wrong: &mut Errors) {
    let place = path(&["spec", "ports"]);
    let mut seen: HashSet<&str> = HashSet::new();
    let mut used: HashSet<(Option<i64>, &str)> = HashSet::new();
    for (index, entry) in ports.iter().enumerate() {
        let place = place.index(index);
        let text = entry.text(&["name"]);
        if text.is_empty() {
            if ports.len() > 1 {
                wrong.push(FieldError::required(place.child("name"), ""));
            }
        } else {
            name(text, names::dns1123_label, place.child("name"), wrong);
            if seen.contains(&text) {
                wrong.push(FieldError::duplicate(place.child("name"), text));
            }
            seen.insert(text);
        }
        let number = entry.int(&["port"]);
        port(number.unwrap_or(0), place.child("port"), wrong);
        let protocol = entry.text(&["protocol"]);
        required_one_of(protocol, &PROTOCOLS, place.child("protocol"), wrong);
        port_or_name(entry.at(&["targetPort"]), place.child("targetPort"), wrong);
        if used.contains(&(number, protocol)) {
            // Upstream shows its own struct with only what counts as the key.
            let shown = format!(
                "{{\"Name\":\"\",\"Protocol\":\"{protocol}\",\"AppProtocol\":null,\"Port\":{},\"TargetPort\":0,\"NodePort\":0}}",
                number.unwrap_or(0)
            );
            wrong.push(FieldError {
                kind: FieldErrorKind::Duplicate,
                path: place,
                value: None,
                detail: shown,
            });
        }
        used.insert((number, protocol));
    }
}

fn addresses(spec: &Value, wrong: &mut Errors) {
    if spec.text(&["type"]) == "ExternalName" {
        if !spec.text(&["clusterIP"]).is_empty() {
            wrong.push(FieldError::forbidden(
                path(&["spec", "clusterIP"]),
                "may not be set when `type` is 'ExternalName'",
            ));
        }
        return;
    }
    let place = path(&["spec", "clusterIPs"]);
    let given = spec.list(&["clusterIPs"]);
    let first = given.first().and_then(Value::as_str).unwrap_or("");
    let single = spec.text(&["clusterIP"]);
    if !given.is_empty() && first != single {
        let detail = if single.is_empty() {
            "must be empty when `clusterIP` is not specified"
        } else {
            "first value must match `clusterIP`"
        };
        wrong.push(FieldError::invalid(place.clone(), given.to_vec(), detail));
    }
    if first == "None" {
        if given.len() > 1 {
            let detail = "'None' must be the first and only value";
            wrong.push(FieldError::invalid(place, given.to_vec(), detail));
        }
        return;
    }
    for (index, address) in given.iter().enumerate() {
        ip(address.as_str().unwrap_or(""), place.index(index), wrong);
    }
    if given.len() > 2 {
        let detail = "may only hold up to 2 values";
        wrong.push(FieldError::invalid(place, given.to_vec(), detail));
    }
}

fn validate_update(new: &Object, old: &Object, wrong: &mut Errors) {
    let (after, before) = (new.value(), old.value());
    let is_name = |service: &Value| service.text(&["spec", "type"]) == "ExternalName";
    // An address is only given up together with the type that needs one.
    if is_name(after) || is_name(before) {
        return;
    }
    let had = before.list(&["spec", "clusterIPs"]);
    let has = after.list(&["spec", "clusterIPs"]);
    if let Some(first) = had.first() {
        immutable(
            has.first(),
            Some(first),
            path(&["spec", "clusterIPs"]).index(0),
            wrong,
        );
    }
    if let Some(class) = before.at(&["spec", "loadBalancerClass"])
        && after.text(&["spec", "type"]) == "LoadBalancer"
        && after.at(&["spec", "loadBalancerClass"]) != Some(class)
    {
        wrong.push(FieldError::invalid(
            path(&["spec", "loadBalancerClass"]),
            after
                .at(&["spec", "loadBalancerClass"])
                .cloned()
                .unwrap_or_default(),
            "may not change once set",
        ));
    }
}
