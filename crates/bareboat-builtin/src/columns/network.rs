//! Columns of endpoints, ingresses, network policies, service addresses, leases and device claims.

use super::services::balancers;
use super::{NONE, first_of, or, selector_text, text, text_or, with_more};
use crate::reach::Reach;
use bareboat_api::Str;
use bareboat_api::Value;
use bareboat_api::kind::Column;

/// How many addresses, ports or hosts are shown; the rest is only counted.
const SHOWN: usize = 3;

/// Returns the table columns of Endpoints.
pub(crate) fn endpoints() -> Vec<Column> {
    vec![
        Column::string("Endpoints", |object, _| endpoint_addresses(object)),
        Column::age(),
    ]
}

fn endpoint_addresses(object: &Value) -> Value {
    let subsets = object.list(&["subsets"]);
    if subsets.is_empty() {
        return NONE.into();
    }
    let mut found = Vec::new();
    for subset in subsets {
        let addresses = subset.list(&["addresses"]);
        let ports = subset.list(&["ports"]);
        if ports.is_empty() {
            found.extend(
                addresses
                    .iter()
                    .map(|address| address.text(&["ip"]).to_owned()),
            );
        }
        for port in ports {
            let port = port.int(&["port"]).unwrap_or(0);
            found.extend(addresses.iter().map(|address| {
                let ip = address.text(&["ip"]);
                if ip.contains(':') {
                    format!("[{ip}]:{port}")
                } else {
                    format!("{ip}:{port}")
                }
            }));
        }
    }
    with_more(&found, SHOWN, ",")
}

/// Returns the table columns of EndpointSlice.
pub(crate) fn endpoint_slices() -> Vec<Column> {
    vec![
        text("AddressType", &["addressType"]),
        Column::string("Ports", |slice, _| {
            let ports: Vec<String> = slice
                .list(&["ports"])
                .iter()
                .map(|port| match (port.int(&["port"]), port.at(&["name"])) {
                    (Some(number), _) => number.to_string(),
                    (None, Some(Value::String(name))) => name.to_string(),
                    _ => "*".to_owned(),
                })
                .collect();
            first_of(&ports, SHOWN)
        }),
        Column::string("Endpoints", |slice, _| {
            let addresses: Vec<String> = slice
                .list(&["endpoints"])
                .iter()
                .flat_map(|endpoint| endpoint.list(&["addresses"]))
                .filter_map(|address| address.as_str().map(str::to_owned))
                .collect();
            first_of(&addresses, SHOWN)
        }),
        Column::age(),
    ]
}

/// Returns the table columns of Ingress.
pub(crate) fn ingresses() -> Vec<Column> {
    vec![
        Column::string("Class", |ingress, _| {
            let annotated =
                ingress.text(&["metadata", "annotations", "kubernetes.io/ingress.class"]);
            match ingress.text(&["spec", "ingressClassName"]) {
                "" => or(annotated, NONE),
                class => class.into(),
            }
        }),
        Column::string("Hosts", |ingress, _| {
            let hosts: Vec<String> = ingress
                .list(&["spec", "rules"])
                .iter()
                .map(|rule| rule.text(&["host"]).to_owned())
                .filter(|host| !host.is_empty())
                .collect();
            if hosts.is_empty() {
                return "*".into();
            }
            with_more(&hosts, SHOWN, ",")
        }),
        Column::string("Address", |ingress, _| balancers(ingress).join(",").into()),
        Column::string("Ports", |ingress, _| {
            let secured = !ingress.list(&["spec", "tls"]).is_empty();
            if secured { "80, 443" } else { "80" }.into()
        }),
        Column::age(),
    ]
}

/// Returns the table columns of IngressClass.
pub(crate) fn ingress_classes() -> Vec<Column> {
    const DEFAULT: &str = "ingressclass.kubernetes.io/is-default-class";
    let name = Column::string("Name", |class, _| {
        let name = class.text(&["metadata", "name"]);
        match class.text(&["metadata", "annotations", DEFAULT]) {
            "true" => format!("{name} (default)").into(),
            _ => name.into(),
        }
    });
    vec![
        Column {
            format: Str::const_new("name"),
            ..name
        },
        text("Controller", &["spec", "controller"]),
        Column::string("Parameters", |class, _| {
            let Some(parameters) = class.at(&["spec", "parameters"]) else {
                return NONE.into();
            };
            let kind = parameters.text(&["kind"]);
            let name = parameters.text(&["name"]);
            match parameters.text(&["apiGroup"]) {
                "" => format!("{kind}/{name}").into(),
                group => format!("{kind}.{group}/{name}").into(),
            }
        }),
        Column::age(),
    ]
}

/// Returns the table columns of NetworkPolicy.
pub(crate) fn network_policies() -> Vec<Column> {
    vec![
        Column::string("Pod-Selector", |policy, _| {
            selector_text(policy.at(&["spec", "podSelector"]))
        }),
        Column::age(),
    ]
}

/// Returns the table columns of ServiceCIDR.
pub(crate) fn service_cidrs() -> Vec<Column> {
    vec![
        Column::string("CIDRs", |object, _| {
            let cidrs: Vec<&str> = object
                .list(&["spec", "cidrs"])
                .iter()
                .filter_map(Value::as_str)
                .collect();
            cidrs.join(",").into()
        }),
        Column::age(),
    ]
}

/// Returns the table columns of IPAddress.
pub(crate) fn ip_addresses() -> Vec<Column> {
    vec![Column::string("ParentRef", |object, _| {
        let Some(parent) = object.at(&["spec", "parentRef"]) else {
            return NONE.into();
        };
        let mut path = parent.text(&["resource"]).to_lowercase();
        let group = parent.text(&["group"]);
        if !group.is_empty() {
            path = format!("{path}.{}", group.to_lowercase());
        }
        let namespace = parent.text(&["namespace"]);
        if !namespace.is_empty() {
            path = format!("{path}/{namespace}");
        }
        format!("{path}/{}", parent.text(&["name"])).into()
    })]
}

/// Returns the table columns of Lease.
pub(crate) fn leases() -> Vec<Column> {
    vec![text("Holder", &["spec", "holderIdentity"]), Column::age()]
}

/// Returns the table columns of RuntimeClass.
pub(crate) fn runtime_classes() -> Vec<Column> {
    vec![text("Handler", &["handler"]), Column::age()]
}

/// Returns the table columns of ResourceClaim.
pub(crate) fn resource_claims() -> Vec<Column> {
    vec![
        Column::string("State", |claim, _| {
            let mut states = Vec::new();
            if claim.has(&["metadata", "deletionTimestamp"]) {
                states.push("deleted");
            }
            if claim.has(&["status", "allocation"]) {
                states.push("allocated");
            } else if !claim.has(&["metadata", "deletionTimestamp"]) {
                states.push("pending");
            }
            if !claim.list(&["status", "reservedFor"]).is_empty() {
                states.push("reserved");
            }
            states.join(",").into()
        }),
        Column::age(),
    ]
}

/// Returns the table columns of ResourceSlice.
pub(crate) fn resource_slices() -> Vec<Column> {
    vec![
        text_or("Node", &["spec", "nodeName"], ""),
        text("Driver", &["spec", "driver"]),
        text("Pool", &["spec", "pool", "name"]),
        Column::age(),
    ]
}
