//! The conditions of an APIService, in the words of kube-aggregator.

use crate::conditions::Condition;
use crate::kinds::read;
use bareboat_api::{Object, Value};
use bareboat_server::aggregation::URL_ANNOTATION;
use bareboat_storage::Store;

const AVAILABLE: &str = "Available";
const SERVICES: &str = "core/services";
const ENDPOINTS: &str = "core/endpoints";
const SLICES: &str = "discovery.k8s.io/endpointslices";
/// The label that names the service of an EndpointSlice.
pub(super) const SERVICE_NAME: &str = "kubernetes.io/service-name";
/// The reason of a server that does not answer.
pub(super) const FAILED: &str = "FailedDiscoveryCheck";

/// This server serves the version itself.
pub(super) fn local() -> Condition {
    let text = "Local APIServices are always available";
    Condition::new(AVAILABLE, true, "Local", text)
}

/// The server answers.
pub(super) fn passed() -> Condition {
    Condition::new(AVAILABLE, true, "Passed", "all checks passed")
}

/// The server does not answer.
pub(super) fn failed(why: String) -> Condition {
    Condition::new(AVAILABLE, false, FAILED, why)
}

/// Whether the stored condition says that the server is available.
pub(super) fn is_available(object: &Object) -> bool {
    let conditions = object.at(&["status", "conditions"]);
    let conditions = conditions.and_then(Value::as_array).unwrap_or(&[]);
    let is = |condition: &Value, key: &str, text: &str| {
        condition.get(key).and_then(Value::as_str) == Some(text)
    };
    conditions
        .iter()
        .any(|condition| is(condition, "type", AVAILABLE) && is(condition, "status", "True"))
}

/// Returns what is wrong with the Service of an APIService.
pub(super) fn service(store: &Store, object: &Object) -> Option<Condition> {
    let annotation = ["metadata", "annotations", URL_ANNOTATION];
    if object.at(&annotation).is_some() {
        return None;
    }
    let text = |key: &str| {
        let text = object.at(&["spec", "service", key]).and_then(Value::as_str);
        text.unwrap_or("").to_owned()
    };
    let (namespace, name) = (text("namespace"), text("name"));
    let port = object.at(&["spec", "service", "port"]);
    let port = port.and_then(Value::as_i64).unwrap_or(443);
    let lacks = |reason: &'static str, message: String| {
        Some(Condition::new(AVAILABLE, false, reason, message))
    };
    let place = format!("service/{name} in {namespace:?}");
    let key = format!("{namespace}/{name}");
    let Some(entry) = store.resource(SERVICES).get(&key) else {
        return lacks("ServiceNotFound", format!("{place} is not present"));
    };
    let service = match read(&entry) {
        Ok(service) => service,
        Err(status) => {
            let why = format!("{place} cannot be checked due to: {}", status.message);
            return Some(Condition::unknown(AVAILABLE, "ServiceAccessError", why));
        }
    };
    let kind = service.at(&["spec", "type"]).and_then(Value::as_str);
    if !matches!(kind, None | Some("ClusterIP")) {
        return None;
    }
    let ports = service.at(&["spec", "ports"]).and_then(Value::as_array);
    let mut ports = ports.unwrap_or(&[]).iter();
    let Some(found) = ports.find(|found| found.get("port").and_then(Value::as_i64) == Some(port))
    else {
        let why = format!("{place} is not listening on port {port}");
        return lacks("ServicePortError", why);
    };
    let port_name = found.get("name").and_then(Value::as_str).unwrap_or("");
    match endpoints(store, &namespace, &name, port_name) {
        Err(why) => {
            let why = format!("{place} cannot be checked due to: {why}");
            Some(Condition::unknown(AVAILABLE, "EndpointsAccessError", why))
        }
        Ok(Found::Nothing) => lacks(
            "EndpointsNotFound",
            format!("cannot find endpointslices for {place}"),
        ),
        Ok(Found::NotReady) => lacks(
            "MissingEndpoints",
            format!("endpointslices for {place} have no addresses with port name {port_name:?}"),
        ),
        Ok(Found::Ready) => None,
    }
}

enum Found {
    Nothing,
    NotReady,
    Ready,
}

/// Looks for a ready endpoint: in EndpointSlices, and in Endpoints, which nothing mirrors here.
fn endpoints(store: &Store, namespace: &str, name: &str, port: &str) -> Result<Found, String> {
    let prefix = format!("{namespace}/");
    let mut found = Found::Nothing;
    for entry in store.resource(SLICES).snapshot().range(&prefix, None) {
        if entry.facets().label(SERVICE_NAME) != Some(name) {
            continue;
        }
        let slice = read(entry).map_err(|status| status.message.to_string())?;
        found = Found::NotReady;
        let ready = list(&slice, "endpoints")
            .iter()
            .any(|endpoint| endpoint.at(&["conditions", "ready"]) != Some(&Value::Bool(false)));
        if ready && has_port(list(&slice, "ports"), port) {
            return Ok(Found::Ready);
        }
    }
    let key = format!("{namespace}/{name}");
    if let Some(entry) = store.resource(ENDPOINTS).get(&key) {
        let endpoints = read(&entry).map_err(|status| status.message.to_string())?;
        for subset in list(&endpoints, "subsets") {
            found = Found::NotReady;
            let addresses = subset.get("addresses").and_then(Value::as_array);
            let ports = subset.get("ports").and_then(Value::as_array);
            if addresses.is_some_and(|all| !all.is_empty()) && has_port(ports.unwrap_or(&[]), port)
            {
                return Ok(Found::Ready);
            }
        }
    }
    Ok(found)
}

fn list<'a>(object: &'a Object, key: &str) -> &'a [Value] {
    let list = object.get(key).and_then(Value::as_array);
    list.unwrap_or(&[])
}

fn has_port(ports: &[Value], name: &str) -> bool {
    ports.iter().any(|port| {
        port.get("name").and_then(Value::as_str).unwrap_or("") == name && port.get("port").is_some()
    })
}
