//! Endpoints, slices, network policies, addresses, leases.

use super::Rules;
use super::check::{
    Errors, cidr, immutable, ip, name, one_of, path, port, required, required_one_of,
};
use super::container::PROTOCOLS;
use crate::reach::Reach;
use bareboat_api::labels::validate_selector;
use bareboat_api::{FieldError, FieldPath, Object, Value, names};
use std::collections::HashSet;

/// What endpoints do.
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
                    let place = place.child(list).index(index).child("ip");
                    endpoint_ip(address.text(&["ip"]), place, wrong);
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
            }
        }
    })
}

/// Traffic may not be led to the server itself or to everybody.
fn endpoint_ip(text: &str, place: FieldPath, wrong: &mut Errors) {
    let Ok(address) = text.parse::<std::net::IpAddr>() else {
        ip(text, place, wrong);
        return;
    };
    let link_local = match address {
        std::net::IpAddr::V4(address) => address.is_link_local(),
        std::net::IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    let detail = if address.is_unspecified() {
        format!("may not be unspecified ({text})")
    } else if address.is_loopback() {
        "may not be in the loopback range (127.0.0.0/8, ::1/128)".to_owned()
    } else if link_local {
        "may not be in the link-local range (169.254.0.0/16, fe80::/10)".to_owned()
    } else if address.is_multicast() {
        "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)".to_owned()
    } else {
        return;
    };
    wrong.push(FieldError::invalid(place, text, detail));
}

/// What endpoint slices do.
pub(crate) fn endpoint_slice() -> Rules {
    Rules::validating(validate_slice).updating(|new, old, wrong| {
        immutable(
            new.get("addressType"),
            old.get("addressType"),
            path(&["addressType"]),
            wrong,
        );
    })
}

fn validate_slice(slice: &Object, wrong: &mut Errors) {
    const MAX_ENDPOINTS: usize = 1000;
    const MAX_ADDRESSES: usize = 100;
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
    }
    let endpoints = value.list(&["endpoints"]);
    if endpoints.len() > MAX_ENDPOINTS {
        wrong.push(FieldError::too_many(
            path(&["endpoints"]),
            endpoints.len(),
            MAX_ENDPOINTS,
        ));
        return;
    }
    for (index, endpoint) in endpoints.iter().enumerate() {
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
            endpoint_ip(text, place.index(index), wrong);
            let sixth = text.contains(':');
            if text.parse::<std::net::IpAddr>().is_ok() && sixth != (ty == "IPv6") {
                let detail = format!("must be an {ty} address");
                wrong.push(FieldError::invalid(place.clone(), text, detail));
            }
        }
    }
}

/// What network policies do.
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
                    one_of(
                        entry.text(&["protocol"]),
                        &PROTOCOLS,
                        place.child("ports").index(index).child("protocol"),
                        wrong,
                    );
                }
            }
        }
        let types = spec.list(&["policyTypes"]);
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
        let block = peer.text(&["ipBlock", "cidr"]);
        if cidr(block).is_none() {
            wrong.push(FieldError::invalid(
                place.child("ipBlock").child("cidr"),
                block,
                "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)",
            ));
        }
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

/// What IP addresses do: they are named after themselves.
pub(crate) fn ip_address() -> Rules {
    Rules::validating(|object, wrong| {
        ip(object.name(), path(&["metadata", "name"]), wrong);
        let place = path(&["spec", "parentRef"]);
        if !object.value().has(&["spec", "parentRef"]) {
            wrong.push(FieldError::required(place, ""));
            return;
        }
        for member in ["resource", "name"] {
            required(
                object.value().text(&["spec", "parentRef", member]),
                place.child(member),
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

/// What service CIDRs do.
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
        for (index, entry) in given.iter().enumerate() {
            let text = entry.as_str().unwrap_or("");
            if cidr(text).is_none() {
                wrong.push(FieldError::invalid(
                    place.index(index),
                    text,
                    "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)",
                ));
            }
        }
    })
    .updating(|new, old, wrong| {
        let list = |object: &Object| object.value().list(&["spec", "cidrs"]).to_vec();
        let (after, before) = (list(new), list(old));
        // A second family may join later; nothing else changes.
        if !(after.starts_with(&before) && (after.len() == before.len() || before.len() == 1)) {
            wrong.push(FieldError::invalid(
                path(&["spec", "cidrs"]),
                after,
                "field is immutable",
            ));
        }
    })
}

/// What leases do.
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
        if !spec.text(&["preferredHolder"]).is_empty() && spec.text(&["strategy"]).is_empty() {
            wrong.push(FieldError::forbidden(
                place.child("preferredHolder"),
                "may only be specified if `strategy` is defined",
            ));
        }
    })
}
