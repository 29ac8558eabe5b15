//! Where a service is, and what a secret holds: looked up in the store at the moment somebody connects.
//!
//! There may be nobody who makes cluster addresses work, so endpoints come first: of slices, then of Endpoints objects. The
//! address of the service itself is the last resort. DNS and connections are the business of whoever dials.

use crate::kinds::served::parse_entry;
use crate::tls::ClientIdentity;
use bareboat_api::Value;
use bareboat_storage::{Entry, Store};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const SECRETS: &str = "core/secrets";
const SERVICES: &str = "core/services";
const ENDPOINTS: &str = "core/endpoints";
const SLICES: &str = "discovery.k8s.io/endpointslices";
/// The label by which a slice names its service.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// Somewhere in the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// An address or a name.
    pub(super) host: String,
    pub(super) port: u16,
}

impl Place {
    pub(super) fn new(host: &str, port: u16) -> Place {
        Place {
            host: host.to_owned(),
            port,
        }
    }
}

/// Finds services.
#[derive(Clone)]
pub(super) struct Services {
    store: Store,
    /// Lets connections go round the endpoints.
    turn: Arc<AtomicUsize>,
}

impl Services {
    pub(super) fn new(store: &Store) -> Services {
        Services {
            store: store.clone(),
            turn: Arc::default(),
        }
    }

    /// The places a port of `NAME.NAMESPACE.svc` stands for, in the order to try them.
    pub(super) fn find(&self, host: &str, port: u16) -> Result<Vec<Place>, String> {
        let mut parts = host.split('.');
        let (Some(name), Some(namespace), Some("svc"), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(format!("{host} is not the name of a service"));
        };
        let key = format!("{namespace}/{name}");
        let service = self.store.resource(SERVICES).get(&key).and_then(read);
        let service = service.ok_or_else(|| format!("service \"{name}\" not found"))?;
        let spec = |member: &str| service.at(&["spec", member]);
        let text = |member: &str| spec(member).and_then(Value::as_str).unwrap_or("");
        if text("type") == "ExternalName" {
            return Ok(vec![Place::new(text("externalName"), port)]);
        }
        let wanted = list(spec("ports"))
            .iter()
            .find(|found| found.get("port").and_then(Value::as_i64) == Some(i64::from(port)))
            .ok_or_else(|| format!("no service port {port} found for service \"{name}\""))?;
        let port_name = wanted.get("name").and_then(Value::as_str).unwrap_or("");
        let mut places = self.of_slices(namespace, name, port_name);
        if places.is_empty() {
            places = self.of_endpoints(&key, port_name);
        }
        if !places.is_empty() {
            let turn = self.turn.fetch_add(1, Ordering::Relaxed) % places.len();
            places.rotate_left(turn);
            return Ok(places);
        }
        match text("clusterIP") {
            "" | "None" => Err(format!("no endpoints available for service \"{name}\"")),
            address => Ok(vec![Place::new(address, port)]),
        }
    }

    /// The certificate in a secret of type `kubernetes.io/tls`, as it is when somebody connects.
    pub(super) fn certificate(&self, secret: &str) -> ClientIdentity {
        let (store, key) = (self.store.clone(), secret.to_owned());
        ClientIdentity::looked_up(move || {
            let secret = store.resource(SECRETS).get(&key).and_then(read)?;
            let text = |member: &str| {
                let encoded = secret.at(&["data", member])?.as_str()?;
                String::from_utf8(BASE64_STANDARD.decode(encoded).ok()?).ok()
            };
            Some((text("tls.crt")?, text("tls.key")?))
        })
    }

    fn of_slices(&self, namespace: &str, service: &str, port_name: &str) -> Vec<Place> {
        let snapshot = self.store.resource(SLICES).snapshot();
        let prefix = format!("{namespace}/");
        let mut places = Vec::new();
        for entry in snapshot.range(&prefix, None) {
            if entry.facets().label(SERVICE_NAME) != Some(service) {
                continue;
            }
            let Some(slice) = read(entry.clone()) else {
                continue;
            };
            let Some(port) = port_of(slice.get("ports"), port_name) else {
                continue;
            };
            for endpoint in list(slice.get("endpoints")) {
                // Unknown counts as ready.
                if endpoint.at(&["conditions", "ready"]) == Some(&Value::Bool(false)) {
                    continue;
                }
                let addresses = list(endpoint.get("addresses")).iter();
                let hosts = addresses.filter_map(Value::as_str);
                places.extend(hosts.map(|host| Place::new(host, port)));
            }
        }
        places
    }

    fn of_endpoints(&self, key: &str, port_name: &str) -> Vec<Place> {
        let endpoints = self.store.resource(ENDPOINTS).get(key).and_then(read);
        let mut places = Vec::new();
        for subset in list(endpoints.as_ref().and_then(|found| found.get("subsets"))) {
            let Some(port) = port_of(subset.get("ports"), port_name) else {
                continue;
            };
            for address in list(subset.get("addresses")) {
                if let Some(ip) = address.get("ip").and_then(Value::as_str) {
                    places.push(Place::new(ip, port));
                }
            }
        }
        places
    }
}

fn read(entry: Arc<Entry>) -> Option<Value> {
    parse_entry(&entry).ok().map(Value::from)
}

fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).unwrap_or(&[])
}

/// The number of the port of that name; a port without a name has the empty one.
fn port_of(ports: Option<&Value>, name: &str) -> Option<u16> {
    let named = |port: &&Value| port.get("name").and_then(Value::as_str).unwrap_or("") == name;
    let port = list(ports).iter().find(named)?.get("port")?.as_i64()?;
    u16::try_from(port).ok().filter(|port| *port > 0)
}

#[cfg(test)]
mod tests;
