//! `/openapi/v2` and `/openapi/v3`: documents of this server's kinds, and of other servers.

use super::{matches_etag, not_found, not_modified, set};
use crate::aggregation::{self, Route};
use crate::reply::{self, Body, Response};
use crate::request::ask::Ask;
use crate::request::negotiate::{Media, clauses};
use crate::server::documents::Generation;
use crate::server::state::State;
use bareboat_api::{Status, Str, Value};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

const V2_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
const V3_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf";
const YEAR: Duration = Duration::from_hours(365 * 24);

pub(super) async fn v2(state: &Arc<State>, ask: &Ask) -> Response {
    let remotes = aggregation::v2_documents(state).await;
    let generation = state.documents.of(&state.catalog, &state.aggregation);
    let openapi = generation.openapi().await;
    let hash = aggregation::hash_v2(openapi.v2_hash(), &remotes);
    let etag = format!("\"{hash}\"");
    let protobuf = accepts(&ask.headers, "spec.v2");
    let mut response = if matches_etag(&ask.headers, &etag) {
        not_modified()
    } else {
        let merged = || match remotes.is_empty() {
            true => openapi.v2(),
            false => aggregation::merge_v2(openapi.v2(), &remotes),
        };
        let json = || merged().to_json();
        let (media, bytes) = if protobuf {
            let make = || bareboat_wire::openapi::encode_v2(&merged()).ok();
            let name = format!("v2.pb {hash}");
            (V2_PROTOBUF, generation.bytes(&name, make).await)
        } else {
            let name = format!("v2.json {hash}");
            let made = generation.bytes(&name, || Some(json())).await;
            (Media::Json.name(), made)
        };
        match bytes {
            Some(bytes) => reply::full(StatusCode::OK, media, bytes),
            None => reply::full(StatusCode::OK, Media::Json.name(), json().into()),
        }
    };
    let headers = response.headers_mut();
    set(headers, header::ETAG, &etag);
    headers.insert(header::VARY, HeaderValue::from_static("Accept"));
    response
}

pub(super) async fn v3(state: &Arc<State>, ask: &Ask, path: &str) -> Result<Response, Status> {
    let generation = state.documents.of(&state.catalog, &state.aggregation);
    let path = path.trim_start_matches("/openapi/v3").trim_matches('/');
    if path.is_empty() {
        return Ok(index(state, &generation).await);
    }
    if let Some(route) = remote(state, path) {
        return of_remote(state, ask, &generation, path, &route).await;
    }
    let openapi = generation.openapi().await;
    let Some(hash) = openapi.hash(path) else {
        return Ok(not_found());
    };
    let make = || openapi.document(path);
    serve(ask, &generation, path, &hash, make).await
}

/// The index of all documents. Those of other servers take the place of this server's own.
async fn index(state: &State, generation: &Generation) -> Response {
    let openapi = generation.openapi().await;
    let make = || {
        let documents = state.aggregation.documents();
        let mut index = openapi.index(&documents);
        let mut hidden = aggregation::hidden(state);
        for document in &documents {
            hidden.remove(document.path.as_str());
        }
        if let Some(Value::Object(paths)) = index.make_object().get_mut("paths") {
            paths.retain(|path, _| !hidden.contains(path));
        }
        Some(index.to_json())
    };
    let bytes = generation.bytes("v3", make).await;
    let bytes = bytes.unwrap_or_default();
    reply::full(StatusCode::OK, Media::Json.name(), bytes)
}

/// Returns the server that has the document under a path such as `apis/metrics.k8s.io/v1beta1`, if it is another one.
fn remote(state: &State, path: &str) -> Option<Arc<Route>> {
    let mut segments = path.split('/');
    let (group, version) = match (segments.next()?, segments.next()?, segments.next()) {
        ("apis", group, Some(version)) => (group, version),
        ("api", version, None) => ("", version),
        _ => return None,
    };
    match segments.next() {
        None => state.aggregation.find(group, version),
        Some(_) => None,
    }
}

async fn of_remote(
    state: &State,
    ask: &Ask,
    generation: &Generation,
    path: &str,
    route: &Route,
) -> Result<Response, Status> {
    let Some((hash, bytes)) = aggregation::document(state, route).await? else {
        return Ok(not_found());
    };
    if accepts(&ask.headers, "spec.v3") {
        let make = move || {
            bareboat_wire::json::parse(&bytes)
                .ok()
                .map(|parsed| parsed.value)
        };
        return serve(ask, generation, path, &hash, make).await;
    }
    Ok(answer(ask, path, &hash, Media::Json.name(), bytes))
}

/// Answers with a document in the form that the client accepts.
async fn serve(
    ask: &Ask,
    generation: &Generation,
    path: &str,
    hash: &str,
    make: impl FnOnce() -> Option<Value>,
) -> Result<Response, Status> {
    let etag = format!("\"{hash}\"");
    let is_current = ask.query.given("hash").is_none_or(|asked| asked == hash);
    if !is_current || matches_etag(&ask.headers, &etag) {
        return Ok(answer(ask, path, hash, Media::Json.name(), Bytes::new()));
    }
    let protobuf = accepts(&ask.headers, "spec.v3");
    let (media, name) = if protobuf {
        (V3_PROTOBUF, format!("{path}.pb {hash}"))
    } else {
        (Media::Json.name(), format!("{path}.json {hash}"))
    };
    let make = || {
        let document = make()?;
        if protobuf {
            bareboat_wire::openapi::encode_v3(&document).ok()
        } else {
            Some(document.to_json())
        }
    };
    match generation.bytes(&name, make).await {
        Some(bytes) => Ok(answer(ask, path, hash, media, bytes)),
        None => Err(Status::not_acceptable(&[Media::Json.name()])),
    }
}

/// Answers with the bytes of a document: a client that asks for another hash is redirected, one that has it gets 304.
fn answer(ask: &Ask, path: &str, hash: &str, media: &'static str, bytes: Bytes) -> Response {
    let asked = ask.query.given("hash");
    if asked.is_some_and(|asked| asked != hash) {
        let mut response = http::Response::new(Body::empty());
        *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
        let location = format!("/openapi/v3/{path}?hash={hash}");
        set(response.headers_mut(), header::LOCATION, &location);
        return response;
    }
    let etag = Str::new(format!("\"{hash}\""));
    let mut response = match matches_etag(&ask.headers, &etag) {
        true => not_modified(),
        false => reply::full(StatusCode::OK, media, bytes),
    };
    let headers = response.headers_mut();
    set(headers, header::ETAG, &etag);
    headers.insert(header::VARY, HeaderValue::from_static("Accept"));
    if asked.is_some() {
        headers.insert(
            header::CACHE_CONTROL,
            HeaderValue::from_static("public, immutable"),
        );
        let until = SystemTime::now() + YEAR;
        set(headers, header::EXPIRES, &httpdate::fmt_http_date(until));
    }
    response
}

/// Returns whether the client accepts the protobuf form of a specification.
fn accepts(headers: &HeaderMap, spec: &str) -> bool {
    clauses(headers).first().is_some_and(|clause| {
        clause
            .media
            .starts_with("application/com.github.proto-openapi.")
            && clause.media.contains(spec)
            && clause.media.ends_with("+protobuf")
    })
}
