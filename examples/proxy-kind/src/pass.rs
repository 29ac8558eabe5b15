//! Passes writes on to the server that has the pod. Its answers, conflicts and other errors come back unchanged; only names and
//! types are translated.

use crate::follow::{Origin, Source};
use crate::merged::{GROUP, VERSION};
use bareboat::prelude::*;
use bareboat::server::{Response, reply};
use http::header::CONTENT_TYPE;
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::{Value as Json, json};
use std::sync::Arc;

/// Returns the function that answers writes.
pub(crate) fn connector(sources: Arc<[Source]>) -> Connector {
    Connector::program(move |visit| {
        let sources = sources.clone();
        async move { pass(&sources, visit).await }
    })
}

async fn pass(sources: &[Source], visit: Visit) -> Result<Response, Status> {
    let (parts, body) = visit.request.into_parts();
    let body = body.collect().await;
    let body = body.map_err(|_| Status::bad_request("the body cannot be read"))?;
    let mut sent: Json = serde_json::from_slice(&body.to_bytes()).unwrap_or_default();
    let given = visit.question.name.as_str();
    let created = sent["metadata"]["name"].as_str().unwrap_or_default();
    let merged = if given.is_empty() { created } else { given }.to_owned();
    let (name, owner) = merged.rsplit_once('.').unwrap_or_default();
    let source = sources.iter().find(|source| &*source.name == owner);
    let unknown = || Status::bad_request("the name must end with .SOURCE");
    let Origin::ApiServer(client) = &source.ok_or_else(unknown)?.origin else {
        return Err(Status::method_not_allowed());
    };
    translate(&mut sent, name, visit.object.as_ref());
    let uri = parts.uri.path_and_query().map_or("", |uri| uri.as_str());
    let uri = uri.replacen(&format!("/apis/{GROUP}/"), "/api/", 1);
    let json = http::HeaderValue::from_static("application/json");
    let content = parts.headers.get(CONTENT_TYPE).unwrap_or(&json);
    let body = Some(sent).filter(|sent| !sent.is_null());
    let body = body.map_or_else(Vec::new, |sent| sent.to_string().into_bytes());
    let request = http::Request::builder().method(parts.method);
    let request = request.uri(uri.replacen(&merged, name, 1));
    let request = request.header(CONTENT_TYPE, content).body(Body::from(body));
    let request = request.map_err(|error| Status::bad_request(error.to_string()))?;
    let failed = |error: kube::Error| {
        Status::unavailable(format!("the source of {merged} does not answer: {error}"))
    };
    let answer = client.send(request).await.map_err(failed)?;
    let code = answer.status();
    let body = answer.into_body().collect().await.map_err(failed)?;
    let mut answer: Json = serde_json::from_slice(&body.to_bytes()).unwrap_or_default();
    if answer["kind"] == "Pod" {
        answer["apiVersion"] = json!(format!("{GROUP}/v1"));
        answer["metadata"]["name"] = json!(merged);
    }
    let answer: Value = serde_json::from_value(answer).unwrap_or_default();
    Ok(reply::json(code, &answer))
}

/// Translates a body: the name, the type, and the version of a merged pod that is up to date. Its status is computed here.
fn translate(sent: &mut Json, name: &str, current: Option<&Object>) {
    if sent["kind"] == "Pod" {
        sent["apiVersion"] = json!("v1");
        sent["status"] = Json::Null;
        sent["metadata"]["name"] = json!(name);
    }
    let metadata = sent.get_mut("metadata").and_then(Json::as_object_mut);
    let Some(metadata) = metadata else { return };
    // These are of the merged pod.
    metadata.retain(|name, _| name != "uid" && name != "managedFields");
    let current = current
        .filter(|pod| metadata.get("resourceVersion") == Some(&json!(pod.resource_version())));
    let version = current.and_then(|pod| pod.meta("annotations")?.get(VERSION)?.as_str());
    if let Some(version) = version {
        metadata.insert("resourceVersion".to_owned(), json!(version));
    }
}
