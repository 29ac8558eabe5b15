//! Endpoints, EndpointSlices, NetworkPolicies, IPAddresses, ServiceCIDRs and Leases.

use super::Rules;
use super::check::{
    CIDR, Errors, IMMUTABLE, cidr, immutable, ip, name, one_of, path, port, port_or_name,
    reachable, required, required_one_of, starts_at_its_address,
};
use super::container::PROTOCOLS;
use crate::reach::{Fill, Reach};
use bareboat_api::labels::validate_selector;
use bareboat_api::{FieldError, FieldPath, Object, Value, names};
use std::collections::HashSet;

/// Returns the strategy of Endpoints: validation.
pub(crate) fn endpoints() -> Rules {
    Rules::validating(|object, wrong| {
        for (index, subset) in object.value().list(&["subsets"]).iter().enumerate() {
            let place = path(&["subsets"]).index(index);
            if subset.list(&["addresses"]).is_empty()
                && subset.list(&["notReadyAddresses"]).is_empty()
            {
                wrong.push(FieldError::required(
                    place.clone(),
                    "must specify `addresses` or `notReadyAddresses`",
                ));
            }
            for list in ["addresses", "notReadyAddresses"] {
                for (index, address) in subset.list(&[list]).iter().enumerate() {
                    let place = place.child(list).index(index);
                    endpoint_ip(address.text(&["ip"]), place.child("ip"), wrong);
                    let host = address.text(&["hostname"]);
                    if !host.is_empty() {
                        name(host, names::dns1123_label, place.child("hostname"), wrong);
                    }
                    let node = address.text(&["nodeName"]);
                    if !node.is_empty() {
                        name(
                            node,
                            names::dns1123_subdomain,
                            place.child("nodeName"),
                            wrong,
                        );
                    }
                }
            }
            let ports = subset.list(&["ports"]);
            for (index, entry) in ports.iter().enumerate() {
                let place = place.child("ports").index(index);
                let text = entry.text(&["name"]);
                if !text.is_empty() {
                    name(text, names::dns1123_label, place.child("name"), wrong);
                } else if ports.len() > 1 {
                    wrong.push(FieldError::required(place.child("name"), ""));
                }
                port(
                    entry.int(&["port"]).unwrap_or(0),
                    place.child("port"),
                    wrong,
                );
                required_one_of(
                    entry.text(&["protocol"]),
                    &PROTOCOLS,
                    place.child("protocol"),
                    wrong,
                );
                app_protocol(entry, &place, wrong);
            }
        }
    })
}

/// Validates the application protocol of a port, if set.
pub(super) fn app_protocol(entry: &Value, place: &FieldPath, wrong: &mut Errors) {
    if let Some(protocol) = entry.at(&["appProtocol"]).and_then(Value::as_str) {
        let place = place.child("appProtocol");
        name(protocol, names::qualified_name, place, wrong);
    }
}

/// Validates an address of Endpoints. Upstream reports an invalid one twice.
fn endpoint_ip(text: &str, place: FieldPath, wrong: &mut Errors) {
    match text.parse() {
        Ok(address) => reachable(address, text, &place, wrong),
        Err(_) => {
            ip(text, place.clone(), wrong);
            let detail = "must be a valid IP address";
            wrong.push(FieldError::invalid(place, text, detail));
        }
    }
}

/// Returns the strategy of EndpointSlice: validation and warnings; the address type is immutable.
pub(crate) fn endpoint_slice() -> Rules {
    Rules::validating(validate_slice)
        .at_first(validate_endpoints)
        .creating(|slice, _| without_topology(slice))
        .changing(|slice, _, _| without_topology(slice))
        .warning(|new, _| {
            let named = new.value().text(&["addressType"]) == "FQDN";
            let text = "spec.addressType: FQDN endpoints are deprecated";
            named.then(|| text.to_owned()).into_iter().collect()
        })
        .updating(|new, old, wrong| {
            immutable(
                new.get("addressType"),
                old.get("addressType"),
                path(&["addressType"]),
                wrong,
            );
            // Unchanged endpoints are not validated again.
            if new.get("endpoints") != old.get("endpoints") {
                validate_endpoints(new, wrong);
            }
        })
}

/// Drops the deprecated topology, which this version does not have.
fn without_topology(slice: &mut Object) {
    for endpoint in slice.map_mut().each("endpoints") {
        endpoint.remove("deprecatedTopology");
    }
}

fn validate_slice(slice: &Object, wrong: &mut Errors) {
    const MAX_PORTS: usize = 20000;
    let value = slice.value();
    let ty = value.text(&["addressType"]);
    required_one_of(ty, &["FQDN", "IPv4", "IPv6"], path(&["addressType"]), wrong);
    let ports = value.list(&["ports"]);
    if ports.len() > MAX_PORTS {
        wrong.push(FieldError::too_many(
            path(&["ports"]),
            ports.len(),
            MAX_PORTS,
        ));
    }
    let mut seen: HashSet<&str> = HashSet::new();
    for (index, entry) in ports.iter().enumerate() {
        let place = path(&["ports"]).index(index);
        let text = entry.text(&["name"]);
        if !text.is_empty() {
            name(text, names::dns1123_label, place.child("name"), wrong);
        }
        if seen.contains(&text) {
            wrong.push(FieldError::duplicate(place.child("name"), text));
        }
        seen.insert(text);
        one_of(
            entry.text(&["protocol"]),
            &PROTOCOLS,
            place.child("protocol"),
            wrong,
        );
        app_protocol(entry, &place, wrong);
    }
}

fn validate_endpoints(slice: &Object, wrong: &mut Errors) {
    const MAX_ENDPOINTS: usize = 1000;
    const MAX_ADDRESSES: usize = 100;
    let ty = slice.value().text(&["addressType"]);
    let endpoints = slice.value().list(&["endpoints"]);
    if endpoints.len() > MAX_ENDPOINTS {
        wrong.push(FieldError::too_many(
            path(&["endpoints"]),
            endpoints.len(),
            MAX_ENDPOINTS,
        ));
        return;
    }
    for (index, endpoint) in endpoints.iter().enumerate() {
        endpoint_details(endpoint, &path(&["endpoints"]).index(index), wrong);
        let place = path(&["endpoints"]).index(index).child("addresses");
        let addresses = endpoint.list(&["addresses"]);
        if addresses.is_empty() {
            wrong.push(FieldError::required(
                place.clone(),
                "must contain at least 1 address",
            ));
        } else if addresses.len() > MAX_ADDRESSES {
            wrong.push(FieldError::too_many(
                place.clone(),
                addresses.len(),
                MAX_ADDRESSES,
            ));
        }
        for (index, address) in addresses.iter().enumerate() {
            let text = address.as_str().unwrap_or("");
            if ty == "FQDN" {
                name(text, names::dns1123_subdomain, place.index(index), wrong);
                continue;
            }
            let Ok(known) = text.parse::<std::net::IpAddr>() else {
                ip(text, place.index(index), wrong);
                continue;
            };
            reachable(known, text, &place.index(index), wrong);
            if known.is_ipv6() != (ty == "IPv6") {
                let detail = format!("must be an {ty} address");
                wrong.push(FieldError::invalid(place.clone(), text, detail));
            }
        }
    }
}

/// Validates node name, host name and hints of an endpoint.
fn endpoint_details(endpoint: &Value, place: &FieldPath, wrong: &mut Errors) {
    if let Some(node) = endpoint.at(&["nodeName"]).and_then(Value::as_str) {
        let place = place.child("nodeName");
        name(node, names::dns1123_subdomain, place, wrong);
    }
    if let Some(host) = endpoint.at(&["hostname"]).and_then(Value::as_str) {
        name(host, names::dns1123_label, place.child("hostname"), wrong);
    }
    for (list, rule) in [
        ("forZones", names::label_value as fn(&str) -> Vec<String>),
        ("forNodes", names::dns1123_subdomain),
    ] {
        let mut seen: HashSet<&str> = HashSet::new();
        for (index, hint) in endpoint.list(&["hints", list]).iter().enumerate() {
            let place = place.child("hints").child(list).index(index).child("name");
            let text = hint.text(&["name"]);
            if seen.insert(text) {
                name(text, rule, place, wrong);
            } else {
                wrong.push(FieldError::duplicate(place, text));
            }
        }
    }
}

/// Returns the strategy of NetworkPolicy: validation.
pub(crate) fn network_policy() -> Rules {
    Rules::validating(|policy, wrong| {
        let spec = policy.get("spec").unwrap_or(&Value::Null);
        let place = path(&["spec"]);
        if let Some(selector) = spec.at(&["podSelector"]) {
            wrong.extend(validate_selector(selector, &place.child("podSelector")));
        }
        for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
            for (index, rule) in spec.list(&[direction]).iter().enumerate() {
                let place = place.child(direction).index(index);
                for (index, peer) in rule.list(&[peers]).iter().enumerate() {
                    policy_peer(peer, &place.child(peers).index(index), wrong);
                }
                for (index, entry) in rule.list(&["ports"]).iter().enumerate() {
                    policy_port(entry, &place.child("ports").index(index), wrong);
                }
            }
        }
        let types = spec.list(&["policyTypes"]);
        if types.len() > 2 {
            wrong.push(FieldError::invalid(
                place.child("policyTypes"),
                types.to_vec(),
                "may not specify more than two policyTypes",
            ));
            return;
        }
        for (index, ty) in types.iter().enumerate() {
            one_of(
                ty.as_str().unwrap_or(""),
                &["Ingress", "Egress"],
                place.child("policyTypes").index(index),
                wrong,
            );
        }
    })
}

/// Validates a port: number, name or range.
fn policy_port(entry: &Value, place: &FieldPath, wrong: &mut Errors) {
    let protocol = entry.text(&["protocol"]);
    let known = ["TCP", "UDP", "SCTP"];
    one_of(protocol, &known, place.child("protocol"), wrong);
    let first = entry.at(&["port"]).filter(|value| !value.is_null());
    if first.is_some() {
        port_or_name(first, place.child("port"), wrong);
    }
    let Some(last) = entry.int(&["endPort"]) else {
        return;
    };
    let at = place.child("endPort");
    match first {
        None => {
            let detail = "may not be specified when `port` is not specified";
            wrong.push(FieldError::invalid(at, last, detail));
        }
        Some(Value::Int(first)) => {
            if last < *first {
                let detail = "must be greater than or equal to `port`";
                wrong.push(FieldError::invalid(at.clone(), *first, detail));
            }
            port(last, at, wrong);
        }
        Some(_) => {
            let detail = "may not be specified when `port` is non-numeric";
            wrong.push(FieldError::invalid(at, last, detail));
        }
    }
}

fn policy_peer(peer: &Value, place: &FieldPath, wrong: &mut Errors) {
    let mut given = 0;
    for member in ["podSelector", "namespaceSelector"] {
        if let Some(selector) = peer.at(&[member]).filter(|value| !value.is_null()) {
            given += 1;
            wrong.extend(validate_selector(selector, &place.child(member)));
        }
    }
    if peer.has(&["ipBlock"]) {
        given += 1;
        address_block(peer, &place.child("ipBlock"), wrong);
        if given > 1 {
            wrong.push(FieldError::forbidden(
                place.clone(),
                "may not specify both ipBlock and another peer",
            ));
        }
    }
    if given == 0 {
        wrong.push(FieldError::required(place.clone(), "must specify a peer"));
    }
}

/// Validates an IP block and its exceptions.
fn address_block(peer: &Value, place: &FieldPath, wrong: &mut Errors) {
    let text = peer.text(&["ipBlock", "cidr"]);
    if !required(text, place.child("cidr"), wrong) {
        return;
    }
    let Some((address, length)) = cidr(text) else {
        return wrong.push(FieldError::invalid(place.child("cidr"), text, CIDR));
    };
    for (index, entry) in peer.list(&["ipBlock", "except"]).iter().enumerate() {
        let place = place.child("except").index(index);
        let text = entry.as_str().unwrap_or("");
        match cidr(text) {
            None => wrong.push(FieldError::invalid(place, text, CIDR)),
            Some((inner, longer)) if longer > length && within(inner, address, length) => {}
            Some(_) => {
                let detail = "must be a strict subset of `cidr`";
                wrong.push(FieldError::invalid(place, text, detail));
            }
        }
    }
}

fn within(inner: std::net::IpAddr, outer: std::net::IpAddr, length: u8) -> bool {
    use std::net::IpAddr::{V4, V6};
    let same = |a: u128, b: u128, width: u32| {
        let host = width - u32::from(length);
        host >= 128 || a >> host == b >> host
    };
    match (inner, outer) {
        (V4(a), V4(b)) => same(u32::from(a).into(), u32::from(b).into(), 32),
        (V6(a), V6(b)) => same(a.into(), b.into(), 128),
        _ => false,
    }
}

/// Returns the strategy of IPAddress: validation, also of the name, which is the address; `spec.parentRef` is
/// immutable.
pub(crate) fn ip_address() -> Rules {
    Rules::validating(|object, wrong| {
        let own = object.name();
        ip(own, path(&["metadata", "name"]), wrong);
        if let Ok(address) = own.parse::<std::net::IpAddr>()
            && address.to_string() != own
        {
            let detail = format!("must be in canonical form (\"{address}\")");
            wrong.push(FieldError::invalid(
                path(&["metadata", "name"]),
                own,
                detail,
            ));
        }
        let place = path(&["spec", "parentRef"]);
        if !object.value().has(&["spec", "parentRef"]) {
            wrong.push(FieldError::required(place, ""));
            return;
        }
        let parent = |member| object.value().text(&["spec", "parentRef", member]);
        let group = parent("group");
        if !group.is_empty() {
            name(group, names::dns1123_subdomain, place.child("group"), wrong);
        }
        for member in ["resource", "name"] {
            if required(parent(member), place.child(member), wrong) {
                name(
                    parent(member),
                    names::path_segment,
                    place.child(member),
                    wrong,
                );
            }
        }
        let namespace = parent("namespace");
        if !namespace.is_empty() {
            name(
                namespace,
                names::path_segment,
                place.child("namespace"),
                wrong,
            );
        }
    })
    .updating(|new, old, wrong| {
        immutable(
            new.at(&["spec", "parentRef"]),
            old.at(&["spec", "parentRef"]),
            path(&["spec", "parentRef"]),
            wrong,
        );
    })
}

/// Returns the strategy of ServiceCIDR: validation; updates may only add a second IP family.
pub(crate) fn service_cidr() -> Rules {
    Rules::validating(|object, wrong| {
        let place = path(&["spec", "cidrs"]);
        let given = object.value().list(&["spec", "cidrs"]);
        if given.is_empty() {
            wrong.push(FieldError::required(
                place.clone(),
                "at least one CIDR required",
            ));
        }
        if given.len() > 2 {
            let detail = "may only hold up to 2 values";
            let spec = object.get("spec").cloned().unwrap_or_default();
            return wrong.push(FieldError::invalid(place, spec, detail));
        }
        let mut families = Vec::new();
        for (index, entry) in given.iter().enumerate() {
            let text = entry.as_str().unwrap_or("");
            match cidr(text) {
                None => wrong.push(FieldError::invalid(place.index(index), text, CIDR)),
                Some((address, length)) => {
                    families.push(address.is_ipv4());
                    if !starts_at_its_address(address, length) {
                        let detail = "must not have bits set beyond the prefix length";
                        wrong.push(FieldError::invalid(place.index(index), text, detail));
                    }
                }
            }
        }
        if families.len() == 2 && families[0] == families[1] {
            let detail = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
            wrong.push(FieldError::invalid(place, given.to_vec(), detail));
        }
    })
    .updating(|new, old, wrong| {
        let list = |object: &Object| object.value().list(&["spec", "cidrs"]).to_vec();
        let (after, before) = (list(new), list(old));
        // A second family may be added; nothing else changes.
        let place = path(&["spec", "cidrs"]);
        if after.len() < before.len() {
            return wrong.push(FieldError::invalid(place, after, IMMUTABLE));
        }
        for (index, (now, was)) in after.iter().zip(&before).enumerate() {
            if now != was {
                wrong.push(FieldError::invalid(place.index(index), now.clone(), IMMUTABLE));
            }
        }
    })
}

/// Returns the strategy of Lease: validation; drops fields whose feature gate is off by default.
pub(crate) fn lease() -> Rules {
    Rules::validating(|lease, wrong| {
        let spec = lease.get("spec").unwrap_or(&Value::Null);
        let place = path(&["spec"]);
        if let Some(seconds) = spec.int(&["leaseDurationSeconds"]).filter(|n| *n <= 0) {
            wrong.push(FieldError::invalid(
                place.child("leaseDurationSeconds"),
                seconds,
                "must be greater than 0",
            ));
        }
        super::check::not_negative(
            spec.int(&["leaseTransitions"]),
            place.child("leaseTransitions"),
            wrong,
        );
    })
    .creating(|lease, _| without_coordination(lease))
    .changing(|lease, _, _| without_coordination(lease))
}

/// Drops coordinated leader election fields, whose feature gate is off by default.
fn without_coordination(lease: &mut Object) {
    let spec = lease.map_mut().object_mut("spec");
    for member in ["strategy", "preferredHolder"] {
        spec.remove(member);
    }
}
