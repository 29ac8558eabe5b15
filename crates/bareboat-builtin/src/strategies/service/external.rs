//! Validates service fields that apply to some types only.

use super::super::check::{CIDR, Errors, cidr, one_of, path};
use super::{is_balanced, is_external, is_name};
use crate::reach::Reach;
use bareboat_api::{FieldError, Object, Value, names};

pub(super) const POLICIES: [&str; 2] = ["Cluster", "Local"];
const DISTRIBUTIONS: [&str; 3] = ["PreferClose", "PreferSameZone", "PreferSameNode"];
const BALANCED: &str = "may only be used when `type` is 'LoadBalancer'";

/// Validates traffic policies, load balancer fields, and fields that ExternalName services may not set.
pub(super) fn validate(spec: &Value, wrong: &mut Errors) {
    if is_name(spec) {
        for member in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            let has = match spec.at(&[member]) {
                Some(Value::Array(list)) => !list.is_empty(),
                Some(value) => !value.is_null(),
                None => member == "clusterIPs" && !spec.text(&["clusterIP"]).is_empty(),
            };
            if has {
                let why = "may not be set for ExternalName services";
                wrong.push(FieldError::forbidden(path(&["spec", member]), why));
            }
        }
    }
    policies(spec, wrong);
    balancer(spec, wrong);
}

fn policies(spec: &Value, wrong: &mut Errors) {
    let external = spec.text(&["externalTrafficPolicy"]);
    let place = path(&["spec", "externalTrafficPolicy"]);
    match (is_external(spec), external) {
        (true, "") => wrong.push(FieldError::required(place, "")),
        (true, policy) => one_of(policy, &POLICIES, place, wrong),
        (false, "") => {}
        (false, policy) => {
            let why = "may only be set for externally-accessible services";
            wrong.push(FieldError::invalid(place, policy, why));
        }
    }
    let port = spec.int(&["healthCheckNodePort"]).unwrap_or(0);
    let place = path(&["spec", "healthCheckNodePort"]);
    let checked = is_balanced(spec) && external == "Local";
    if !checked && port != 0 {
        let why =
            "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        wrong.push(FieldError::invalid(place, port, why));
    } else if checked && !(0..=65535).contains(&port) {
        wrong.push(FieldError::invalid(
            place,
            port,
            "must be between 1 and 65535, inclusive",
        ));
    }
    if spec.has(&["internalTrafficPolicy"]) {
        let policy = spec.text(&["internalTrafficPolicy"]);
        one_of(
            policy,
            &POLICIES,
            path(&["spec", "internalTrafficPolicy"]),
            wrong,
        );
    }
    if spec.has(&["trafficDistribution"]) {
        let text = spec.text(&["trafficDistribution"]);
        one_of(
            text,
            &DISTRIBUTIONS,
            path(&["spec", "trafficDistribution"]),
            wrong,
        );
    }
}

/// Validates the deprecated annotation with comma-separated source ranges.
pub(super) fn source_ranges(service: &Object, wrong: &mut Errors) {
    const KEY: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
    let spec = service.get("spec").unwrap_or(&Value::Null);
    let Some(given) = service.annotation(KEY) else {
        return;
    };
    if !spec.list(&["loadBalancerSourceRanges"]).is_empty() {
        return;
    }
    let place = path(&["metadata", "annotations"]).key(KEY);
    if !is_balanced(spec) {
        return wrong.push(FieldError::forbidden(place, BALANCED));
    }
    let trimmed = given.trim();
    for range in trimmed.split(',').map(str::trim) {
        if !trimmed.is_empty() && cidr(range).is_none() {
            wrong.push(FieldError::invalid(place.clone(), range, CIDR));
        }
    }
}

fn balancer(spec: &Value, wrong: &mut Errors) {
    let balanced = is_balanced(spec);
    let place = path(&["spec", "allocateLoadBalancerNodePorts"]);
    match (balanced, spec.has(&["allocateLoadBalancerNodePorts"])) {
        (true, false) => wrong.push(FieldError::required(place, "")),
        (false, true) => wrong.push(FieldError::forbidden(place, BALANCED)),
        _ => {}
    }
    if spec.has(&["loadBalancerClass"]) {
        let place = path(&["spec", "loadBalancerClass"]);
        if balanced {
            let class = spec.text(&["loadBalancerClass"]);
            for why in names::qualified_name(class) {
                wrong.push(FieldError::invalid(place.clone(), class, why));
            }
        } else {
            wrong.push(FieldError::forbidden(place, BALANCED));
        }
    }
    // Upstream spells this field differently.
    let place = path(&["spec", "LoadBalancerSourceRanges"]);
    let ranges = spec.list(&["loadBalancerSourceRanges"]);
    if !ranges.is_empty() && !balanced {
        wrong.push(FieldError::forbidden(place, BALANCED));
        return;
    }
    for (index, range) in ranges.iter().enumerate() {
        let text = range.as_str().unwrap_or("");
        if cidr(text.trim()).is_none() {
            wrong.push(FieldError::invalid(place.index(index), text, CIDR));
        }
    }
}
