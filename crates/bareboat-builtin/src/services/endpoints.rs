//! Resolves services to network addresses, and reads certificates from Secrets of type `kubernetes.io/tls`.
//!
//! Cluster IPs may not work where the server runs, so EndpointSlices come first, then Endpoints. The cluster IP of the
//! service is the last resort.

use crate::reach::Reach as _;
use bareboat_api::Value;
use bareboat_api::admission::Lookup;
use bareboat_api::resolver::{CertificatePair, Endpoint, ServiceResolver};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::sync::atomic::{AtomicUsize, Ordering};

const SECRETS: &str = "core/secrets";
const SERVICES: &str = "core/services";
const ENDPOINTS: &str = "core/endpoints";
const SLICES: &str = "discovery.k8s.io/endpointslices";
/// The label that names the service of an EndpointSlice.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// Resolves services by Service, EndpointSlice and Endpoints objects.
#[derive(Debug, Default)]
pub struct ServiceEndpoints {
    /// Counts connections, so that they are spread over the endpoints.
    turn: AtomicUsize,
    /// Whether cluster IPs are never used.
    only_endpoints: bool,
}

impl ServiceEndpoints {
    /// A resolver that uses cluster IPs as the last resort, or never.
    pub fn new(only_endpoints: bool) -> ServiceEndpoints {
        ServiceEndpoints {
            only_endpoints,
            ..ServiceEndpoints::default()
        }
    }
}

impl ServiceResolver for ServiceEndpoints {
    fn endpoints(
        &self,
        namespace: &str,
        name: &str,
        port: u16,
        objects: &dyn Lookup,
    ) -> Result<Vec<Endpoint>, String> {
        let service = objects.get(SERVICES, namespace, name);
        let service = service.ok_or_else(|| format!("service \"{name}\" not found"))?;
        let service = service.value();
        if service.text(&["spec", "type"]) == "ExternalName" {
            let host = service.text(&["spec", "externalName"]);
            return Ok(vec![Endpoint::new(host, port)]);
        }
        let wanted = service
            .list(&["spec", "ports"])
            .iter()
            .find(|found| found.get("port").and_then(Value::as_i64) == Some(i64::from(port)))
            .ok_or_else(|| format!("no service port {port} found for service \"{name}\""))?;
        let port_name = wanted.text(&["name"]);
        let mut endpoints = of_slices(objects, namespace, name, port_name);
        if endpoints.is_empty() {
            endpoints = of_endpoints(objects, namespace, name, port_name);
        }
        if !endpoints.is_empty() {
            let turn = self.turn.fetch_add(1, Ordering::Relaxed) % endpoints.len();
            endpoints.rotate_left(turn);
            return Ok(endpoints);
        }
        match service.text(&["spec", "clusterIP"]) {
            _ if self.only_endpoints => {
                Err(format!("no endpoints available for service \"{name}\""))
            }
            "" | "None" => Err(format!("no endpoints available for service \"{name}\"")),
            address => Ok(vec![Endpoint::new(address, port)]),
        }
    }

    fn depends_on(&self) -> &'static [&'static str] {
        &[SERVICES, SLICES, ENDPOINTS]
    }

    fn certificate(
        &self,
        namespace: &str,
        name: &str,
        objects: &dyn Lookup,
    ) -> Option<CertificatePair> {
        let secret = objects.get(SECRETS, namespace, name)?;
        let text = |member: &str| {
            let encoded = secret.at(&["data", member])?.as_str()?;
            String::from_utf8(BASE64_STANDARD.decode(encoded).ok()?).ok()
        };
        Some(CertificatePair {
            certificates: text("tls.crt")?,
            key: text("tls.key")?,
        })
    }
}

fn of_slices(
    objects: &dyn Lookup,
    namespace: &str,
    service: &str,
    port_name: &str,
) -> Vec<Endpoint> {
    let mut found = Vec::new();
    for slice in objects.list_labelled(SLICES, namespace, (SERVICE_NAME, service)) {
        let Some(port) = port_of(slice.value().list(&["ports"]), port_name) else {
            continue;
        };
        for endpoint in slice.value().list(&["endpoints"]) {
            // A missing condition counts as ready.
            if endpoint.at(&["conditions", "ready"]) == Some(&Value::Bool(false)) {
                continue;
            }
            let hosts = endpoint.list(&["addresses"]).iter();
            let hosts = hosts.filter_map(Value::as_str);
            found.extend(hosts.map(|host| Endpoint::new(host, port)));
        }
    }
    found
}

fn of_endpoints(
    objects: &dyn Lookup,
    namespace: &str,
    name: &str,
    port_name: &str,
) -> Vec<Endpoint> {
    let mut found = Vec::new();
    let Some(endpoints) = objects.get(ENDPOINTS, namespace, name) else {
        return found;
    };
    for subset in endpoints.value().list(&["subsets"]) {
        let Some(port) = port_of(subset.list(&["ports"]), port_name) else {
            continue;
        };
        for address in subset.list(&["addresses"]) {
            if let Some(ip) = address.get("ip").and_then(Value::as_str) {
                found.push(Endpoint::new(ip, port));
            }
        }
    }
    found
}

/// Returns the number of the port with this name. An unnamed port has the empty name.
fn port_of(ports: &[Value], name: &str) -> Option<u16> {
    let port = ports.iter().find(|port| port.text(&["name"]) == name)?;
    let number = port.get("port")?.as_i64()?;
    u16::try_from(number).ok().filter(|port| *port > 0)
}

#[cfg(test)]
mod tests;
