//! Verbs of computed kinds: renders the objects that a function returns.

mod change;

use super::connect;
use super::kind_request::not_acceptable;
use super::selection::Selection;
use crate::admission::{Alone, OptionsOf};
use crate::authz::Authorized;
use crate::diagnostics::Stage;
use crate::flow::{self, Unread};
use crate::kinds::computed::{Computed, ComputedEvent, Question};
use crate::kinds::stored_kind::StoredKind;
use crate::reply::{self, Body, Response};
use crate::request::ask::Ask;
use crate::request::body::BodyError;
use crate::request::negotiate::{Agreed, Media, Offer, Transform, negotiate};
use crate::request::options::ListOptions;
use crate::request::parse::parse;
use crate::revocation::{End, guard};
use crate::server::state::State;
use crate::tables::{self, Include};
use crate::work;
use bareboat_api::admission::Operation;
use bareboat_api::facts::MessageRef;
use bareboat_api::kind::Verb;
use bareboat_api::{Map, Object, Status, Value};
use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::mpsc;

/// The cost of rendering an object, in bytes of work.
const OBJECT: usize = 1024;

/// Answers a request to a computed kind.
pub(super) async fn answer(
    state: &Arc<State>,
    ask: Arc<Authorized<Ask>>,
    body: Unread,
    computed: Arc<Computed>,
    version: usize,
) -> Result<Response, Status> {
    let info = &ask.info;
    if !info.subresource.is_empty() {
        return connect::computed(state, &ask, body, &computed).await;
    }
    let question = connect::question(state, &ask);
    match info.verb.as_str() {
        "get" => {
            let agreed = agree(&ask, &computed, version, "PartialObjectMetadata")?;
            let object = computed.do_get(question).await?;
            one(StatusCode::OK, agreed, &ask, &computed, version, object)
        }
        "list" => {
            let agreed = agree(&ask, &computed, version, "PartialObjectMetadataList")?;
            // Lists of computed kinds are small, so JSON suffices.
            let agreed = Agreed {
                media: if agreed.media == Media::Protobuf {
                    Media::Json
                } else {
                    agreed.media
                },
                ..agreed
            };
            let (threads, state) = (state.threads.of(&ask.trace), state.clone());
            let seat = body.into_seat();
            let list =
                async move { list(&state, agreed, &ask, &computed, version, question).await };
            threads.carry_out(seat, list).await
        }
        "create" => {
            let agreed = agree(&ask, &computed, version, "PartialObjectMetadata")?;
            let (body, seat) = body.read().await?;
            ask.trace.pass(Stage::Read);
            if let Some(audited) = ask.trace.audited() {
                audited.sent(&body);
            }
            let owned = state.clone();
            let threads = state.threads.of(&ask.trace);
            let work = async move {
                work::maybe_large(body.len()).await;
                let _memory = flow::decoding(&body, 0).await?;
                let mut object = decode(&ask, &computed, version, &body)?;
                admit(
                    &owned,
                    &ask,
                    &computed,
                    version,
                    Operation::Create,
                    &mut object,
                )
                .await?;
                let object = computed.do_create(question, object).await?;
                one(
                    StatusCode::CREATED,
                    agreed,
                    &ask,
                    &computed,
                    version,
                    object,
                )
            };
            threads.carry_out(seat, work).await
        }
        "update" | "patch" => {
            let agreed = agree(&ask, &computed, version, "PartialObjectMetadata")?;
            let (body, seat) = body.read().await?;
            ask.trace.pass(Stage::Read);
            if let Some(audited) = ask.trace.audited() {
                audited.sent(&body);
            }
            let (threads, owned) = (state.threads.of(&ask.trace), state.clone());
            let work = async move {
                work::maybe_large(body.len()).await;
                let _memory = flow::decoding(&body, 0).await?;
                let change = change::read(&owned, &ask, &computed, version, &body)?;
                let object = computed.do_update(question, change).await?;
                one(StatusCode::OK, agreed, &ask, &computed, version, object)
            };
            threads.carry_out(seat, work).await
        }
        "delete" => {
            let agreed = agree(&ask, &computed, version, "PartialObjectMetadata")?;
            drop(body.read().await?);
            let object = computed.do_delete(question).await?;
            one(StatusCode::OK, agreed, &ask, &computed, version, object)
        }
        "watch" => {
            let options = ListOptions::parse(&ask.query, true)?;
            let data = StoredKind::new(computed.kind().clone(), &state.store);
            let selection = Selection::parse(&data, version, &options)?;
            let response = watch(&computed, question, selection).await?;
            Ok(guard(response, ask.standing.as_ref(), End::Plain))
        }
        other => Err(Status::verb_not_supported(
            computed.kind().group_resource(),
            other,
        )),
    }
}

/// Runs admission on a posted object.
async fn admit(
    state: &Arc<State>,
    ask: &Ask,
    computed: &Computed,
    version: usize,
    operation: Operation,
    object: &mut Object,
) -> Result<(), Status> {
    let kind = computed.kind();
    let version = &kind.versions[version];
    object.set_type(&kind.api_version(&version.name), &kind.names.kind);
    let alone = Alone {
        state,
        ask,
        kind,
        operation,
        shape: Some(version.shape.as_ref()),
        options: &OptionsOf::Write {
            operation,
            query: &ask.query,
        },
        dry_run: ask.query.all("dryRun").any(|text| text == "All"),
    };
    alone.admit(object).await
}

/// Returns the protobuf message of a version, for kinds that have one.
fn message(computed: &Computed, version: usize) -> Option<MessageRef> {
    computed.kind().versions[version].shape.message()
}

fn agree(
    ask: &Ask,
    computed: &Computed,
    version: usize,
    metadata: &'static str,
) -> Result<Agreed, Status> {
    // Kinds that are only created, such as reviews, have no tables.
    let readable = |verb| matches!(verb, Verb::Get | Verb::List);
    let offer = Offer {
        protobuf: message(computed, version).is_some(),
        table: computed.kind().verbs.iter().any(readable),
        metadata: Some(metadata),
        ..Offer::PLAIN
    };
    negotiate(&ask.headers, ask.query.get("pretty"), &offer)
        .ok_or_else(|| not_acceptable(ask, &offer, computed.kind()))
}

fn decode(ask: &Ask, computed: &Computed, version: usize, body: &[u8]) -> Result<Object, Status> {
    let message = message(computed, version);
    let refuse = |why: String| Status::bad_request(format!("the body cannot be read: {why}"));
    let media = crate::request::negotiate::content_type(&ask.headers, message.is_some());
    let media = media.ok_or_else(|| Status::unsupported_media_type(&Offer::PLAIN.names()))?;
    let mut value = parse(media, body, message).map_err(refuse)?;
    let shape = &computed.kind().versions[version].shape;
    shape.conform(&mut value, &mut Vec::new()).map_err(refuse)?;
    Object::try_from(value).map_err(|_| Status::bad_request("the body must be an object"))
}

fn one(
    code: StatusCode,
    agreed: Agreed,
    ask: &Ask,
    computed: &Computed,
    version: usize,
    object: Object,
) -> Result<Response, Status> {
    if agreed.media == Media::Protobuf
        && let Some(message) = message(computed, version)
    {
        let raw = crate::protobuf::encode(message.get(), object.value())?;
        let bytes = crate::protobuf::envelope(object.api_version(), object.kind(), &raw);
        return Ok(reply::full(code, Media::Protobuf.name(), bytes));
    }
    let value = match agreed.transform {
        Transform::Whole => object.into(),
        Transform::Metadata { beta } => tables::partial(&object, beta),
        Transform::Table { beta } => {
            table(ask, computed, version, vec![object], Value::object(), beta)?
        }
    };
    Ok(reply::value(code, agreed, &value))
}

fn table(
    ask: &Ask,
    computed: &Computed,
    version: usize,
    objects: Vec<Object>,
    metadata: Value,
    beta: bool,
) -> Result<Value, Status> {
    let include = Include::of(&ask.query)?;
    let columns = &computed.kind().versions[version].columns;
    let now = tables::now();
    let rows = objects
        .into_iter()
        .map(|object| tables::row(computed.kind(), columns, object, include, beta, now))
        .collect();
    Ok(tables::table(
        Some(tables::definitions(columns)),
        rows,
        metadata,
        beta,
    ))
}

async fn list(
    state: &Arc<State>,
    agreed: Agreed,
    ask: &Ask,
    computed: &Computed,
    version: usize,
    question: Question,
) -> Result<Response, Status> {
    let options = ListOptions::parse(&ask.query, false)?;
    // Selectors are parsed against the data of the kind; the store is not read.
    let data = StoredKind::new(computed.kind().clone(), &state.store);
    let selection = Selection::parse(&data, version, &options)?;
    let listing = computed.do_list(question).await?;
    let mut metadata = Map::new();
    if !listing.resource_version.is_empty() {
        metadata.insert("resourceVersion", Value::from(listing.resource_version));
    }
    if !listing.continue_token.is_empty() {
        metadata.insert("continue", Value::string(&listing.continue_token));
    }
    if let Some(remaining) = listing.remaining {
        metadata.insert("remainingItemCount", Value::Int(remaining as i64));
    }
    let metadata = Value::Object(metadata);
    let mut objects = listing.items;
    work::maybe_large(objects.len() * OBJECT).await;
    objects.retain(|object| selection.matches_loose(object));
    let kind = computed.kind();
    let value = match agreed.transform {
        Transform::Table { beta } => table(ask, computed, version, objects, metadata, beta)?,
        transform => {
            let (api_version, list_kind, items): (&str, &str, Vec<Value>) = match transform {
                Transform::Metadata { beta } => (
                    tables::meta_version(beta),
                    "PartialObjectMetadataList",
                    objects
                        .iter()
                        .map(|object| tables::partial(object, beta))
                        .collect(),
                ),
                _ => (
                    data.api_version(version),
                    &kind.names.list_kind,
                    objects.into_iter().map(Value::from).collect(),
                ),
            };
            let mut map = Map::new();
            map.insert("apiVersion", Value::string(api_version));
            map.insert("kind", Value::string(list_kind));
            map.insert("metadata", metadata);
            map.insert("items", Value::Array(items));
            Value::Object(map)
        }
    };
    Ok(reply::value(StatusCode::OK, agreed, &value))
}

async fn watch(
    computed: &Arc<Computed>,
    question: Question,
    selection: Selection,
) -> Result<Response, Status> {
    let changes = computed.do_watch(question.clone()).await?;
    let mut response = http::Response::new(Body::stream(Changes {
        computed: computed.clone(),
        question,
        selection,
        changes,
        ended: false,
    }));
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static(Media::Json.name()),
    );
    Ok(response)
}

struct Changes {
    computed: Arc<Computed>,
    question: Question,
    selection: Selection,
    changes: mpsc::Receiver<ComputedEvent>,
    ended: bool,
}

impl Changes {
    /// Returns an event as the client sees it; `None` if its selectors leave the object out.
    fn event(&mut self, change: ComputedEvent) -> Option<Value> {
        let (event_type, mut object) = match change {
            ComputedEvent::Added(object) => ("ADDED", object),
            ComputedEvent::Modified(object) => ("MODIFIED", object),
            ComputedEvent::Deleted(object) => ("DELETED", object),
            ComputedEvent::Bookmark(version) => {
                let mut object = Object::default();
                object.set_meta("resourceVersion", Value::from(version));
                self.computed.complete(&mut object, &self.question);
                let object = Value::from(object);
                return Some(bareboat_api::value!({"type": "BOOKMARK", "object": (object)}));
            }
            ComputedEvent::Error(status) => {
                self.ended = true;
                let status = status.to_value();
                return Some(bareboat_api::value!({"type": "ERROR", "object": (status)}));
            }
        };
        self.computed.complete(&mut object, &self.question);
        // An object that no longer matches is not known here to have matched before, so its deletion is sent.
        if !self.selection.matches_loose(&object) {
            return (event_type == "MODIFIED").then(
                || bareboat_api::value!({"type": "DELETED", "object": (Value::from(object))}),
            );
        }
        Some(bareboat_api::value!({"type": event_type, "object": (Value::from(object))}))
    }
}

impl http_body::Body for Changes {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, BodyError>>> {
        loop {
            if self.ended {
                return Poll::Ready(None);
            }
            let change = match self.changes.poll_recv(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Ready(Some(change)) => change,
            };
            if let Some(event) = self.event(change) {
                let mut bytes = event.to_json();
                bytes.push(b'\n');
                return Poll::Ready(Some(Ok(http_body::Frame::data(bytes.into()))));
            }
        }
    }
}
