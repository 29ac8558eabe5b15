//! Estimates how many objects a request reads. `cost` of `bareboat-flow` turns objects into seats.

use crate::kinds::catalog::{Backing, Catalog};
use crate::request::info::RequestInfo;
use crate::request::options::is_true;
use crate::request::query::Query;

/// Returns how many objects a list, or the initial state of a watch, reads; 0 for other requests.
pub(crate) fn objects(catalog: &Catalog, info: &RequestInfo, query: &Query) -> usize {
    let list = match info.verb.as_str() {
        "list" | "deletecollection" => true,
        "watch" => sends_state(query),
        _ => false,
    };
    if !list || !info.is_resource || !info.name.is_empty() {
        return 0;
    }
    let table = catalog.table();
    let Some(Backing::Stored(served)) = table.find(&info.group, &info.resource) else {
        return 0;
    };
    let resource = served.resource();
    let stored = match info.namespace.as_str() {
        "" => resource.len(),
        namespace => resource.snapshot().count(&served.prefix(namespace), None),
    };
    let selects = query.given("labelSelector").is_some() || query.given("fieldSelector").is_some();
    let any_version = query.get("resourceVersion") == Some("0");
    let limit = query.get("limit").and_then(|text| text.parse().ok());
    match limit {
        // A page is cut without reading the rest.
        Some(limit) if limit > 0 && !selects && !any_version && info.verb == "list" => {
            stored.min(limit)
        }
        _ => stored,
    }
}

/// Returns whether a watch starts with all objects.
fn sends_state(query: &Query) -> bool {
    match query.get("sendInitialEvents") {
        Some(wanted) => is_true(wanted),
        None => matches!(query.get("resourceVersion"), None | Some("" | "0")),
    }
}
