//! Quota usage of pods.

use super::meter::one;
use super::scope::{Scope, Term};
use crate::reach::Reach;
use crate::resources::{Amounts, Side, asks_as_a_whole, of_container, taken};
use crate::strategies::quality;
use bareboat_api::Value;
use std::collections::{BTreeMap, BTreeSet};

const HUGE_PAGES: &str = "hugepages-";
const DEVICE_CLASS: &str = "deviceclass.resource.kubernetes.io/";

/// Resources that every container must specify if a quota limits them.
const REQUIRED: [&str; 6] = [
    "cpu",
    "memory",
    "requests.cpu",
    "requests.memory",
    "limits.cpu",
    "limits.memory",
];

pub(super) fn covers(resource: &str) -> bool {
    let own = match resource {
        "pods" | "cpu" | "memory" | "ephemeral-storage" => true,
        _ => resource
            .strip_prefix("requests.")
            .or_else(|| resource.strip_prefix("limits."))
            .is_some_and(|name| matches!(name, "cpu" | "memory" | "ephemeral-storage")),
    };
    own || resource.starts_with(HUGE_PAGES)
        || resource
            .strip_prefix("requests.")
            .is_some_and(|name| name.starts_with(HUGE_PAGES) || is_extended(name))
}

/// Returns whether a resource is not one of Kubernetes' own.
fn is_extended(name: &str) -> bool {
    name.starts_with(DEVICE_CLASS) || (name.contains('/') && !name.contains("kubernetes.io/"))
}

/// Measures a pod. A finished pod counts as an object only.
pub(super) fn measure(pod: &Value, usage: &mut Amounts) {
    if matches!(pod.text(&["status", "phase"]), "Failed" | "Succeeded") {
        return;
    }
    usage.set("pods", one());
    add_compute(
        &taken(pod, Side::Requests),
        &taken(pod, Side::Limits),
        usage,
    );
}

fn add_compute(requests: &Amounts, limits: &Amounts, usage: &mut Amounts) {
    for (name, amount) in requests.iter() {
        let common = matches!(name, "cpu" | "memory" | "ephemeral-storage");
        if common || name.starts_with(HUGE_PAGES) {
            usage.set(name, amount);
        }
        if common || name.starts_with(HUGE_PAGES) || is_extended(name) {
            usage.set(format!("requests.{name}"), amount);
        }
    }
    for (name, amount) in limits.iter() {
        if matches!(name, "cpu" | "memory" | "ephemeral-storage") {
            usage.set(format!("limits.{name}"), amount);
        }
    }
}

/// Returns whether a pod has an active deadline.
pub(super) fn has_deadline(pod: &Value) -> bool {
    let seconds = pod.int(&["spec", "activeDeadlineSeconds"]);
    seconds.is_some_and(|seconds| seconds >= 0)
}

pub(super) fn is_within(term: &Term, pod: &Value) -> bool {
    match term.scope {
        Scope::Terminating => has_deadline(pod),
        Scope::NotTerminating => !has_deadline(pod),
        Scope::BestEffort => is_best_effort(pod),
        Scope::NotBestEffort => !is_best_effort(pod),
        Scope::PriorityClass => {
            let class = pod.text(&["spec", "priorityClassName"]);
            term.matches(Some(class).filter(|class| !class.is_empty()))
        }
        Scope::CrossNamespacePodAffinity => looks_into_other_namespaces(pod),
        Scope::VolumeAttributesClass | Scope::Unknown => false,
    }
}

/// Returns whether the QoS class is BestEffort. A pod keeps the class from its creation.
fn is_best_effort(pod: &Value) -> bool {
    let class = match pod.text(&["status", "qosClass"]) {
        "" => quality(pod),
        class => class,
    };
    class == "BestEffort"
}

fn looks_into_other_namespaces(pod: &Value) -> bool {
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
    let beyond =
        |term: &Value| !term.list(&["namespaces"]).is_empty() || term.has(&["namespaceSelector"]);
    ["podAffinity", "podAntiAffinity"].into_iter().any(|kind| {
        let list = |list| pod.list(&["spec", "affinity", kind, list]);
        list(REQUIRED).iter().any(beyond)
            || list(PREFERRED)
                .iter()
                .filter_map(|weighted| weighted.get("podAffinityTerm"))
                .any(beyond)
    })
}

/// Returns the error text for containers that do not specify a resource the quota limits, such as
/// `must specify cpu for: a,b`; `None` if all do.
pub(super) fn missing<'a>(required: impl Iterator<Item = &'a str>, pod: &Value) -> Option<String> {
    let required: BTreeSet<&str> = required.filter(|name| REQUIRED.contains(name)).collect();
    if required.is_empty() || asks_as_a_whole(pod) {
        return None;
    }
    let mut lacking: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let lists = ["containers", "initContainers"];
    for container in lists.iter().flat_map(|list| pod.list(&["spec", list])) {
        let mut specified = Amounts::default();
        let (requests, limits) = (
            of_container(container, Side::Requests),
            of_container(container, Side::Limits),
        );
        add_compute(&requests, &limits, &mut specified);
        for name in required.iter().filter(|name| specified.get(name).is_none()) {
            let names = lacking.entry(name).or_default();
            names.insert(container.text(&["name"]));
        }
    }
    if lacking.is_empty() {
        return None;
    }
    let each = lacking.into_iter().map(|(name, containers)| {
        let containers: Vec<&str> = containers.into_iter().collect();
        format!("{name} for: {}", containers.join(","))
    });
    let each: Vec<String> = each.collect();
    Some(format!("must specify {}", each.join("; ")))
}
