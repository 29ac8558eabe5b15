//! Notices changes of APIServices, of their Services, and of the endpoints of those.

use super::check::SERVICE_NAME;
use crate::feed::Listener;
use crate::kinds::read;
use crate::queue::Queue;
use bareboat_api::{Object, Value};
use bareboat_server::aggregation::STORE;
use bareboat_storage::{Entry, Event, EventKind, Resource, Store};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Adds APIServices to the queue.
pub(crate) struct AvailabilityListener {
    queue: Arc<Queue<Arc<str>>>,
    /// The names of remote APIServices by Service, `NAMESPACE/NAME`.
    by_service: HashMap<String, HashSet<Arc<str>>>,
    /// The Service of each remote APIService.
    services: HashMap<Arc<str>, String>,
}

impl AvailabilityListener {
    pub(super) fn new(queue: Arc<Queue<Arc<str>>>) -> AvailabilityListener {
        AvailabilityListener {
            queue,
            by_service: HashMap::new(),
            services: HashMap::new(),
        }
    }

    /// Remembers which Service an APIService names. Returns whether it is remote, or was.
    fn note(&mut self, name: &Arc<str>, service: Option<String>) -> bool {
        let before = self.services.remove(name);
        if let Some(before) = &before
            && let Some(names) = self.by_service.get_mut(before)
        {
            names.remove(name);
            if names.is_empty() {
                self.by_service.remove(before);
            }
        }
        let concerned = before.is_some() || service.is_some();
        if let Some(service) = service {
            let names = self.by_service.entry(service.clone()).or_default();
            names.insert(name.clone());
            self.services.insert(name.clone(), service);
        }
        concerned
    }

    fn service_changed(&self, namespace: Option<&str>, name: &str) {
        let Some(namespace) = namespace else {
            return;
        };
        for name in self
            .by_service
            .get(&format!("{namespace}/{name}"))
            .into_iter()
            .flatten()
        {
            self.queue.add(name.clone());
        }
    }
}

fn service_of(entry: &Entry) -> Option<String> {
    let object = read(entry).ok()?;
    let text = |key: &str| object.at(&["spec", "service", key])?.as_str();
    let service: Option<&Value> = object.at(&["spec", "service"]);
    service.filter(|service| !service.is_null())?;
    let (namespace, name) = (text("namespace"), text("name"));
    Some(format!(
        "{}/{}",
        namespace.unwrap_or(""),
        name.unwrap_or("")
    ))
}

/// Returns whether an APIService is checked at once. A change of its status is not a reason: this controller makes it.
fn is_due(event: &Event) -> bool {
    let prev = event.prev.as_ref();
    let Some(prev) = prev.filter(|_| event.kind == EventKind::Modified) else {
        return true;
    };
    match (read(prev), read(&event.entry)) {
        (Ok(old), Ok(new)) => differs(&old, &new),
        _ => true,
    }
}

/// Returns whether what decides about availability differs.
fn differs(old: &Object, new: &Object) -> bool {
    old.uid() != new.uid()
        || old.get("spec") != new.get("spec")
        || old.meta("annotations") != new.meta("annotations")
}

impl Listener for AvailabilityListener {
    fn reset(&mut self, store: &Store) {
        self.by_service.clear();
        self.services.clear();
        for entry in store.resource(STORE).snapshot().range("", None) {
            let name: Arc<str> = entry.key().into();
            if self.note(&name, service_of(entry)) {
                self.queue.add(name);
            }
        }
    }

    fn on_event(&mut self, resource: &Arc<Resource>, event: &Event) {
        let entry = &event.entry;
        match resource.name() {
            STORE => {
                let name: Arc<str> = event.key().into();
                let gone = event.kind == EventKind::Deleted;
                let service = if gone { None } else { service_of(entry) };
                if self.note(&name, service) && is_due(event) {
                    self.queue.add(name);
                }
            }
            _ if self.services.is_empty() => {}
            "core/services" | "core/endpoints" => {
                self.service_changed(entry.namespace(), entry.name());
            }
            "discovery.k8s.io/endpointslices" => {
                for entry in [Some(entry), event.prev.as_ref()].into_iter().flatten() {
                    let facets = entry.facets();
                    if let Some(name) = facets.label(SERVICE_NAME) {
                        self.service_changed(entry.namespace(), name);
                    }
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bareboat_api::value;

    #[test]
    fn a_change_of_the_status_is_no_reason_to_check() {
        let api_service = |port: i64, annotation: &str, status: &str| {
            let object = value!({
                "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
                "metadata": {"name": "v1.a", "uid": "1", "annotations": {"a": annotation}},
                "spec": {"service": {"namespace": "n", "name": "s", "port": port}},
                "status": {"conditions": [{"type": "Available", "status": status}]},
            });
            Object::try_from(object).expect("an object")
        };
        let old = api_service(443, "", "True");
        assert!(!differs(&old, &api_service(443, "", "False")));
        assert!(differs(&old, &api_service(8443, "", "True")));
        assert!(differs(&old, &api_service(443, "b", "True")));
    }
}
