//! Compiles the table of routes inside the commit of an APIService.

use super::api_service::ApiService;
use super::backend::Backend;
use super::table::{Route, RouteTable};
use super::{Aggregation, Known};
use crate::kinds::stored_kind::parse_entry;
use bareboat_api::Value;
use bareboat_storage::{Entry, Event, EventKind, Observer, Snapshot};
use std::collections::HashSet;
use std::sync::Arc;

/// Keeps the table of routes up to date. It holds nothing that holds the store.
pub(crate) struct ApiServiceObserver(pub(crate) Arc<Aggregation>);

impl Observer for ApiServiceObserver {
    fn reset(&self, snapshot: &Snapshot) {
        let mut known = self.0.known.lock();
        known.services = snapshot
            .range("", None)
            .filter_map(|entry| Some((entry.key().to_owned(), read(entry)?)))
            .collect();
        self.0.compile(&mut known);
    }

    fn changed(&self, event: &Arc<Event>) {
        let service = match event.kind {
            EventKind::Deleted => None,
            _ => read(&event.entry),
        };
        self.0.put(event.key(), service);
    }
}

fn read(entry: &Entry) -> Option<ApiService> {
    let object = parse_entry(entry).ok()?;
    Some(ApiService::parse(&Value::from(object)))
}

impl Aggregation {
    fn put(&self, name: &str, service: Option<ApiService>) {
        let mut known = self.known.lock();
        let before = match service.clone() {
            Some(service) => known.services.insert(name.to_owned(), service),
            None => known.services.remove(name),
        };
        if before == service {
            return;
        }
        let is_remote = |service: &Option<ApiService>| {
            service
                .as_ref()
                .is_some_and(|service| service.place.is_some())
        };
        if is_remote(&before) || is_remote(&service) {
            return self.compile(&mut known);
        }
        // The controller's own APIServices come and go with their kinds, and have the priorities of those.
        let adds_nothing = match (&before, &service) {
            (None, Some(service)) | (Some(service), None) => service.managed,
            _ => false,
        };
        if !adds_nothing {
            self.changed();
        }
    }

    fn compile(&self, known: &mut Known) {
        let Known { services, backends } = known;
        let mut used = HashSet::new();
        let mut routes = Vec::new();
        for service in services.values() {
            let Some(place) = &service.place else {
                continue;
            };
            let backend = backends
                .entry(place.clone())
                .or_insert_with(|| Arc::new(Backend::new(place.destination())));
            used.insert(place.clone());
            routes.push(Route {
                group: service.group.clone(),
                version: service.version.clone(),
                group_priority: service.group_priority,
                version_priority: service.version_priority,
                available: service.available,
                backend: backend.clone(),
            });
        }
        backends.retain(|place, _| used.contains(place));
        let table = RouteTable::new(routes);
        let table = (!table.is_empty()).then(|| Arc::new(table));
        self.table.store(table);
        self.changed();
    }
}

#[cfg(test)]
mod tests;
