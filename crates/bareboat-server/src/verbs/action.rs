//! POST of an object that triggers an action and is not stored: `binding`, `eviction` and similar.
//!
//! This module decodes the body, runs admission, and gives the action access to objects. The kind implements the
//! action.

use super::delete::delete_admitted;
use super::delete::options::DeleteOptions;
use super::kind_request::{KindRequest, not_acceptable};
use super::unstoppable::Unstoppable;
use super::write::{Pipeline, commit_error, decode, durable, place, retry_on_conflict};
use crate::kinds::catalog::Backing;
use crate::kinds::stored_kind::{StoredKind, parse_entry};
use crate::managed;
use crate::reply::{self, Response};
use crate::request::negotiate::{Media, Offer, negotiate};
use crate::request::options::WriteOptions;
use crate::work;
use bareboat_api::admission::Operation;
use bareboat_api::kind::{
    Acted, Action, BoxFuture, ObjectAccess, ObjectEdit, ObjectRef, Posted, PostedType, Reservations,
};
use bareboat_api::status::GroupResource;
use bareboat_api::{Object, Status, Value};
use bareboat_merge::apply::Writer;
use bareboat_storage::Write;
use bytes::Bytes;
use http::StatusCode;
use std::sync::Arc;

/// Runs the action with the body of the request.
pub(crate) async fn act(
    call: &KindRequest,
    action: &Arc<dyn Action>,
    body: Bytes,
) -> Result<Response, Status> {
    let options = WriteOptions::parse(&call.ask.query, "CreateOptions")?;
    if let Some(audited) = call.ask.trace.audited() {
        for posted in action.types() {
            audited.speaks(&posted.kind, posted.shape.message());
        }
    }
    let mut object = decode::posted(call, action.types(), &body, options.field_validation)?;
    let posted = action
        .types()
        .iter()
        .find(|posted| posted.api_version == object.api_version() && posted.kind == object.kind());
    let mut pipeline = Pipeline::new(call, options.dry_run);
    if let Some(posted) = posted {
        pipeline = pipeline.posting(posted.shape.as_ref());
    }
    place(&mut object, pipeline.namespace())?;
    pipeline
        .admit(Operation::Create, Some(&mut object), None)
        .await?;
    let held = pipeline
        .check(Operation::Create, Some(&mut object), None)
        .await?;
    let (now, dry_run) = (pipeline.now, options.dry_run);
    work::wanted().await;
    // An action may consist of several writes, which must all be completed.
    let (caller, action) = (call.clone(), action.clone());
    let acting = action.clone();
    let acted = Unstoppable::new(async move {
        let _held = held;
        let info = &caller.ask.info;
        let posted = Posted {
            object,
            namespace: &info.namespace,
            name: &info.name,
            user: &caller.ask.user,
            now: &now,
            dry_run,
        };
        let lent = ActionAccess {
            call: &caller,
            now: &now,
        };
        acting.act(posted, &lent).await
    });
    match acted.await? {
        Acted::Done => Ok(reply::status_response(
            &call.ask.headers,
            call.ask.query.get("pretty"),
            call.messages(),
            &Status::new(201, "", ""),
        )),
        Acted::Object(object) => present(call, action.types(), &object),
    }
}

fn present(call: &KindRequest, types: &[PostedType], object: &Object) -> Result<Response, Status> {
    let posted_type = types.iter().find(|posted_type| {
        posted_type.api_version == object.api_version() && posted_type.kind == object.kind()
    });
    let message = posted_type.and_then(|posted_type| posted_type.shape.message());
    let offer = Offer {
        protobuf: message.is_some(),
        ..Offer::PLAIN
    };
    let agreed = negotiate(&call.ask.headers, call.ask.query.get("pretty"), &offer);
    let agreed = agreed.ok_or_else(|| not_acceptable(&call.ask, &offer, &call.served.kind))?;
    match message.filter(|_| agreed.media == Media::Protobuf) {
        Some(message) => {
            let raw = crate::protobuf::encode(message.get(), object.value())?;
            let bytes = crate::protobuf::envelope(object.api_version(), object.kind(), &raw);
            let media = Media::Protobuf.name();
            Ok(reply::full(StatusCode::CREATED, media, bytes))
        }
        None => Ok(reply::value(StatusCode::CREATED, agreed, object.value())),
    }
}

/// Access to objects for an action during one request.
struct ActionAccess<'a> {
    call: &'a KindRequest,
    now: &'a str,
}

impl ActionAccess<'_> {
    /// Returns the stored kind with this plural.
    fn served(&self, group: &str, resource: &str) -> Option<Arc<StoredKind>> {
        match self.call.state.catalog.table().find(group, resource)? {
            Backing::Stored(served) => Some(served.clone()),
            _ => None,
        }
    }

    /// Returns the same request for another object, and the key of that object.
    fn call_for(&self, at: ObjectRef<'_>) -> Result<(KindRequest, String), Status> {
        let not_found = || {
            let what = GroupResource {
                group: at.group,
                resource: at.resource,
            };
            Status::not_found(what, at.name)
        };
        let served = self.served(at.group, at.resource).ok_or_else(not_found)?;
        let version = served.storage_version().unwrap_or(0);
        let key = served.key(at.namespace, at.name);
        let call = KindRequest {
            state: self.call.state.clone(),
            ask: self.call.ask.clone(),
            served,
            version,
        };
        Ok((call, key))
    }

    async fn changed(&self, edit: ObjectEdit<'_>) -> Result<Object, Status> {
        let (call, key) = self.call_for(edit.target)?;
        let served = &call.served;
        loop {
            let Some(entry) = served.resource().get(&key) else {
                let what = served.kind.group_resource();
                return Err(Status::not_found(what, edit.target.name));
            };
            let live = served.object(&entry, call.version).await?;
            let mut object = (edit.edit)(live.clone())?;
            if let Some((manager, subresource)) = edit.manager {
                let writer = Writer {
                    manager,
                    subresource,
                    now: self.now,
                };
                object = managed::on_behalf(served, call.version, object, &live, writer).await?;
            }
            let (stored, shape) = served.to_storage_version(object.clone(), None).await?;
            let bytes = bareboat_wire::encode::persisted(stored.value());
            if entry.persisted_eq(&bytes) {
                return Ok(live);
            }
            let write = Write::replace(served.resource(), &entry, bytes).shaped(shape);
            if edit.dry_run {
                let rehearsed = served.store().rehearse(write);
                rehearsed.map_err(|error| commit_error(&call, edit.target.name, error))?;
                return Ok(object);
            }
            match durable(&call, write, Reservations::default()).await {
                Ok(committed) => return served.object(&committed.entry, call.version).await,
                Err(error) => {
                    retry_on_conflict(&call, edit.target.name, false, error).await?;
                }
            }
        }
    }
}

impl ObjectAccess for ActionAccess<'_> {
    fn warn(&self, text: String) {
        self.call.ask.warnings.add(text);
    }

    fn get(&self, at: ObjectRef<'_>) -> Option<Object> {
        let served = self.served(at.group, at.resource)?;
        let entry = served.resource().get(&served.key(at.namespace, at.name))?;
        parse_entry(&entry).ok()
    }

    fn list(&self, group: &str, resource: &str, namespace: &str) -> Vec<Object> {
        let Some(served) = self.served(group, resource) else {
            return Vec::new();
        };
        let snapshot = served.resource().snapshot();
        snapshot
            .range(&served.prefix(namespace), None)
            .filter_map(|entry| parse_entry(entry).ok())
            .collect()
    }

    fn edit<'a>(&'a self, edit: ObjectEdit<'a>) -> BoxFuture<'a, Result<Object, Status>> {
        Box::pin(self.changed(edit))
    }

    fn delete<'a>(
        &'a self,
        at: ObjectRef<'a>,
        options: &'a Value,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let (call, key) = self.call_for(at)?;
            let options = DeleteOptions::from_body(options)?;
            delete_admitted(&call, &key, &options).await.map(|_| ())
        })
    }
}
