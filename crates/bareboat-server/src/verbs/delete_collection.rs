//! DELETE of a collection: lists it and deletes each of its objects.

use super::delete::options::DeleteOptions;
use super::delete::{Deleted, delete_key};
use super::kind_request::Shown;
use super::kind_request::{Arity, KindRequest};
use super::list::ListMeta;
use super::selection::Selection;
use super::visibility;
use crate::reply::{self, Response};
use crate::request::negotiate::Media;
use crate::request::options::ListOptions;
use crate::work::{self, Pace};
use bareboat_api::{Map, Object, Status, Value};
use bareboat_storage::Entry;
use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use http::StatusCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How many deletions run at once: enough for the sequencer to commit them in groups.
const AT_ONCE: usize = 64;
/// Fewer run at once if the objects are large: about so many bytes. Webhooks may keep all of them waiting in memory.
const TOGETHER: usize = 2 << 20;

/// Deletes the objects a list would return, and answers with that list.
pub(crate) async fn delete_collection(call: &KindRequest, body: Bytes) -> Result<Response, Status> {
    let options = DeleteOptions::read(call, &body)?;
    let list = ListOptions::parse(&call.ask.query, false)?;
    let agreed = call.negotiate(Arity::Many)?;
    let mut selection = Selection::parse(&call.served, call.version, &list)?;
    visibility::complete(call, &mut selection).await?;
    let snapshot = call.served.resource().snapshot();
    let prefix = call.served.prefix(&call.ask.info.namespace);
    let mut chosen = Vec::new();
    let mut pace = Pace::new();
    for entry in snapshot.range(&prefix, None) {
        if pace.spend(work::STEP) {
            work::turn().await;
        }
        if list.limit > 0 && chosen.len() == list.limit {
            break;
        }
        if !selection.matches_entry(entry) {
            continue;
        }
        if selection.needs_object() {
            if pace.spend(entry.json().len()) {
                work::turn().await;
            }
            let object = call.served.object(entry, call.version).await?;
            if !selection.matches_object(&object) {
                continue;
            }
        }
        chosen.push(entry.clone());
    }
    let size = chosen.iter().map(|entry| entry.json().len()).sum();
    work::maybe_large(size).await;
    let items = delete_all(call, chosen, &options).await?;
    work::maybe_large(size).await;
    let meta = ListMeta {
        resource_version: snapshot.revision(),
        ..ListMeta::default()
    };
    let mut map = Map::new();
    map.insert(
        "apiVersion",
        Value::string(call.served.api_version(call.version)),
    );
    map.insert("kind", Value::string(&call.served.kind.names.list_kind));
    map.insert("metadata", meta.to_value());
    let keep_type = call.served.kind.conventions.type_meta_in_items;
    let items = items.into_iter().map(|mut object| {
        if !keep_type {
            object.map_mut().remove("apiVersion");
            object.map_mut().remove("kind");
        }
        Value::from(object)
    });
    map.insert("items", items.collect());
    // Protobuf clients get the same list in protobuf.
    if agreed.media == Media::Protobuf {
        return protobuf(call, &Value::Object(map), &meta);
    }
    Ok(reply::value(StatusCode::OK, agreed, &Value::Object(map)))
}

/// Deletes entries, many at once; starts no further ones after a failure.
async fn delete_all(
    call: &KindRequest,
    chosen: Vec<Arc<Entry>>,
    options: &DeleteOptions,
) -> Result<Vec<Object>, Status> {
    let largest = chosen.iter().map(|entry| entry.json().len()).max();
    let at_once = (TOGETHER / largest.unwrap_or(0).max(1)).clamp(1, AT_ONCE);
    let failed = &AtomicBool::new(false);
    let deletions = chosen.into_iter().map(|entry| async move {
        if failed.load(Ordering::Relaxed) {
            return Ok(None);
        }
        work::turn().await;
        let deleted = delete_entry(call, &entry, options).await;
        failed.fetch_or(deleted.is_err(), Ordering::Relaxed);
        deleted
    });
    // Deletions that have started are completed.
    let deleted: Vec<Result<Option<Object>, Status>> =
        stream::iter(deletions).buffered(at_once).collect().await;
    deleted.into_iter().filter_map(Result::transpose).collect()
}

/// Deletes an entry and returns its last state; `None` if another request deleted it first.
async fn delete_entry(
    call: &KindRequest,
    entry: &Entry,
    options: &DeleteOptions,
) -> Result<Option<Object>, Status> {
    let shown = match delete_key(call, entry.key(), options).await {
        Ok(Deleted::Gone(shown, _) | Deleted::Waiting(shown)) => shown,
        Ok(Deleted::Erased) => return Ok(None),
        Err(status) if status.code == 404 => return Ok(None),
        Err(status) => return Err(status),
    };
    Ok(Some(match shown {
        Shown::Object(object) => object,
        Shown::Entry(entry) | Shown::Written(entry, _) => {
            call.served.object(&entry, call.version).await?
        }
    }))
}

fn protobuf(call: &KindRequest, list: &Value, meta: &ListMeta) -> Result<Response, Status> {
    let message = call.version().shape.message();
    let message = message.ok_or_else(|| Status::internal("this kind has no protobuf form"))?;
    let encode = |message: &bareboat_api::facts::Message, value: &Value| {
        crate::protobuf::encode(message, value).map(Bytes::from)
    };
    let mut items = Vec::new();
    for item in list.get("items").and_then(Value::as_array).unwrap_or(&[]) {
        items.push(encode(message.get(), item)?);
    }
    let api_version = call.served.api_version(call.version);
    let bytes = meta.protobuf(api_version, &call.served.kind.names.list_kind, &items);
    Ok(reply::full(StatusCode::OK, Media::Protobuf.name(), bytes))
}
