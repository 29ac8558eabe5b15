//! Columns of services.

use super::{NONE, labels_text, or, text};
use crate::reach::Reach;
use bareboat_api::Value;
use bareboat_api::kind::Column;

/// Returns the table columns of Service.
pub(crate) fn services() -> Vec<Column> {
    vec![
        text("Type", &["spec", "type"]),
        Column::string("Cluster-IP", |service, _| {
            let first = service.list(&["spec", "clusterIPs"]).first();
            or(first.and_then(Value::as_str).unwrap_or(""), NONE)
        }),
        Column::string("External-IP", |service, _| external_ip(service)),
        Column::string("Port(s)", |service, _| ports(service)),
        Column::age(),
        Column::string("Selector", |service, _| {
            labels_text(service.members(&["spec", "selector"]))
        })
        .wide(),
    ]
}

fn external_ip(service: &Value) -> Value {
    let own: Vec<&str> = service
        .list(&["spec", "externalIPs"])
        .iter()
        .filter_map(Value::as_str)
        .collect();
    match service.text(&["spec", "type"]) {
        "ClusterIP" | "NodePort" => or(&own.join(","), NONE),
        "LoadBalancer" => {
            let mut found: Vec<&str> = balancers(service);
            found.extend(own);
            or(&found.join(","), "<pending>")
        }
        "ExternalName" => service.text(&["spec", "externalName"]).into(),
        _ => super::UNKNOWN.into(),
    }
}

/// Returns addresses or host names of load balancers, without duplicates.
pub(super) fn balancers(object: &Value) -> Vec<&str> {
    let mut found: Vec<&str> = object
        .list(&["status", "loadBalancer", "ingress"])
        .iter()
        .map(|ingress| match ingress.text(&["ip"]) {
            "" => ingress.text(&["hostname"]),
            ip => ip,
        })
        .filter(|address| !address.is_empty())
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

fn ports(service: &Value) -> Value {
    let ports: Vec<String> = service
        .list(&["spec", "ports"])
        .iter()
        .map(|port| {
            let number = port.int(&["port"]).unwrap_or(0);
            let protocol = port.text(&["protocol"]);
            match port.int(&["nodePort"]).unwrap_or(0) {
                0 => format!("{number}/{protocol}"),
                node => format!("{number}:{node}/{protocol}"),
            }
        })
        .collect();
    or(&ports.join(","), NONE)
}
