//! Validates resource names and amounts of pods, quotas, limits and runtimes.

use super::check::{Errors, NOT_NEGATIVE, name};
use crate::reach::Reach;
use bareboat_api::quantity::Quantity;
use bareboat_api::{FieldError, FieldPath, Map, Value, names};
use std::collections::{BTreeSet, HashSet};

/// Resources of containers.
const OF_CONTAINERS: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// Resources that are counted in whole numbers.
const COUNTED: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

/// Other resources with an unqualified name.
const MEASURED: [&str; 8] = [
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "requests.storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "storage",
];

fn is_pages(resource: &str) -> bool {
    resource.starts_with("hugepages-")
}

fn is_known(resource: &str) -> bool {
    OF_CONTAINERS.contains(&resource)
        || COUNTED.contains(&resource)
        || MEASURED.contains(&resource)
        || is_pages(resource)
        || resource.starts_with("requests.hugepages-")
}

/// Returns whether a quota accepts the unqualified resource name; storage only as a request.
fn is_known_to_quotas(resource: &str) -> bool {
    is_known(resource) && resource != "storage"
}

/// Returns whether a name belongs to Kubernetes, as unqualified names do.
fn is_native(resource: &str) -> bool {
    !resource.contains('/') || resource.contains("kubernetes.io/")
}

/// Returns whether the resource is defined by an extension.
fn is_extended(resource: &str) -> bool {
    !is_native(resource)
        && !resource.starts_with("requests.")
        && names::qualified_name(&format!("requests.{resource}")).is_empty()
}

/// Returns whether the resource can be overcommitted.
fn can_be_overcommitted(resource: &str) -> bool {
    is_native(resource) && !is_pages(resource)
}

/// Parses a quantity. Typed decoding has already rejected invalid ones.
pub(super) fn quantity(value: &Value) -> Option<Quantity> {
    Quantity::parse(value.as_str()?).ok()
}

/// Validates the name of a resource.
pub(super) fn resource_name(resource: &str, place: &FieldPath, wrong: &mut Errors) -> bool {
    let complaints = names::qualified_name(resource);
    if !complaints.is_empty() {
        name(resource, names::qualified_name, place.clone(), wrong);
        return false;
    }
    if !resource.contains('/') && !is_known(resource) {
        let detail = "must be a standard resource type or fully qualified";
        wrong.push(FieldError::invalid(place.clone(), resource, detail));
        return false;
    }
    true
}

/// Validates a resource name of a container.
pub(super) fn container_resource_name(resource: &str, place: &FieldPath, wrong: &mut Errors) {
    resource_name(resource, place, wrong);
    let detail = if !resource.contains('/') {
        let known = OF_CONTAINERS.contains(&resource) || is_pages(resource);
        (!known).then_some("must be a standard resource for containers")
    } else {
        let own = is_native(resource) || is_extended(resource);
        (!own).then_some("doesn't follow extended resource name standard")
    };
    if let Some(detail) = detail {
        wrong.push(FieldError::invalid(place.clone(), resource, detail));
    }
}

/// Validates a resource name of pod-level resources.
fn pod_resource_name(resource: &str, place: &FieldPath, wrong: &mut Errors) {
    if resource_name(resource, place, wrong)
        && !matches!(resource, "cpu" | "memory")
        && !is_pages(resource)
    {
        wrong.push(FieldError::not_supported(
            place.clone(),
            resource,
            ["cpu", "hugepages-", "memory"],
        ));
    }
}

/// Validates a resource name of a quota.
pub(super) fn quota_resource_name(resource: &str, place: &FieldPath, wrong: &mut Errors) {
    resource_name(resource, place, wrong);
    if !resource.contains('/') && !is_known_to_quotas(resource) {
        let detail = "must be a standard resource for quota";
        wrong.push(FieldError::invalid(place.clone(), resource, detail));
    }
}

/// Returns whether a quota with the given scope can limit the resource.
pub(super) fn fits_scope(scope: &str, resource: &str) -> bool {
    if !is_known_to_quotas(resource) {
        return true;
    }
    match scope {
        "BestEffort" => resource == "pods",
        "Terminating"
        | "NotTerminating"
        | "NotBestEffort"
        | "PriorityClass"
        | "CrossNamespacePodAffinity" => {
            resource == "pods" || of_running_pods(resource) || is_pages(resource)
        }
        "VolumeAttributesClass" => {
            matches!(resource, "persistentvolumeclaims" | "requests.storage")
        }
        _ => true,
    }
}

fn of_running_pods(resource: &str) -> bool {
    let plain = resource
        .strip_prefix("requests.")
        .or_else(|| resource.strip_prefix("limits."));
    OF_CONTAINERS.contains(&plain.unwrap_or(resource))
}

/// Validates an amount: not negative, and whole for counted resources.
pub(super) fn amount_of(resource: &str, value: &Value, place: &FieldPath, wrong: &mut Errors) {
    let Some(amount) = quantity(value) else {
        return;
    };
    if amount.sign() < 0 {
        let error = FieldError::invalid(place.clone(), value.clone(), NOT_NEGATIVE);
        wrong.push(error);
    }
    if (COUNTED.contains(&resource) || is_extended(resource)) && amount.millis() % 1000 != 0 {
        let error = FieldError::invalid(place.clone(), value.clone(), "must be an integer");
        wrong.push(error);
    }
}

/// The owner of resource requirements.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Receiver {
    /// A container.
    Container,
    /// A pod as a whole.
    Pod,
}

/// Validates requests and limits: known resources, valid amounts, requests not above limits.
pub(super) fn requirements(
    resources: &Value,
    receiver: Receiver,
    claims: &BTreeSet<&str>,
    place: &FieldPath,
    wrong: &mut Errors,
) {
    let empty = Map::new();
    let limits = resources.members(&["limits"]).unwrap_or(&empty);
    let requests = resources.members(&["requests"]).unwrap_or(&empty);
    for (list, amounts) in [("limits", limits), ("requests", requests)] {
        for (resource, value) in amounts.iter() {
            let place = place.child(list).key(resource);
            match receiver {
                Receiver::Container => container_resource_name(resource, &place, wrong),
                Receiver::Pod => pod_resource_name(resource, &place, wrong),
            }
            amount_of(resource, value, &place, wrong);
            pages(resource, value, &place, wrong);
        }
    }
    for (resource, value) in requests.iter() {
        let Some(asked) = quantity(value) else {
            continue;
        };
        let Some(limit) = limits.get(resource).and_then(quantity) else {
            if !can_be_overcommitted(resource) && !limits.contains_key(resource) {
                let detail = "Limit must be set for non overcommitable resources";
                wrong.push(FieldError::required(place.child("limits"), detail));
            }
            continue;
        };
        let detail = if asked != limit && !can_be_overcommitted(resource) {
            format!("must be equal to {resource} limit of {limit}")
        } else if asked > limit {
            format!("must be less than or equal to {resource} limit of {limit}")
        } else {
            continue;
        };
        let error = FieldError::invalid(place.child("requests"), value.clone(), detail);
        wrong.push(error);
    }
    let any = |test: fn(&str) -> bool| limits.keys().chain(requests.keys()).any(test);
    if any(is_pages) && !any(|resource| matches!(resource, "cpu" | "memory")) {
        let detail = "HugePages require cpu or memory";
        wrong.push(FieldError::forbidden(place.clone(), detail));
    }
    claim_names(resources, claims, &place.child("claims"), wrong);
}

/// Validates that huge page amounts are multiples of the page size.
fn pages(resource: &str, value: &Value, place: &FieldPath, wrong: &mut Errors) {
    let Some(size) = resource.strip_prefix("hugepages-") else {
        return;
    };
    let size = Quantity::parse(size).ok().filter(|size| size.sign() > 0);
    let whole = match (size, quantity(value)) {
        (Some(size), Some(amount)) => amount.units() % size.units().max(1) == 0,
        _ => false,
    };
    if !whole {
        let shown = value.as_str().unwrap_or("");
        let detail = format!("{shown} is not positive integer multiple of {resource}");
        wrong.push(FieldError::invalid(place.clone(), shown, detail));
    }
}

/// Validates device claims: each is a claim of the pod and occurs once.
fn claim_names(resources: &Value, known: &BTreeSet<&str>, place: &FieldPath, wrong: &mut Errors) {
    let mut seen: HashSet<(&str, &str)> = HashSet::new();
    let mut in_part: HashSet<&str> = HashSet::new();
    for (index, claim) in resources.list(&["claims"]).iter().enumerate() {
        let place = place.index(index);
        let (claim, request) = (claim.text(&["name"]), claim.text(&["request"]));
        if claim.is_empty() {
            wrong.push(FieldError::required(place, ""));
            continue;
        }
        let key = match request {
            "" => claim.to_owned(),
            request => {
                let path = place.child("request");
                name(request, names::dns1123_label, path, wrong);
                format!("{claim}/{request}")
            }
        };
        // A claim is used as a whole or by its requests, not both.
        let taken = seen.contains(&(claim, ""))
            || !seen.insert((claim, request))
            || request.is_empty() && in_part.contains(claim);
        if taken {
            wrong.push(FieldError::duplicate(place.clone(), key));
        }
        if !request.is_empty() {
            in_part.insert(claim);
        }
        if !known.contains(claim) && !wrong.is_full() {
            let mut detail = "must be one of the names in pod.spec.resourceClaims".to_owned();
            if known.is_empty() {
                detail.push_str(" which is empty");
            } else {
                let names: Vec<&str> = known.iter().copied().collect();
                detail.push_str(&format!(": {}", names.join(", ")));
            }
            let mut error = FieldError::not_found(place, claim);
            error.detail = detail;
            wrong.push(error);
        }
    }
}
