//! POST of something that is acted upon rather than stored: `binding`, `eviction` and their like.
//!
//! This room reads what was posted, lets admission see it, lends the action its hands and answers. What the action
//! means is for the kind to know.

use super::call::{Call, not_acceptable};
use super::delete::delete_admitted;
use super::delete::options::DeleteOptions;
use super::unstoppable::Unstoppable;
use super::write::{Pipeline, commit_error, decode, durable, place};
use crate::kinds::catalog::Serving;
use crate::kinds::served::{Served, parse_entry};
use crate::managed;
use crate::reply::{self, Response};
use crate::request::negotiate::{Media, Offer, negotiate};
use crate::request::options::WriteOptions;
use crate::work;
use bareboat_api::admission::Operation;
use bareboat_api::kind::{Acted, Action, BoxFuture, Change, Form, Hands, Holds, Place, Posted};
use bareboat_api::status::GroupResource;
use bareboat_api::{Object, Status, Value};
use bareboat_merge::apply::Writer;
use bareboat_storage::{CommitError, Write};
use bytes::Bytes;
use http::StatusCode;
use std::sync::Arc;

/// Acts upon the body.
pub(crate) async fn act(
    call: &Call,
    action: &Arc<dyn Action>,
    body: Bytes,
) -> Result<Response, Status> {
    let options = WriteOptions::parse(&call.ask.query, "CreateOptions")?;
    let mut object = decode::posted(call, action.forms(), &body, options.field_validation)?;
    let pipeline = Pipeline::new(call, options.dry_run);
    place(&mut object, pipeline.namespace())?;
    pipeline
        .admit(Operation::Create, Some(&mut object), None)
        .await?;
    let held = pipeline
        .check(Operation::Create, Some(&mut object), None)
        .await?;
    let (now, dry_run) = (pipeline.now, options.dry_run);
    work::wanted().await;
    // An action may be several writes, which belong together.
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
        let lent = Lent {
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
        Acted::Object(object) => present(call, action.forms(), &object),
    }
}

fn present(call: &Call, forms: &[Form], object: &Object) -> Result<Response, Status> {
    let form = forms
        .iter()
        .find(|form| form.api_version == object.api_version() && form.kind == object.kind());
    let message = form.and_then(|form| form.shape.message());
    let offer = Offer {
        protobuf: message.is_some(),
        ..Offer::PLAIN
    };
    let agreed = negotiate(&call.ask.headers, call.ask.query.get("pretty"), &offer);
    let agreed =
        agreed.ok_or_else(|| not_acceptable(&call.ask, &offer, call.served.kind.custom))?;
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

/// The hands of the server, lent to an action for one request.
struct Lent<'a> {
    call: &'a Call,
    now: &'a str,
}

impl Lent<'_> {
    /// Who serves a kind out of the store.
    fn served(&self, group: &str, resource: &str) -> Option<Arc<Served>> {
        match self.call.state.catalog.table().find(group, resource)? {
            Serving::Stored(served) => Some(served.clone()),
            _ => None,
        }
    }

    /// A call about another object, and the key of that.
    fn call_for(&self, at: Place<'_>) -> Result<(Call, String), Status> {
        let not_found = || {
            let what = GroupResource {
                group: at.group,
                resource: at.resource,
            };
            Status::not_found(what, at.name)
        };
        let served = self.served(at.group, at.resource).ok_or_else(not_found)?;
        let version = served.stored_version().unwrap_or(0);
        let key = served.key(at.namespace, at.name);
        let call = Call {
            state: self.call.state.clone(),
            ask: self.call.ask.clone(),
            served,
            version,
        };
        Ok((call, key))
    }

    async fn changed(&self, change: Change<'_>) -> Result<Object, Status> {
        let (call, key) = self.call_for(change.place)?;
        let served = &call.served;
        loop {
            let Some(entry) = served.resource().get(&key) else {
                let what = served.kind.group_resource();
                return Err(Status::not_found(what, change.place.name));
            };
            let live = served.object(&entry, call.version).await?;
            let mut object = (change.edit)(live.clone())?;
            if let Some((manager, subresource)) = change.manager {
                let writer = Writer {
                    manager,
                    subresource,
                    now: self.now,
                };
                object = managed::on_behalf(served, call.version, object, &live, writer).await?;
            }
            let (stored, shape) = served.to_stored(object.clone(), None).await?;
            let bytes = bareboat_wire::encode::stored(stored.value());
            if entry.stored_eq(&bytes) {
                return Ok(live);
            }
            let write = Write::replace(served.resource(), &entry, bytes).shaped(shape);
            if change.dry_run {
                let rehearsed = served.store().rehearse(write);
                rehearsed.map_err(|error| commit_error(&call, change.place.name, error))?;
                return Ok(object);
            }
            match durable(served.store(), write, Holds::default()).await {
                Ok(committed) => return served.object(&committed.entry, call.version).await,
                Err(CommitError::Conflict { .. } | CommitError::NotFound)
                    if !call.time_left().is_zero() => {}
                Err(error) => return Err(commit_error(&call, change.place.name, error)),
            }
        }
    }
}

impl Hands for Lent<'_> {
    fn warn(&self, text: String) {
        self.call.ask.warnings.add(text);
    }

    fn get(&self, at: Place<'_>) -> Option<Object> {
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

    fn change<'a>(&'a self, change: Change<'a>) -> BoxFuture<'a, Result<Object, Status>> {
        Box::pin(self.changed(change))
    }

    fn delete<'a>(
        &'a self,
        at: Place<'a>,
        options: &'a Value,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let (call, key) = self.call_for(at)?;
            let options = DeleteOptions::from_body(options)?;
            delete_admitted(&call, &key, &options).await.map(|_| ())
        })
    }
}
