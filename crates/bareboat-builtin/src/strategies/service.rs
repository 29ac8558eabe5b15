//! Services: ports, addresses, and fields that depend on the type.
//!
//! Allocation of cluster IPs and node ports is in `services`.

mod external;

use super::Rules;
use super::check::{
    Errors, ip, name, one_of, path, port, port_or_name, reachable, required_one_of,
};
use super::container::PROTOCOLS;
use super::ingress::balancer;
use super::network::app_protocol;
use super::warnings;
use crate::reach::{Fill, Reach};
use bareboat_api::kind::WriteContext;
use bareboat_api::metadata::validate_labels;
use bareboat_api::{FieldError, FieldErrorKind, Map, Object, Value, names};
use std::collections::HashSet;

const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];

/// Returns the strategy of Service: drops fields that its type does not use; validation, warnings; its Endpoints are
/// deleted with it.
pub(crate) fn service() -> Rules {
    Rules::validating(validate)
        .creating(|new, _| drop_inner_policy(new))
        .changing(prepare_update)
        .updating(validate_update)
        .statuses(|new, _, wrong| balancers(new, wrong))
        .warning(warnings::service)
        .with_companions(&[("", "endpoints")])
}

/// Validates the addresses of a load balancer.
fn balancers(service: &Object, wrong: &mut Errors) {
    let entries = service.value().list(&["status", "loadBalancer", "ingress"]);
    let spec = service.get("spec").unwrap_or(&Value::Null);
    if !entries.is_empty() && !is_balanced(spec) {
        let place = path(&["status", "loadBalancer", "ingress"]);
        let detail = "may only be used when `spec.type` is 'LoadBalancer'";
        wrong.push(FieldError::forbidden(place, detail));
        return;
    }
    for (index, entry) in entries.iter().enumerate() {
        let place = path(&["status", "loadBalancer", "ingress"]).index(index);
        balancer(entry, &place, wrong);
        let Some(mode) = entry.at(&["ipMode"]).and_then(Value::as_str) else {
            continue;
        };
        let place = place.child("ipMode");
        if entry.text(&["ip"]).is_empty() {
            let detail = "may not be specified when `ip` is not set";
            wrong.push(FieldError::forbidden(place, detail));
        } else {
            one_of(mode, &["Proxy", "VIP"], place, wrong);
        }
    }
}

fn is_name(spec: &Value) -> bool {
    spec.text(&["type"]) == "ExternalName"
}

fn is_external(spec: &Value) -> bool {
    matches!(spec.text(&["type"]), "NodePort" | "LoadBalancer")
        || (spec.text(&["type"]) == "ClusterIP" && !spec.list(&["externalIPs"]).is_empty())
}

fn is_balanced(spec: &Value) -> bool {
    spec.text(&["type"]) == "LoadBalancer"
}

/// Returns whether the service type has node ports.
fn has_node_ports(spec: &Value) -> bool {
    matches!(spec.text(&["type"]), "NodePort" | "LoadBalancer")
}

fn has_health_check(spec: &Value) -> bool {
    is_balanced(spec) && spec.text(&["externalTrafficPolicy"]) == "Local"
}

/// Drops fields that the new type does not use, unless the client changed them too. Validation then reports them.
// Upstream: pkg/registry/core/service/strategy.go, dropTypeDependentFields.
fn prepare_update(new: &mut Object, old: &Object, _ctx: &WriteContext<'_>) {
    let nothing = Value::Null;
    let before = old.get("spec").unwrap_or(&nothing);
    let after = new.get("spec").cloned().unwrap_or_default();
    let same = |member: &str| after.at(&[member]) == before.at(&[member]);
    let lost = |has: fn(&Value) -> bool| has(before) && !has(&after);
    let spec = new.map_mut().object_mut("spec");
    if lost(|spec| !is_name(spec)) {
        // A client that sets only clusterIP means both fields.
        if same("clusterIP") && (same("clusterIPs") || !after.has(&["clusterIPs"])) {
            spec.remove("clusterIP");
            spec.remove("clusterIPs");
        }
        drop_members(spec, &["ipFamilies", "ipFamilyPolicy"], same);
    }
    let ports = |spec: &Value| -> HashSet<i64> {
        let ports = spec.list(&["ports"]).iter();
        let numbers = ports.filter_map(|port| port.int(&["nodePort"]));
        numbers.filter(|number| *number != 0).collect()
    };
    if lost(has_node_ports) && ports(before).is_superset(&ports(&after)) {
        for port in spec.each("ports") {
            port.remove("nodePort");
        }
    }
    if lost(has_health_check) {
        drop_members(spec, &["healthCheckNodePort"], same);
    }
    if lost(is_balanced) {
        drop_members(
            spec,
            &["allocateLoadBalancerNodePorts", "loadBalancerClass"],
            same,
        );
    }
    if lost(is_external) {
        drop_members(spec, &["externalTrafficPolicy"], same);
    }
    drop_inner_policy(new);
    if !is_balanced(&after) {
        let status = new.map_mut().object_mut("status");
        status.insert("loadBalancer", Value::object());
    }
}

/// Drops a valid internal traffic policy of an ExternalName service; an invalid one is rejected later.
// Upstream: pkg/registry/core/service/storage, defaultOnReadInternalTrafficPolicy.
fn drop_inner_policy(service: &mut Object) {
    let spec = service.map_mut().object_mut("spec");
    let is_name = spec.get_str("type") == Some("ExternalName");
    let policy = spec.get_str("internalTrafficPolicy").unwrap_or("");
    if is_name && external::POLICIES.contains(&policy) {
        spec.remove("internalTrafficPolicy");
    }
}

fn drop_members(spec: &mut Map, members: &[&str], same: impl Fn(&str) -> bool) {
    for member in members.iter().filter(|member| same(member)) {
        spec.remove(member);
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
    validate_ports(ports, ty, wrong);
    validate_labels(spec.at(&["selector"]), &place.child("selector"), wrong);
    required_one_of(
        spec.text(&["sessionAffinity"]),
        &["ClientIP", "None"],
        place.child("sessionAffinity"),
        wrong,
    );
    let timeout = spec.int(&["sessionAffinityConfig", "clientIP", "timeoutSeconds"]);
    if let Some(seconds) = timeout.filter(|seconds| !(1..=86400).contains(seconds)) {
        let place = place.child("sessionAffinityConfig").child("clientIP");
        let detail = "must be greater than 0 and less than 86400";
        wrong.push(FieldError::invalid(
            place.child("timeoutSeconds"),
            seconds,
            detail,
        ));
    }
    if headless && ty == "LoadBalancer" {
        let detail = "may not be set to 'None' for LoadBalancer services";
        let place = place.child("clusterIPs").index(0);
        wrong.push(FieldError::invalid(place, "None", detail));
    }
    wrong.extend(crate::services::check_addresses(spec));
    external::validate(spec, wrong);
    required_one_of(ty, &TYPES, place.child("type"), wrong);
    if ty == "ExternalName" {
        let external = spec.text(&["externalName"]);
        if external.is_empty() {
            wrong.push(FieldError::required(place.child("externalName"), ""));
        } else {
            // A trailing dot is not part of the name.
            let external = external.strip_suffix('.').unwrap_or(external);
            name(
                external,
                names::dns1123_subdomain,
                place.child("externalName"),
                wrong,
            );
        }
    }
    for (index, address) in spec.list(&["externalIPs"]).iter().enumerate() {
        let address = address.as_str().unwrap_or("");
        let place = place.child("externalIPs").index(index);
        match address.parse() {
            Ok(known) => reachable(known, address, &place, wrong),
            Err(_) => ip(address, place, wrong),
        }
    }
    external::source_ranges(service, wrong);
}

fn validate_ports(ports: &[Value], ty: &str, wrong: &mut Errors) {
    let place = path(&["spec", "ports"]);
    let mut seen: HashSet<&str> = HashSet::new();
    let mut used: HashSet<(Option<i64>, &str)> = HashSet::new();
    let mut node_ports: HashSet<(i64, &str)> = HashSet::new();
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
        app_protocol(entry, &place, wrong);
        if let Some(node) = entry.int(&["nodePort"]).filter(|node| *node != 0) {
            if ty == "ClusterIP" {
                let why = "may not be used when `type` is 'ClusterIP'";
                wrong.push(FieldError::forbidden(place.child("nodePort"), why));
            } else if !node_ports.insert((node, protocol)) {
                wrong.push(FieldError::duplicate(place.child("nodePort"), node));
            }
        }
        if used.contains(&(number, protocol)) {
            // Upstream shows its own struct with the key members only.
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

fn validate_update(new: &Object, old: &Object, wrong: &mut Errors) {
    let nothing = Value::Null;
    let (after, before) = (
        new.get("spec").unwrap_or(&nothing),
        old.get("spec").unwrap_or(&nothing),
    );
    if !is_name(after) && !is_name(before) {
        lists_of_families(after, before, wrong);
    }
    if is_balanced(after) && is_balanced(before) {
        let class = |spec: &Value| spec.at(&["loadBalancerClass"]).cloned();
        if class(after) != class(before) {
            wrong.push(FieldError::invalid(
                path(&["spec", "loadBalancerClass"]),
                class(after).unwrap_or_default(),
                "may not change once set",
            ));
        }
    }
}

/// Validates that the first address and family stay; a second may be added or removed.
// Upstream: pkg/apis/core/validation, validateUpgradeDowngradeClusterIPs and …IPFamilies.
fn lists_of_families(after: &Value, before: &Value, wrong: &mut Errors) {
    let headless = |spec: &Value| spec.text(&["clusterIP"]) == "None";
    let both_headless = headless(after) && headless(before);
    for (member, what) in [
        ("clusterIPs", "primary clusterIP"),
        ("ipFamilies", "primary ipFamily"),
    ] {
        // A headless service may change its families.
        if both_headless {
            continue;
        }
        let (now, then) = (after.list(&[member]), before.list(&[member]));
        if !then.is_empty() && now.is_empty() {
            let why = format!("{what} can not be unset");
            let place = path(&["spec", member]).index(0);
            wrong.push(FieldError::invalid(place, now.to_vec(), why));
        }
        for (index, (now_one, then_one)) in now.iter().zip(then).enumerate() {
            if now_one != then_one {
                let place = path(&["spec", member]).index(index);
                wrong.push(FieldError::invalid(
                    place,
                    now.to_vec(),
                    "may not change once set",
                ));
            }
        }
    }
}
