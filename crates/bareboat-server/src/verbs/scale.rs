//! The `scale` subresource: shows the number of replicas as a Scale, at whatever path the object has it.

mod body;
mod rescale;

use super::kind_request::Shown;
use super::kind_request::{KindRequest, not_acceptable};
use super::visibility;
use super::write::change::change;
use crate::reply::{self, Response};
use crate::request::negotiate::{Agreed, Media, Offer, Transform, negotiate};
use crate::request::options::{WriteOptions, refuse_export};
use crate::tables::{self, Include};
use bareboat_api::facts::MessageRef;
use bareboat_api::kind::{Column, Now, ScalePaths, ScaleStyle, Verb};
use bareboat_api::{Map, Object, Status, Value, labels};
use body::ScaleEdit;
use bytes::Bytes;
use http::StatusCode;
use rescale::Rescale;

const API_VERSION: &str = "autoscaling/v1";
const MESSAGE: &str = "k8s.io.api.autoscaling.v1.Scale";

/// Reads or writes the scale of the object the URL names.
pub(crate) async fn scale(
    call: &KindRequest,
    verb: Verb,
    paths: &ScalePaths,
    body: Bytes,
) -> Result<Response, Status> {
    if verb == Verb::Get {
        refuse_export(&call.ask.query)?;
        let entry = call
            .served
            .resource()
            .get(&call.key())
            .ok_or_else(|| call.not_found())?;
        visibility::check(call, &entry).await?;
        let parent = call.served.object(&entry, call.version).await?;
        return present(call, of_parent(call, paths, &parent)?);
    }
    let name = if verb == Verb::Update {
        "UpdateOptions"
    } else {
        "PatchOptions"
    };
    let options = WriteOptions::parse(&call.ask.query, name)?;
    let edit = Rescale {
        call,
        paths,
        change: ScaleEdit::read(call, verb, &body, &options)?,
        manager: call.ask.manager(options.field_manager.as_deref()),
        options: &options,
        now: call.state.clock.text(),
    };
    let parent = match change(call, &edit, &options)
        .await?
        .ok_or_else(|| call.not_found())?
    {
        Shown::Object(object) => object,
        Shown::Entry(entry) | Shown::Written(entry, _) => {
            call.served.object(&entry, call.version).await?
        }
    };
    present(call, of_parent(call, paths, &parent)?)
}

/// Negotiates the encoding of a Scale.
pub(crate) fn agree(call: &KindRequest) -> Result<Agreed, Status> {
    let offer = Offer {
        protobuf: message(call).is_some(),
        protobuf_metadata: call.messages().available(),
        yaml: true,
        table: true,
        metadata: Some("PartialObjectMetadata"),
    };
    let agreed = negotiate(&call.ask.headers, call.ask.query.get("pretty"), &offer);
    agreed.ok_or_else(|| not_acceptable(&call.ask, &offer, &call.served.kind))
}

/// Returns the protobuf message of a Scale, if it can be sent in protobuf.
fn message(call: &KindRequest) -> Option<MessageRef> {
    call.messages()
        .named(MESSAGE)
        .filter(|_| call.served.kind.conventions.protobuf)
}

fn present(call: &KindRequest, scale: Object) -> Result<Response, Status> {
    let agreed = agree(call)?;
    let value = match agreed.transform {
        Transform::Whole => match message(call).filter(|_| agreed.media == Media::Protobuf) {
            Some(message) => {
                let raw = crate::protobuf::encode(message.get(), scale.value())?;
                let bytes = crate::protobuf::envelope(API_VERSION, "Scale", &raw);
                return Ok(reply::full(StatusCode::OK, Media::Protobuf.name(), bytes));
            }
            None => scale.into(),
        },
        Transform::Table { beta } => {
            let include = Include::of(&call.ask.query)?;
            let kind = &call.served.kind;
            let (columns, now) = (columns(kind.conventions.scale), call.state.clock.now());
            tables::of_one(kind, &columns, scale, include, beta, now)
        }
        Transform::Metadata { beta } => {
            let value = tables::partial(&scale, beta);
            if agreed.media == Media::Protobuf {
                return call.present_metadata(StatusCode::OK, &value, beta);
            }
            value
        }
    };
    Ok(reply::value(StatusCode::OK, agreed, &value))
}

/// Returns the columns of a Scale. Tables of kinds with declared paths add the name column themselves.
fn columns(style: ScaleStyle) -> Vec<Column> {
    let number = |part: &'static str| {
        move |scale: &Value, _: Now| {
            let replicas = scale.at(&[part, "replicas"]).and_then(Value::as_i64);
            Value::Int(replicas.unwrap_or(0))
        }
    };
    let name = Column::string("Name", |scale, _| {
        let name = scale.at(&["metadata", "name"]);
        name.cloned().unwrap_or_default()
    });
    let age = Column::age().typed(match style {
        ScaleStyle::Declared => "date",
        ScaleStyle::Typed => "string",
    });
    let columns = [
        Column::string("Desired", number("spec"))
            .typed("integer")
            .described("Number of desired replicas"),
        Column::string("Available", number("status"))
            .typed("integer")
            .described("Number of actual replicas"),
        age.described("When the object was created"),
    ];
    (style == ScaleStyle::Typed)
        .then_some(name)
        .into_iter()
        .chain(columns)
        .collect()
}

/// Returns the members on a path such as `.spec.replicas`.
fn members(path: &str) -> Vec<&str> {
    path.split('.')
        .filter(|member| !member.is_empty())
        .collect()
}

fn of_parent(call: &KindRequest, paths: &ScalePaths, parent: &Object) -> Result<Object, Status> {
    let number = |path: &str| parent.at(&members(path)).and_then(Value::as_i64);
    let replicas = match number(&paths.spec_replicas) {
        Some(replicas) => replicas,
        None if call.served.kind.conventions.scale == ScaleStyle::Declared => {
            let path = &paths.spec_replicas;
            return Err(Status::internal(format!(
                "the spec replicas field \"{path}\" does not exist"
            )));
        }
        None => 0,
    };
    let mut metadata = Map::new();
    for key in [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "creationTimestamp",
    ] {
        if let Some(value) = parent.meta(key) {
            metadata.insert(key, value.clone());
        }
    }
    let mut spec = Map::new();
    // Zero is omitted, as in the type.
    if replicas != 0 {
        spec.insert("replicas", Value::Int(replicas));
    }
    let mut status = Map::new();
    status.insert(
        "replicas",
        Value::Int(number(&paths.status_replicas).unwrap_or(0)),
    );
    if let Some(selector) = paths
        .label_selector
        .as_ref()
        .and_then(|path| selector(parent, path))
    {
        status.insert("selector", Value::from(selector));
    }
    let mut scale = Object::default();
    scale.set_type(API_VERSION, "Scale");
    let map = scale.map_mut();
    map.insert("metadata", Value::Object(metadata));
    map.insert("spec", Value::Object(spec));
    map.insert("status", Value::Object(status));
    Ok(scale)
}

/// Returns a selector as text: it may be stored as text, as a LabelSelector, or as plain labels.
fn selector(parent: &Object, path: &str) -> Option<String> {
    let found = parent.at(&members(path))?;
    let text = match found {
        Value::String(text) => text.to_string(),
        Value::Object(map)
            if map.contains_key("matchLabels") || map.contains_key("matchExpressions") =>
        {
            labels::Selector::from_object(found).ok()?.to_string()
        }
        Value::Object(map) => {
            let terms: Vec<String> = map
                .iter()
                .filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?)))
                .collect();
            terms.join(",")
        }
        _ => return None,
    };
    (!text.is_empty()).then_some(text)
}
