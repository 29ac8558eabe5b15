//! Fetches discovery and OpenAPI of other servers. Clients never wait for discovery: they get what is known.

use super::backend::{Backend, V2Document};
use super::fetch::{self, Fetched, Wanted};
use super::{Route, convert};
use crate::discovery::{aggregated_resources, listed_resources};
use crate::flow;
use crate::server::state::State;
use bareboat_api::{Status, Str, Value};
use bytes::Bytes;
use futures_util::future::join_all;
use http::StatusCode;
use sha2::{Digest as _, Sha256};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The age at which discovery is fetched again. Probes every 30 s look at it, so it is fetched once a minute.
const RECENT: Duration = Duration::from_secs(55);
/// Maximum size of discovery and of the index of OpenAPI documents.
const MOST_DISCOVERY: usize = 4 << 20;
/// Maximum size of an OpenAPI document, and of all that are kept of one server.
const MOST_OPENAPI: usize = 16 << 20;
/// How long a client waits for OpenAPI 2 of other servers. What arrives later is in the next answer. Also the age at
/// which it is fetched again.
const V2_PATIENCE: Duration = Duration::from_secs(1);
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
    application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

/// Fetches what is known of the server of a route, unless it is recent.
pub(super) async fn refresh(state: &State, route: &Route) {
    let backend = &route.backend;
    let place = (route.group.clone(), route.version.clone());
    let is_recent = || {
        let content = backend.content();
        let recent = content.fetched.is_some_and(|at| at.elapsed() < RECENT);
        recent && content.resources.contains_key(&place)
    };
    if is_recent() {
        return;
    }
    let _turn = backend.refreshing.lock().await;
    if is_recent() {
        return;
    }
    let mut changed = discover(state, route).await;
    changed |= index(state, route).await;
    if changed {
        state.aggregation.changed();
    }
}

async fn get(state: &State, backend: &Backend, wanted: Wanted<'_>) -> Option<Fetched> {
    let path = wanted.path.to_owned();
    let fetching = fetch::get(state.proxy.outbound(), backend, wanted);
    match flow::away(fetching).await {
        Ok(fetched) => Some(fetched),
        Err(error) => {
            tracing::debug!(%path, %error, "a document of another server cannot be fetched");
            None
        }
    }
}

async fn parse(state: &State, body: Bytes) -> Option<Value> {
    let size = body.len();
    let parse = move || bareboat_wire::json::parse(&body).ok();
    let parsed = state.threads.compute(size, parse).await;
    parsed.map(|parsed| parsed.value)
}

/// Fetches resources: of all versions in one document, or of this version alone. Returns whether they changed.
async fn discover(state: &State, route: &Route) -> bool {
    let backend = &route.backend;
    let place = (route.group.clone(), route.version.clone());
    let known = backend.content().etag.clone();
    let wanted = Wanted {
        path: "/apis",
        accept: AGGREGATED,
        etag: known.clone(),
        most: MOST_DISCOVERY,
    };
    // The core group is in no aggregated list under this path.
    let fetched = match route.group.is_empty() {
        true => None,
        false => get(state, backend, wanted).await,
    };
    if let Some(fetched) = fetched {
        if fetched.code == StatusCode::NOT_MODIFIED {
            let mut content = backend.content();
            content.fetched = Some(Instant::now());
            if content.resources.contains_key(&place) {
                return false;
            }
        } else if fetched.code.is_success()
            && fetched.media.contains("as=APIGroupDiscoveryList")
            && let Ok(body) = fetched.body
            && let Some(list) = parse(state, body).await
        {
            let found: HashMap<(Str, Str), Arc<[Value]>> = aggregated_resources(&list)
                .into_iter()
                .map(|(place, resources)| (place, Arc::from(resources)))
                .collect();
            let mut content = backend.content();
            content.fetched = Some(Instant::now());
            content.etag = fetched.etag;
            let has_it = found.contains_key(&place);
            let changed = content.resources != found;
            content.resources = found;
            if has_it {
                return changed;
            }
        }
    }
    let path = route.root();
    let wanted = Wanted {
        path: &path,
        accept: "application/json",
        etag: None,
        most: MOST_DISCOVERY,
    };
    let Some(Fetched {
        code,
        body: Ok(body),
        ..
    }) = get(state, backend, wanted).await
    else {
        return false;
    };
    if !code.is_success() {
        return false;
    }
    let list = parse(state, body).await;
    let Some(resources) = list.as_ref().and_then(listed_resources) else {
        return false;
    };
    let resources: Arc<[Value]> = Arc::from(resources);
    let mut content = backend.content();
    content.fetched = Some(Instant::now());
    let before = content.resources.insert(place, resources.clone());
    before.is_none_or(|before| before != resources)
}

/// Fetches the index of OpenAPI 3 documents; a server without one has OpenAPI 2, which is converted. Returns whether
/// documents changed.
async fn index(state: &State, route: &Route) -> bool {
    let backend = &route.backend;
    let wanted = Wanted {
        path: "/openapi/v3",
        accept: "application/json",
        etag: None,
        most: MOST_DISCOVERY,
    };
    let Some(fetched) = get(state, backend, wanted).await else {
        return false;
    };
    let mut found: HashMap<String, Str> = HashMap::new();
    let only_v2 = fetched.code == StatusCode::NOT_FOUND;
    if only_v2 {
        let Some(v2) = fetch_v2(state, backend).await else {
            return false;
        };
        for other in state.aggregation.routes() {
            if Arc::ptr_eq(&other.backend, backend) {
                found.insert(other.document_path(), v2.hash.clone());
            }
        }
    } else if fetched.code.is_success()
        && let Ok(body) = fetched.body
        && let Some(index) = parse(state, body).await
    {
        let paths = index.get("paths").and_then(Value::as_object);
        for (path, entry) in paths.into_iter().flat_map(|paths| paths.iter()) {
            let url = entry.get("serverRelativeURL").and_then(Value::as_str);
            let url = url.unwrap_or("");
            let hash = match url.split_once("hash=") {
                Some((_, hash)) => hash.split('&').next().unwrap_or("").to_owned(),
                None => digest(url.as_bytes()),
            };
            // It is shown in URLs and headers.
            let is_plain = hash.bytes().all(|byte| byte.is_ascii_alphanumeric());
            let hash = match is_plain && hash.len() <= 256 {
                true => hash,
                false => digest(hash.as_bytes()),
            };
            found.insert(path.to_owned(), Str::new(hash));
        }
    } else {
        return false;
    }
    let mut content = backend.content();
    let changed = content.index != found;
    if changed {
        content
            .documents
            .retain(|path, (hash, _)| found.get(path) == Some(hash));
    }
    content.only_v2 = only_v2;
    content.index = found;
    changed
}

fn digest(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02X}")).collect()
}

/// Returns OpenAPI 2 of a server. Only one request fetches it at a time; the others wait, and use its result.
async fn fetch_v2(state: &State, backend: &Backend) -> Option<V2Document> {
    let mut ended = flow::away(backend.fetching_v2.lock()).await;
    let known = backend.content().v2.clone();
    if ended.is_some_and(|at| at.elapsed() < V2_PATIENCE) {
        return known;
    }
    let found = fetch_changed_v2(state, backend, known).await;
    *ended = Some(Instant::now());
    found
}

/// Fetches OpenAPI 2 of a server, if it changed.
async fn fetch_changed_v2(
    state: &State,
    backend: &Backend,
    known: Option<V2Document>,
) -> Option<V2Document> {
    let wanted = Wanted {
        path: "/openapi/v2",
        accept: "application/json",
        etag: known.as_ref().and_then(|known| known.etag.clone()),
        most: MOST_OPENAPI,
    };
    let fetched = get(state, backend, wanted).await?;
    if fetched.code == StatusCode::NOT_MODIFIED {
        return known;
    }
    let (true, Ok(body)) = (fetched.code.is_success(), fetched.body) else {
        return None;
    };
    let hash = Str::new(digest(&body));
    if let Some(known) = known.filter(|known| known.hash == hash) {
        return Some(known);
    }
    let document = parse(state, body)
        .await
        .filter(|found| found.as_object().is_some())?;
    let made = V2Document {
        etag: fetched.etag,
        hash,
        document: Arc::new(document),
    };
    backend.content().v2 = Some(made.clone());
    Some(made)
}

/// The OpenAPI 2 document of a server, and the paths of the versions that clients see of it.
pub(crate) struct RemoteV2 {
    pub(crate) roots: Vec<String>,
    pub(crate) hash: Str,
    pub(crate) document: Arc<Value>,
}

/// Fetches OpenAPI 2 of a server in a task, which goes on if the client leaves.
async fn renew_v2(state: &Arc<State>, backend: &Arc<Backend>) {
    if backend.fetching_v2.try_lock().is_err() {
        // Another task fetches it.
        drop(backend.fetching_v2.lock().await);
        return;
    }
    let (state, backend) = (state.clone(), backend.clone());
    let task = tokio::spawn(async move { fetch_v2(&state, &backend).await.is_some() });
    let _ = task.await;
}

/// Returns the OpenAPI 2 documents of all available servers, as far as they answer soon.
pub(crate) async fn v2_documents(state: &Arc<State>) -> Vec<RemoteV2> {
    let routes = state.aggregation.routes();
    let mut backends: Vec<(Arc<Backend>, Vec<String>)> = Vec::new();
    for route in routes.iter().filter(|route| route.available) {
        let known = backends
            .iter_mut()
            .find(|(backend, _)| Arc::ptr_eq(backend, &route.backend));
        match known {
            Some((_, roots)) => roots.push(route.root()),
            None => backends.push((route.backend.clone(), vec![route.root()])),
        }
    }
    if backends.is_empty() {
        return Vec::new();
    }
    let first = !state.aggregation.wants_v2.swap(true, Ordering::Relaxed);
    let fetches: Vec<_> = backends
        .iter()
        .map(|(backend, _)| renew_v2(state, backend))
        .collect();
    let patience = if first { fetch::PATIENCE } else { V2_PATIENCE };
    let _ = flow::away(tokio::time::timeout(patience, join_all(fetches))).await;
    let documents = backends.into_iter().filter_map(|(backend, roots)| {
        let v2 = backend.content().v2.clone()?;
        Some(RemoteV2 {
            roots,
            hash: v2.hash,
            document: v2.document,
        })
    });
    documents.collect()
}

/// Returns the OpenAPI 3 document of a route in JSON, and its hash; `None` if the server has none.
pub(crate) async fn document(state: &State, route: &Route) -> Result<Option<(Str, Bytes)>, Status> {
    if !route.available {
        let why = "the server of this version is not available";
        return Err(Status::unavailable(why));
    }
    let path = route.document_path();
    let backend = &route.backend;
    let (hash, only_v2) = {
        let content = backend.content();
        let Some(hash) = content.index.get(&path).cloned() else {
            return Ok(None);
        };
        if let Some((known, bytes)) = content.documents.get(&path)
            && *known == hash
        {
            return Ok(Some((hash, bytes.clone())));
        }
        (hash, content.only_v2)
    };
    let unavailable = || Status::unavailable("the server of this version does not answer");
    let bytes = match only_v2 {
        true => {
            let v2 = fetch_v2(state, backend).await.ok_or_else(unavailable)?;
            let root = route.root();
            let convert = move || Bytes::from(convert::to_v3(&v2.document, &root).to_json());
            state.threads.compute(usize::MAX, convert).await
        }
        false => {
            let location = format!("/openapi/v3/{path}");
            let wanted = Wanted {
                path: &location,
                accept: "application/json",
                etag: None,
                most: MOST_OPENAPI,
            };
            let fetched = get(state, backend, wanted).await.ok_or_else(unavailable)?;
            match (fetched.code.is_success(), fetched.body) {
                (true, Ok(body)) => body,
                _ => return Err(unavailable()),
            }
        }
    };
    let mut content = backend.content();
    let kept: usize = content
        .documents
        .values()
        .map(|(_, bytes)| bytes.len())
        .sum();
    if kept + bytes.len() > MOST_OPENAPI {
        content.documents.clear();
    }
    content
        .documents
        .insert(path, (hash.clone(), bytes.clone()));
    Ok(Some((hash, bytes)))
}

/// Returns the paths of the versions that other servers serve, whose own documents are hidden.
pub(crate) fn hidden(state: &State) -> HashSet<String> {
    let routes = state.aggregation.routes();
    routes.iter().map(|route| route.document_path()).collect()
}
