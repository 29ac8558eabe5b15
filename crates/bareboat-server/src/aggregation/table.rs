//! The compiled table of routes: by group and version, the server that answers.

use super::backend::Backend;
use bareboat_api::{Str, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A group and version that another server serves.
pub(crate) struct Route {
    pub(crate) group: Str,
    pub(crate) version: Str,
    pub(crate) group_priority: u32,
    pub(crate) version_priority: u32,
    /// Whether requests are forwarded; otherwise they are answered with 503.
    pub(crate) available: bool,
    pub(super) backend: Arc<Backend>,
}

impl Route {
    /// Returns the path of the version, such as `/apis/metrics.k8s.io/v1beta1`.
    pub(crate) fn root(&self) -> String {
        format!("/{}", self.document_path())
    }

    /// Returns the path of its OpenAPI document.
    pub(crate) fn document_path(&self) -> String {
        match self.group.as_str() {
            "" => format!("api/{}", self.version),
            group => format!("apis/{group}/{}", self.version),
        }
    }

    /// Returns its group and version.
    pub(crate) fn place(&self) -> (Str, Str) {
        (self.group.clone(), self.version.clone())
    }

    /// Returns its resources in the form of aggregated discovery, if the server is available and they are known.
    pub(crate) fn resources(&self) -> Option<Arc<[Value]>> {
        self.last_resources().filter(|_| self.available)
    }

    /// Returns the resources that it had when its discovery was last fetched.
    pub(crate) fn last_resources(&self) -> Option<Arc<[Value]>> {
        self.backend.resources(&self.group, &self.version)
    }
}

/// All routes at one point in time.
#[derive(Default)]
pub(super) struct RouteTable(BTreeMap<Str, Vec<Arc<Route>>>);

impl RouteTable {
    pub(super) fn new(routes: impl IntoIterator<Item = Route>) -> RouteTable {
        let mut groups: BTreeMap<Str, Vec<Arc<Route>>> = BTreeMap::new();
        for route in routes {
            let versions = groups.entry(route.group.clone()).or_default();
            versions.push(Arc::new(route));
        }
        RouteTable(groups)
    }

    pub(super) fn find(&self, group: &str, version: &str) -> Option<&Arc<Route>> {
        let mut versions = self.0.get(group)?.iter();
        versions.find(|route| route.version == version)
    }

    /// Finds the version that a path of discovery is about: `/apis/GROUP/VERSION` or `/api/VERSION`.
    pub(super) fn of_path(&self, path: &str) -> Option<&Arc<Route>> {
        let mut segments = path.trim_matches('/').split('/');
        let (group, version) = match segments.next()? {
            "apis" => (segments.next()?, segments.next()?),
            "api" => ("", segments.next()?),
            _ => return None,
        };
        match segments.next() {
            None => self.find(group, version),
            Some(_) => None,
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Route>> {
        self.0.values().flatten()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
