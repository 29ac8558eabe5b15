//! IPAddress objects of service addresses: builds them and reads their parent.

use crate::reach::Reach;
use bareboat_api::{Value, value};
use std::collections::HashSet;
use std::net::IpAddr;

const FAMILY: &str = "ipaddress.kubernetes.io/ip-family";
const MANAGED_BY: &str = "ipaddress.kubernetes.io/managed-by";
const MANAGER: &str = "ipallocator.k8s.io";

/// Returns the addresses of a service, without duplicates.
pub fn addresses(service: &Value) -> Vec<IpAddr> {
    let spec = service.get("spec").unwrap_or(&Value::Null);
    if spec.text(&["type"]) == "ExternalName" {
        return Vec::new();
    }
    let (mut found, mut seen) = (Vec::new(), HashSet::new());
    let several = spec.list(&["clusterIPs"]).iter().filter_map(Value::as_str);
    for text in several.chain([spec.text(&["clusterIP"])]) {
        if let Some(address) = text.parse().ok().filter(|new| seen.insert(*new)) {
            found.push(address);
        }
    }
    found
}

/// Returns the IPAddress object of a service address.
pub fn ip_address_of(namespace: &str, service: &str, address: IpAddr) -> Value {
    let family = if address.is_ipv4() { "IPv4" } else { "IPv6" };
    value!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "IPAddress",
        "metadata": {
            "name": (address.to_string()),
            "labels": {(FAMILY): family, (MANAGED_BY): (MANAGER)},
        },
        "spec": {"parentRef": {"resource": "services", "namespace": namespace, "name": service}},
    })
}

/// Returns the service (`namespace/name`) that an IPAddress names, if any.
pub fn parent(object: &Value) -> Option<String> {
    let parent = object.at(&["spec", "parentRef"])?;
    let is_service = parent.text(&["group"]).is_empty() && parent.text(&["resource"]) == "services";
    is_service.then(|| format!("{}/{}", parent.text(&["namespace"]), parent.text(&["name"])))
}

/// Returns whether the server manages an IPAddress, as opposed to a client.
pub fn is_managed(object: &Value) -> bool {
    let labels = object.at(&["metadata", "labels"]);
    labels
        .and_then(|labels| labels.get(MANAGED_BY))
        .and_then(Value::as_str)
        == Some(MANAGER)
}
