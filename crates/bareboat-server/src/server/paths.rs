//! Paths that are not resources: health, version, metrics, discovery, OpenAPI.

mod openapi;

use super::documents::Generation;
use super::state::State;
use crate::authz::Authorized;
use crate::discovery;
use crate::flow::Seat;
use crate::kinds::catalog::Backing;
use crate::metrics::{self, Readings};
use crate::reply::{self, Body, Response, compress_if_wanted, plain_text};
use crate::request::ask::Ask;
use crate::request::negotiate::{Agreed, Media, Offer, Transform, clauses, negotiate};
use crate::work;
use bareboat_api::{Status, Value};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use std::collections::HashMap;
use std::sync::Arc;

const OTHER_PATHS: [&str; 9] = [
    "/healthz",
    "/livez",
    "/readyz",
    "/metrics",
    "/openapi/v2",
    "/openapi/v3",
    "/openapi/v3/",
    "/version",
    "/version/",
];
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
/// Below this are tables of what runs and waits.
const DUMPS: &str = "/debug/api_priority_and_fairness/";

/// Returns whether a path needs no authorization.
pub(super) fn is_public(path: &str) -> bool {
    let first = path.trim_matches('/').split('/').next().unwrap_or("");
    matches!(first, "healthz" | "livez" | "readyz" | "version")
}

/// Answers a request that is not for a resource.
pub(super) async fn answer(
    state: &Arc<State>,
    ask: Authorized<Ask>,
    seat: Option<Arc<Seat>>,
) -> Result<Response, Status> {
    let path = ask.info.path.as_str();
    let trimmed = path.trim_end_matches('/');
    if let Some(response) = state.health.answer(path, &ask.query) {
        return Ok(response);
    }
    if let Some(page) = state.pages.get(trimmed) {
        return match page.accepts(&ask.method) {
            true => Ok(page.answer(&ask.method)),
            false => Err(Status::method_not_allowed()),
        };
    }
    let known = matches!(
        trimmed,
        "" | "/index.html" | "/version" | "/metrics" | "/api" | "/apis"
    ) || ["/api/", "/apis/", "/openapi/", DUMPS]
        .iter()
        .any(|root| trimmed.starts_with(root));
    if known && ask.method != Method::GET && ask.method != Method::HEAD {
        return Err(Status::method_not_allowed());
    }
    if trimmed == "/version" {
        return Ok(plain(&ask, &state.version));
    }
    let (threads, state) = (state.threads.clone(), state.clone());
    let document = async move { document(&state, &ask).await };
    threads.carry_out(seat, document).await
}

/// Answers with a document that may be large.
async fn document(state: &Arc<State>, ask: &Ask) -> Result<Response, Status> {
    let trimmed = ask.info.path.trim_end_matches('/');
    let response = match trimmed {
        "" | "/index.html" => {
            let generation = state.documents.of(&state.catalog, &state.aggregation);
            plain(ask, &generation.discovery().await.paths(OTHER_PATHS))
        }
        "/metrics" => {
            work::large().await;
            metrics(state)?
        }
        "/openapi/v2" => openapi::v2(state, ask).await,
        _ if trimmed.starts_with(DUMPS) => dump(state, ask, trimmed),
        _ if trimmed == "/openapi/v3" || trimmed.starts_with("/openapi/v3/") => {
            openapi::v3(state, ask, trimmed).await?
        }
        _ => discover(state, ask, trimmed).await?,
    };
    Ok(compress_if_wanted(&ask.headers, response, &state.threads))
}

fn not_found() -> Response {
    plain_text(StatusCode::NOT_FOUND, "404 page not found\n")
}

fn plain(ask: &Ask, value: &Value) -> Response {
    let agreed = negotiate(
        &HeaderMap::new(),
        ask.query.get("pretty").or(Some("true")),
        &Offer::PLAIN,
    );
    let agreed = agreed.unwrap_or(Agreed {
        media: Media::Json,
        transform: Transform::Whole,
        pretty: true,
    });
    in_order(agreed, value)
}

/// Encodes a document as YAML, or as JSON with its members in upstream's order.
fn in_order(agreed: Agreed, value: &Value) -> Response {
    if agreed.media == Media::Yaml {
        return reply::value(StatusCode::OK, agreed, value);
    }
    let bytes = discovery::print(value, agreed.pretty);
    reply::full(StatusCode::OK, Media::Json.name(), bytes.into())
}

fn metrics(state: &State) -> Result<Response, Status> {
    let (open, unauthenticated, unread) = state.connections.counts();
    let readings = Readings {
        store: state.store.stats(),
        under_way: state.under_way.count(),
        connections: (open, unauthenticated),
        unread_bytes: unread,
        in_flight: state.flow.in_flight(),
        objects: stored_objects(state),
    };
    let text = state
        .metrics
        .print(&readings)
        .map_err(|error| Status::internal("metrics cannot be printed").caused_by(error))?;
    Ok(reply::full(StatusCode::OK, metrics::MEDIA, text.into()))
}

/// A table of what runs and waits in flow control.
fn dump(state: &State, ask: &Ask, path: &str) -> Response {
    let name = path.strip_prefix(DUMPS).unwrap_or_default();
    let details = ask.query.given("includeRequestDetails").is_some();
    match state.flow.dump(name, details) {
        Some(text) => plain_text(StatusCode::OK, text),
        None => not_found(),
    }
}

/// Returns group, resource, and number of stored objects. Resources that share a store are listed once.
fn stored_objects(state: &State) -> Vec<(String, String, usize)> {
    let stored = state.store.resources();
    let mut sizes: HashMap<&str, usize> = stored
        .iter()
        .map(|resource| (resource.name(), resource.len()))
        .collect();
    let table = state.catalog.table();
    let kinds = table.iter().map(Backing::kind);
    kinds
        .filter_map(|kind| {
            let count = sizes.remove(kind.store.as_str())?;
            let (group, plural) = (kind.group.to_string(), kind.names.plural.to_string());
            Some((group, plural, count))
        })
        .collect()
}

/// `/api`, `/apis`, a group, or a version.
async fn discover(state: &State, ask: &Ask, path: &str) -> Result<Response, Status> {
    let generation = state.documents.of(&state.catalog, &state.aggregation);
    let root = matches!(path, "/api" | "/apis");
    if root && wants_aggregated(&ask.headers) {
        return Ok(aggregated(&generation, ask, path == "/api").await);
    }
    let discovery = generation.discovery().await;
    let mut segments = path.trim_start_matches('/').split('/');
    let found = match (
        segments.next(),
        segments.next(),
        segments.next(),
        segments.next(),
    ) {
        (Some("api"), None, ..) => {
            Some(("APIVersions", discovery.api_versions(&server_address(ask))))
        }
        (Some("api"), Some(version), None, _) => discovery
            .resources("", version)
            .map(|value| ("APIResourceList", value)),
        (Some("apis"), None, ..) => Some(("APIGroupList", discovery.group_list())),
        (Some("apis"), Some(group), None, _) => {
            discovery.group(group).map(|value| ("APIGroup", value))
        }
        (Some("apis"), Some(group), Some(version), None) => discovery
            .resources(group, version)
            .map(|value| ("APIResourceList", value)),
        _ => None,
    };
    let Some((kind, value)) = found else {
        // Clients distinguish a missing version from a missing group: the first is a Status.
        let mut segments = path.trim_start_matches('/').split('/');
        let known = match (segments.next(), segments.next(), segments.next()) {
            (Some("api"), Some(_), None) => true,
            (Some("apis"), Some(group), Some(_)) => discovery.group(group).is_some(),
            _ => false,
        };
        return if known {
            Err(Status::no_such_route())
        } else {
            Ok(not_found())
        };
    };
    let offer = Offer {
        protobuf: state.messages.available(),
        ..Offer::PLAIN
    };
    let agreed = negotiate(&ask.headers, ask.query.get("pretty"), &offer);
    let agreed = agreed.ok_or_else(|| Status::not_acceptable(&offer.names()))?;
    if agreed.media == Media::Protobuf
        && let Some(bytes) = state.messages.enveloped(kind, "v1", &value)
    {
        return Ok(reply::full(StatusCode::OK, Media::Protobuf.name(), bytes));
    }
    Ok(in_order(agreed, &value))
}

/// Returns the address at which the client reached the server.
fn server_address(ask: &Ask) -> String {
    ask.host().unwrap_or_default().to_owned()
}

/// Returns whether the first supported form of discovery in Accept is the aggregated one.
fn wants_aggregated(headers: &HeaderMap) -> bool {
    for clause in clauses(headers) {
        let aggregated = clause.parameter("as") == Some("APIGroupDiscoveryList")
            && clause.parameter("g") == Some("apidiscovery.k8s.io");
        if aggregated
            && clause.parameter("v") == Some("v2")
            && matches!(clause.media, "application/json" | "*/*" | "application/*")
        {
            return true;
        }
        if clause.parameter("as").is_none() {
            return false;
        }
    }
    false
}

async fn aggregated(generation: &Generation, ask: &Ask, core: bool) -> Response {
    let list = generation.aggregated(core).await;
    let mut response = if matches_etag(&ask.headers, &list.etag) {
        not_modified()
    } else {
        work::maybe_large(list.json.len()).await;
        reply::full(StatusCode::OK, AGGREGATED, Bytes::from(list.json.clone()))
    };
    let headers = response.headers_mut();
    set(headers, header::ETAG, &list.etag);
    headers.insert(header::VARY, HeaderValue::from_static("Accept"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public"));
    response
}

fn matches_etag(headers: &HeaderMap, etag: &str) -> bool {
    headers
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(','))
        .any(|known| known.trim().trim_start_matches("W/") == etag || known.trim() == "*")
}

fn not_modified() -> Response {
    let mut response = http::Response::new(Body::empty());
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    response
}

fn set(headers: &mut HeaderMap, name: header::HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}
