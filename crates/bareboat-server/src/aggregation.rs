//! Aggregation: groups and versions that other API servers serve.
//!
//! An APIService with a service gives its group and version to another server. The table of routes is compiled inside
//! the commit of an APIService, and each request looks into it once. This room decides which server answers a request
//! and keeps that server's discovery and OpenAPI; `proxy` forwards requests, and a controller sets whether the server is
//! available.

mod api_service;
mod backend;
mod convert;
mod fetch;
mod merge;
mod observer;
mod pass;
mod probe;
mod refresh;
mod table;

pub(crate) use merge::{hash_v2, merge_v2};
pub(crate) use observer::ApiServiceObserver;
pub(crate) use pass::answer;
pub(crate) use refresh::{document, hidden, v2_documents};
pub(crate) use table::Route;

use crate::discovery::{Priorities, RemoteVersion};
use crate::openapi::RemoteDocument;
use crate::request::info::RequestInfo;
use api_service::{ApiService, Place};
use arc_swap::ArcSwapOption;
use backend::Backend;
use bareboat_api::Str;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use table::RouteTable;

/// The store resource of APIServices.
pub const STORE: &str = "apiregistration.k8s.io/apiservices";
/// The group of APIServices, which no other server may take.
const OWN_GROUP: &str = "apiregistration.k8s.io";
/// The annotation with the URL of a server that no Service leads to.
pub const URL_ANNOTATION: &str = "bareboat.dev/url";

/// The groups and versions that other servers serve.
#[derive(Default)]
pub(crate) struct Aggregation {
    /// `None` while there is no remote APIService.
    table: ArcSwapOption<RouteTable>,
    known: Mutex<Known>,
    /// Changes whenever documents about remote groups do.
    generation: AtomicU64,
    /// Whether a client has asked for OpenAPI 2, which is large and seldom needed.
    wants_v2: AtomicBool,
}

/// All APIServices, and the servers behind them.
#[derive(Default)]
struct Known {
    services: BTreeMap<String, ApiService>,
    backends: HashMap<Place, Arc<Backend>>,
}

impl Aggregation {
    /// Returns the server that answers a request, if it is another one.
    pub(crate) fn route(&self, info: &RequestInfo) -> Option<Arc<Route>> {
        let table = self.table.load();
        let table = table.as_ref()?;
        let route = match info.is_resource {
            true => table.find(&info.group, &info.version),
            false => table.of_path(&info.path),
        };
        route.cloned()
    }

    /// Returns the route of an APIService by its name.
    pub(crate) fn named(&self, name: &str) -> Option<Arc<Route>> {
        let (version, group) = name.split_once('.')?;
        let table = self.table.load();
        table.as_ref()?.find(group, version).cloned()
    }

    /// Returns the route of a group and version.
    pub(crate) fn find(&self, group: &str, version: &str) -> Option<Arc<Route>> {
        self.table.load().as_ref()?.find(group, version).cloned()
    }

    /// Returns whether there is a route.
    pub(crate) fn has_routes(&self) -> bool {
        self.table.load().is_some()
    }

    /// Returns all routes, sorted by group and version.
    pub(crate) fn routes(&self) -> Vec<Arc<Route>> {
        let table = self.table.load();
        table
            .as_ref()
            .map(|table| table.iter().cloned().collect())
            .unwrap_or_default()
    }

    /// Returns a number that changes whenever discovery or OpenAPI of a remote group does.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    fn changed(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns what discovery says about remote versions.
    pub(crate) fn versions(&self) -> Vec<RemoteVersion> {
        let describe = |route: &Arc<Route>| RemoteVersion {
            group: route.group.clone(),
            version: route.version.clone(),
            group_priority: route.group_priority,
            version_priority: route.version_priority,
            resources: route.resources().map(|found| found.to_vec()),
            last_resources: route.last_resources(),
        };
        self.routes().iter().map(describe).collect()
    }

    /// Returns the priorities that APIServices give to groups and versions.
    pub(crate) fn priorities(&self) -> Priorities {
        let known = self.known.lock();
        let services = known.services.values();
        services
            .map(|service| {
                let place = (service.group.clone(), service.version.clone());
                (place, (service.group_priority, service.version_priority))
            })
            .collect()
    }

    /// Returns the OpenAPI 3 documents of remote versions, with a hash of each.
    pub(crate) fn documents(&self) -> Vec<RemoteDocument> {
        let routes = self.routes().into_iter();
        routes
            .filter_map(|route| {
                let path = route.document_path();
                let hash = route.backend.document_hash(&path)?;
                Some(RemoteDocument {
                    path: Str::new(path),
                    hash,
                })
            })
            .collect()
    }
}
