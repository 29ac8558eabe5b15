//! Defaults of core kinds other than pods.

use super::{pod_template, round_resources, spec, volume};
use crate::reach::{Fill, Reach};
use bareboat_api::{Map, Value, value};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The label that holds the namespace's name.
pub(crate) const NAMESPACE_NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// Sets the defaults of Namespace.
pub(crate) fn namespace(object: &mut Value) {
    let name = object.text(&["metadata", "name"]).to_owned();
    let map = object.make_object();
    if !name.is_empty() {
        map.object_mut("metadata")
            .object_mut("labels")
            .insert(NAMESPACE_NAME_LABEL, name.into());
    }
    map.object_mut("status").fill("phase", "Active");
}

/// Sets the defaults of Secret and moves `stringData` to `data`.
pub(crate) fn secret(object: &mut Value) {
    let map = object.make_object();
    map.fill("type", "Opaque");
    let Some(Value::Object(texts)) = map.remove("stringData") else {
        return;
    };
    if texts.is_empty() {
        return;
    }
    let data = map.object_mut("data");
    for (key, text) in texts {
        let encoded = STANDARD.encode(text.as_str().unwrap_or(""));
        data.insert(key, encoded.into());
    }
}

/// Sets the defaults of Service that need no allocator.
pub(crate) fn service(object: &mut Value) {
    let spec = spec(object);
    spec.fill("sessionAffinity", "None");
    match spec.get_str("sessionAffinity") {
        Some("None") => {
            spec.remove("sessionAffinityConfig");
        }
        Some("ClientIP") => {
            spec.object_mut("sessionAffinityConfig")
                .object_mut("clientIP")
                .fill("timeoutSeconds", 10800);
        }
        _ => {}
    }
    spec.fill("type", "ClusterIP");
    for port in spec.each("ports") {
        port.fill("protocol", "TCP");
        let unset = match port.get("targetPort") {
            None | Some(Value::Null | Value::Int(0)) => true,
            Some(target) => target.as_str() == Some(""),
        };
        if unset {
            let number = port.get("port").cloned().unwrap_or(Value::Int(0));
            port.insert("targetPort", number);
        }
    }
    let ty = spec.get_str("type").unwrap_or("").to_owned();
    let externally = matches!(ty.as_str(), "NodePort" | "LoadBalancer")
        || (ty == "ClusterIP"
            && spec
                .get("externalIPs")
                .and_then(Value::as_array)
                .is_some_and(|ips| !ips.is_empty()));
    if externally {
        spec.fill("externalTrafficPolicy", "Cluster");
    }
    if matches!(ty.as_str(), "NodePort" | "LoadBalancer" | "ClusterIP") {
        spec.fill("internalTrafficPolicy", "Cluster");
    }
    if ty == "LoadBalancer" {
        spec.fill("allocateLoadBalancerNodePorts", true);
        if let Some(balancer) = object
            .make_object()
            .sub("status")
            .and_then(|status| status.sub("loadBalancer"))
        {
            for ingress in balancer.each("ingress") {
                if ingress.get_str("ip").is_some_and(|ip| !ip.is_empty()) {
                    ingress.fill("ipMode", "VIP");
                }
            }
        }
    }
}

/// Sets the defaults of Endpoints.
pub(crate) fn endpoints(object: &mut Value) {
    for subset in object.make_object().each("subsets") {
        for port in subset.each("ports") {
            port.fill("protocol", "TCP");
        }
    }
}

/// Sets the defaults of Node.
pub(crate) fn node(object: &mut Value) {
    let status = object.make_object().object_mut("status");
    round_resources(status.sub("capacity"));
    if let Some(capacity) = status.get("capacity").cloned() {
        status.fill("allocatable", capacity);
    }
    round_resources(status.sub("allocatable"));
    // The first range is repeated in a field of its own.
    let spec = spec(object);
    let single = spec.get_str("podCIDR").unwrap_or("").to_owned();
    let several = spec
        .get("podCIDRs")
        .and_then(Value::as_array)
        .unwrap_or(&[]);
    let same = several
        .first()
        .is_some_and(|first| first.as_str() == Some(&single));
    // If only the single field is set, it becomes the list.
    if !single.is_empty() && !same {
        spec.insert("podCIDRs", value!([single]));
    }
    let first = spec
        .get("podCIDRs")
        .and_then(Value::as_array)
        .and_then(|ranges| ranges.first())
        .cloned();
    if let Some(first) = first {
        spec.insert("podCIDR", first);
    }
}

/// Sets the defaults of PodTemplate.
pub(crate) fn pod_template_kind(object: &mut Value) {
    pod_template(object.make_object().object_mut("template"));
}

/// Sets the defaults of ReplicationController. Selector and labels come from the template.
pub(crate) fn replication_controller(object: &mut Value) {
    let labels = object
        .members(&["spec", "template", "metadata", "labels"])
        .filter(|labels| !labels.is_empty())
        .cloned();
    let map = object.make_object();
    let spec = map.object_mut("spec");
    spec.fill("replicas", 1);
    if let Some(labels) = &labels {
        spec.fill("selector", labels.clone());
    }
    if let Some(template) = spec.sub("template") {
        pod_template(template);
    }
    if let Some(labels) = labels {
        map.object_mut("metadata").fill("labels", labels);
    }
}

/// Sets the defaults of PersistentVolume.
pub(crate) fn persistent_volume(object: &mut Value) {
    let map = object.make_object();
    map.object_mut("status").fill("phase", "Pending");
    let spec = map.object_mut("spec");
    spec.fill("persistentVolumeReclaimPolicy", "Retain");
    spec.fill("volumeMode", "Filesystem");
    volume::source(spec);
    round_resources(spec.sub("capacity"));
}

/// Sets the defaults of PersistentVolumeClaim; also used for StatefulSet claim templates.
pub(crate) fn persistent_volume_claim(object: &mut Value) {
    claim(object.make_object());
}

/// Sets the defaults of a claim embedded in another object.
pub(super) fn claim(map: &mut Map) {
    map.object_mut("status").fill("phase", "Pending");
    let spec = map.object_mut("spec");
    spec.fill("volumeMode", "Filesystem");
    if let Some(resources) = spec.sub("resources") {
        round_resources(resources.sub("requests"));
        round_resources(resources.sub("limits"));
    }
}

/// Sets the defaults of ResourceQuota.
pub(crate) fn resource_quota(object: &mut Value) {
    round_resources(spec(object).sub("hard"));
}

/// Sets the defaults of LimitRange: default limits and requests derive from the bounds.
pub(crate) fn limit_range(object: &mut Value) {
    for item in spec(object).each("limits") {
        for list in [
            "max",
            "min",
            "default",
            "defaultRequest",
            "maxLimitRequestRatio",
        ] {
            round_resources(item.sub(list));
        }
        if item.get_str("type") != Some("Container") {
            continue;
        }
        fill_from(item, "default", "max");
        fill_from(item, "defaultRequest", "default");
        fill_from(item, "defaultRequest", "min");
    }
}

/// Copies members that are missing in one list from another.
fn fill_from(item: &mut Map, to: &str, from: &str) {
    let Some(Value::Object(source)) = item.get(from).cloned() else {
        return;
    };
    let target = item.object_mut(to);
    for (name, amount) in source {
        target.fill(&name, amount);
    }
}

/// Returns the taint of a node that is not ready yet.
pub(crate) fn not_ready_taint() -> Value {
    value!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"})
}
