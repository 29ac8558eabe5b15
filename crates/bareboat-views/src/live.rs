//! Objects that only their member can convert to the version of a list. The members are asked, and what they answer is added to
//! the last page of the list. Time, bytes and the number of members at once are limited.

use crate::annex::escape;
use crate::members::{LiveRequest, Member};
use crate::render::Renderer;
use crate::rights::proxy_info;
use crate::search::Search;
use crate::views::Call;
use bareboat_api::{Status, Value};
use bareboat_server::reply::Body;
use bareboat_server::request::body::RequestBody;
use bareboat_shelf::{CLUSTER_ANNOTATION, VERSION_ANNOTATION};
use bytes::{Bytes, BytesMut};
use http::header;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// How many members are asked at once.
const AT_ONCE: usize = 8;
/// How long a member may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many bytes all members together may send.
const MOST: usize = 64 << 20;

/// Parameters of searches that members understand, or that are dealt with before they are asked.
const KNOWN: [&str; 11] = [
    "labelSelector",
    "clusters",
    "clusterSelector",
    "namespaces",
    "limit",
    "size",
    "continue",
    "withContinue",
    "maxStaleness",
    "pretty",
    "timeoutSeconds",
];

impl Call {
    /// Returns the objects of members that convert them themselves, as the list shows them. Members that cannot be asked, or do
    /// not answer, are named in a warning.
    pub(crate) async fn live_items(
        &self,
        members: &[Arc<Member>],
        renderer: &Renderer,
        search: &Search,
    ) -> Vec<Bytes> {
        if members.is_empty() {
            return Vec::new();
        }
        let mut foreign = self.question.query.iter();
        let foreign = foreign.find(|(name, _)| !KNOWN.contains(name));
        if foreign.is_some() || search.has_keys {
            self.warn_elsewhere(members, renderer);
            return Vec::new();
        }
        let mut failed = Vec::new();
        let target = self.live_target(renderer, search);
        let (places, left) = (
            Arc::new(Semaphore::new(AT_ONCE)),
            Arc::new(AtomicUsize::new(MOST)),
        );
        let mut asking = JoinSet::new();
        for member in members {
            if !self.rights.may(&proxy_info(&member.name, "list")).await {
                failed.push(format!("{} (you may not send requests to it)", member.name));
                continue;
            }
            let request = http::Request::builder().uri(&*target);
            let request = request.header(header::ACCEPT, "application/json");
            let Ok(request) = request.body(RequestBody::default()) else {
                continue;
            };
            let name = member.name.clone();
            let answer = self.views.members.forward(LiveRequest {
                member: name.clone(),
                user: self.question.user.clone(),
                target: target.clone(),
                request,
                calls: self.calls.clone(),
            });
            let (places, left) = (places.clone(), left.clone());
            asking.spawn(async move {
                let _place = places.acquire().await;
                let items =
                    tokio::time::timeout(PATIENCE, async { read(answer.await?, &left).await });
                let items = items.await.unwrap_or_else(|_| {
                    let seconds = PATIENCE.as_secs();
                    Err(Status::unavailable(format!("no answer within {seconds} s")))
                });
                (name, items)
            });
        }
        let mut found = BTreeMap::new();
        while let Some(asked) = self.calls.away(asking.join_next()).await {
            match asked {
                Ok((name, Ok(items))) => {
                    found.insert(name, items);
                }
                Ok((name, Err(status))) => failed.push(format!("{name} ({})", status.message)),
                Err(_) => {}
            }
        }
        if !failed.is_empty() {
            failed.sort();
            self.warn(format!(
                "members that convert {} to {} themselves are left out: {}",
                renderer.asked.resource,
                renderer.asked.version,
                failed.join(", ")
            ));
        }
        let shown = |name: &str, items: Vec<Value>| -> Vec<Bytes> {
            let wanted = items
                .into_iter()
                .filter(|item| is_in(item, &search.namespaces));
            let formed = wanted.map(|item| renderer.formed(marked(item, name, renderer), name));
            formed.map(|item| item.to_json().into()).collect()
        };
        let found = found.into_iter();
        found
            .flat_map(|(name, items)| shown(&name, items))
            .collect()
    }

    /// Warns that members are left out because they convert objects themselves.
    pub(crate) fn warn_elsewhere(&self, members: &[Arc<Member>], renderer: &Renderer) {
        if !members.is_empty() {
            self.warn(format!(
                "{} must convert {} to {} themselves and are left out; ask them one by one",
                names(members),
                renderer.asked.resource,
                renderer.asked.version
            ));
        }
    }

    /// Returns the path and query of the list in its member.
    fn live_target(&self, renderer: &Renderer, search: &Search) -> String {
        let asked = &renderer.asked;
        let mut target = match asked.group.as_str() {
            "" => format!("/api/{}", asked.version),
            group => format!("/apis/{group}/{}", asked.version),
        };
        if let ([namespace], true) = (search.namespaces.as_slice(), asked.namespaced) {
            target.push_str("/namespaces/");
            escape(namespace, &mut target);
        }
        target.push('/');
        target.push_str(&asked.resource);
        if !search.label_text.is_empty() {
            target.push_str("?labelSelector=");
            escape(&search.label_text, &mut target);
        }
        target
    }
}

/// Returns the names of members for a message.
pub(crate) fn names(members: &[Arc<Member>]) -> String {
    let names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
    names.join(", ")
}

/// Reads the body of an answer, up to a limit.
pub async fn read_answer(
    answer: bareboat_server::reply::Response,
    most: usize,
) -> Result<Bytes, Status> {
    let mut body = answer.into_body();
    let mut bytes = BytesMut::new();
    while let Some(piece) = piece(&mut body).await {
        let piece = piece?;
        if bytes.len() + piece.len() > most {
            return Err(Status::internal("the answer is too large"));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes.freeze())
}

/// Reads the items of an answer. All answers of a list share a limit of bytes.
async fn read(
    answer: bareboat_server::reply::Response,
    left: &AtomicUsize,
) -> Result<Vec<Value>, Status> {
    let (head, mut body) = answer.into_parts();
    let mut bytes = BytesMut::new();
    while let Some(piece) = piece(&mut body).await {
        let piece = piece?;
        let take = |left: usize| left.checked_sub(piece.len());
        if left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
            .is_err()
        {
            return Err(Status::unavailable("the answers are too large"));
        }
        bytes.extend_from_slice(&piece);
    }
    if head.status != http::StatusCode::OK {
        return Err(Status::unavailable(format!(
            "the answer is {}",
            head.status
        )));
    }
    let parsing = tokio::task::spawn_blocking(move || bareboat_wire::json::parse(&bytes));
    let parsed = parsing.await.ok().and_then(Result::ok);
    let items = parsed.and_then(|mut parsed| parsed.value.at_mut(&["items"]).map(Value::take));
    match items {
        Some(Value::Array(items)) => Ok(items),
        Some(Value::Null) => Ok(Vec::new()),
        _ => Err(Status::unavailable("the answer is no list")),
    }
}

/// Returns the next piece of a body.
async fn piece(body: &mut Body) -> Option<Result<Bytes, Status>> {
    loop {
        let next = poll_fn(|cx| http_body::Body::poll_frame(Pin::new(&mut *body), cx)).await?;
        match next {
            Ok(frame) => match frame.into_data() {
                Ok(data) => return Some(Ok(data)),
                Err(_) => continue,
            },
            Err(error) => return Some(Err(Status::unavailable(error.to_string()))),
        }
    }
}

fn is_in(item: &Value, namespaces: &[String]) -> bool {
    let namespace = item.at(&["metadata", "namespace"]).and_then(Value::as_str);
    namespaces.is_empty() || namespace.is_none_or(|name| namespaces.iter().any(|one| one == name))
}

/// Marks an object with its member. It has no version of the fleet.
fn marked(mut object: Value, member: &str, renderer: &Renderer) -> Value {
    let asked = &renderer.asked;
    let map = object.make_object();
    map.insert("apiVersion", Value::string(asked.api_version()));
    map.insert("kind", Value::string(&asked.kind));
    let metadata = map.object_mut("metadata");
    let version = metadata.remove("resourceVersion").unwrap_or_default();
    let annotations = metadata.object_mut("annotations");
    annotations.insert(CLUSTER_ANNOTATION, Value::string(member));
    annotations.insert(VERSION_ANNOTATION, version);
    if renderer.only_metadata {
        let map = object.make_object();
        map.retain(|key, _| matches!(key, "apiVersion" | "kind" | "metadata"));
    }
    object
}
