//! The number of replicas as a Scale, whatever the object calls it.

use super::call::{Call, not_acceptable};
use super::patch::inapplicable;
use super::present::Shown;
use super::write::change::{Edit, Edited, change};
use crate::reply::{self, Response};
use crate::request::negotiate::{Media, Offer, content_type, media_type, negotiate};
use crate::request::options::WriteOptions;
use crate::request::parse::parse;
use bareboat_api::kind::{BoxFuture, ScalePaths, Verb};
use bareboat_api::status::{GroupResource, MODIFIED};
use bareboat_api::{FieldError, FieldPath, Map, Object, Status, Value, labels};
use bareboat_merge::json_patch::JsonPatch;
use bareboat_merge::merge_patch;
use bytes::Bytes;
use http::StatusCode;

const API_VERSION: &str = "autoscaling/v1";
const MESSAGE: &str = "k8s.io.api.autoscaling.v1.Scale";

/// Reads or writes the scale of the object the URL names.
pub(crate) async fn scale(
    call: &Call,
    verb: Verb,
    paths: &ScalePaths,
    body: Bytes,
) -> Result<Response, Status> {
    if verb == Verb::Get {
        let entry = call
            .served
            .resource()
            .get(&call.key())
            .ok_or_else(|| call.not_found())?;
        let parent = call.served.object(&entry, call.version).await?;
        return present(call, &of_parent(call, paths, &parent)?);
    }
    let name = if verb == Verb::Update {
        "UpdateOptions"
    } else {
        "PatchOptions"
    };
    let options = WriteOptions::parse(&call.ask.query, name)?;
    let edit = Rescale {
        paths,
        change: Change::read(call, verb, &body)?,
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
    present(call, &of_parent(call, paths, &parent)?)
}

fn present(call: &Call, scale: &Value) -> Result<Response, Status> {
    let message = if call.served.kind.custom {
        None
    } else {
        call.messages().named(MESSAGE)
    };
    let offer = Offer {
        protobuf: message.is_some(),
        ..Offer::PLAIN
    };
    let agreed = negotiate(&call.ask.headers, call.ask.query.get("pretty"), &offer);
    let agreed = agreed.ok_or_else(|| not_acceptable(&offer, call.served.kind.custom))?;
    match message.filter(|_| agreed.media == Media::Protobuf) {
        Some(message) => {
            let raw = crate::protobuf::encode(message.get(), scale)?;
            let bytes = crate::protobuf::envelope(API_VERSION, "Scale", &raw);
            Ok(reply::full(StatusCode::OK, Media::Protobuf.name(), bytes))
        }
        None => Ok(reply::value(StatusCode::OK, agreed, scale)),
    }
}

/// The members a path such as `.spec.replicas` walks.
fn members(path: &str) -> Vec<&str> {
    path.split('.')
        .filter(|member| !member.is_empty())
        .collect()
}

fn of_parent(call: &Call, paths: &ScalePaths, parent: &Object) -> Result<Value, Status> {
    let number = |path: &str| parent.at(&members(path)).and_then(Value::as_i64);
    let replicas = match number(&paths.spec_replicas) {
        Some(replicas) => replicas,
        None if call.served.kind.custom => {
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
    // A zero is left out, as the type has it.
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
    Ok(scale.into())
}

/// A selector as text: it may be stored as such, as a LabelSelector, or as plain labels.
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

/// How the Scale is to change.
enum Change {
    Replace(Value),
    Merge(Value),
    Json(JsonPatch),
}

impl Change {
    fn read(call: &Call, verb: Verb, body: &[u8]) -> Result<Change, Status> {
        let refuse = |why: String| {
            Status::bad_request(format!("the Scale in the body cannot be read: {why}"))
        };
        if verb == Verb::Update {
            let message = call.messages().named(MESSAGE);
            let media = content_type(&call.ask.headers, message.is_some());
            let media = media.ok_or_else(|| {
                Status::unsupported_media_type(&["application/json", "application/yaml"])
            })?;
            let value = parse(media, body, message).map_err(refuse)?;
            return match value {
                Value::Object(_) => Ok(Change::Replace(value)),
                other => Err(refuse(format!(
                    "an object is needed, this is of type {}",
                    other.type_name()
                ))),
            };
        }
        let parsed = bareboat_wire::json::parse(body)
            .map_err(|error| Status::bad_request(format!("error decoding patch: {error}")))?;
        match media_type(&call.ask.headers) {
            "application/json-patch+json" => {
                let patch = JsonPatch::parse(parsed.value);
                patch
                    .map(Change::Json)
                    .map_err(|error| Status::bad_request(format!("error decoding patch: {error}")))
            }
            // A Scale has no lists, so the two kinds of merging are one.
            "application/merge-patch+json" | "application/strategic-merge-patch+json" => {
                Ok(Change::Merge(parsed.value))
            }
            _ => Err(Status::unsupported_media_type(&[
                "application/json-patch+json",
                "application/merge-patch+json",
            ])),
        }
    }
}

struct Rescale<'p> {
    paths: &'p ScalePaths,
    change: Change,
}

impl Rescale<'_> {
    fn rescaled(&self, call: &Call, live: &Object) -> Result<Object, Status> {
        let mut scale = match &self.change {
            Change::Replace(scale) => scale.clone(),
            _ => of_parent(call, self.paths, live)?,
        };
        match &self.change {
            Change::Replace(_) => {}
            Change::Merge(patch) => merge_patch(&mut scale, patch.clone()),
            Change::Json(patch) => patch
                .apply(&mut scale)
                .map_err(|error| inapplicable(&error))?,
        }
        let text = |key: &str| {
            scale
                .at(&["metadata", key])
                .and_then(Value::as_str)
                .unwrap_or("")
        };
        let name = &call.ask.info.name;
        if !text("name").is_empty() && text("name") != name {
            let own = text("name");
            return Err(Status::bad_request(format!(
                "the name of the object ({own}) does not match the name on the URL ({name})"
            )));
        }
        let version = text("resourceVersion");
        if !matches!(version, "" | "0") && version != live.resource_version() {
            return Err(Status::conflict(
                call.served.kind.group_resource(),
                name,
                MODIFIED,
            ));
        }
        let replicas = self.replicas(call, &scale)?;
        let mut object = live.clone();
        let path = members(&self.paths.spec_replicas);
        let Some((last, parents)) = path.split_last() else {
            return Err(Status::internal("the kind has no path for its replicas"));
        };
        let mut place = object.map_mut();
        for member in parents {
            place = place.object_mut(member);
        }
        place.insert(*last, Value::Int(replicas));
        Ok(object)
    }

    fn replicas(&self, call: &Call, scale: &Value) -> Result<i64, Status> {
        let given = scale
            .at(&["spec", "replicas"])
            .filter(|value| !value.is_null());
        let Some(given) = given else {
            // The type leaves a zero out, so nothing said is zero, unless a custom kind asks to be told.
            return if call.served.kind.custom && scale.get("spec").is_none() {
                Err(Status::bad_request(format!(
                    "the spec replicas field \"{}\" cannot be empty",
                    self.paths.spec_replicas
                )))
            } else {
                Ok(0)
            };
        };
        let number = given
            .as_i64()
            .filter(|_| matches!(given, Value::Int(_)))
            .ok_or_else(|| {
                Status::bad_request("spec.replicas of a Scale must be a whole number")
            })?;
        if (0..=i64::from(i32::MAX)).contains(&number) {
            return Ok(number);
        }
        let why = if number < 0 {
            "must be greater than or equal to 0"
        } else {
            "must be less than or equal to 2147483647"
        };
        let error = FieldError::invalid(FieldPath::new("spec.replicas"), number, why);
        let what = GroupResource {
            group: "autoscaling",
            resource: "Scale",
        };
        Err(Status::invalid(what, &call.ask.info.name, &[error]))
    }
}

impl Edit for Rescale<'_> {
    fn edit<'a>(
        &'a self,
        call: &'a Call,
        live: &'a Object,
    ) -> BoxFuture<'a, Result<Edited, Status>> {
        let edited = self.rescaled(call, live).map(|object| Edited {
            object,
            managed: false,
        });
        Box::pin(std::future::ready(edited))
    }

    fn is_conditional(&self) -> bool {
        let version = match &self.change {
            Change::Replace(value) | Change::Merge(value) => {
                value.at(&["metadata", "resourceVersion"])
            }
            Change::Json(_) => None,
        };
        version
            .and_then(Value::as_str)
            .is_some_and(|version| !matches!(version, "" | "0"))
    }
}
