//! Parses the change to a Scale from the body of a request.

use super::{API_VERSION, MESSAGE};
use crate::request::negotiate::{Media, content_type, media_type};
use crate::request::options::{FieldValidation, WriteOptions};
use crate::request::parse::parse;
use crate::verbs::kind_request::KindRequest;
use crate::verbs::patch::{self, APPLY, JSON, MERGE, STRATEGIC};
use bareboat_api::kind::Verb;
use bareboat_api::{Status, Value};
use bareboat_merge::json_patch::JsonPatch;

/// A change to a Scale.
pub(super) enum ScaleEdit {
    Replace(Value),
    Merge(Value),
    Json(JsonPatch),
    Apply(Value),
}

impl ScaleEdit {
    pub(super) fn read(
        call: &KindRequest,
        verb: Verb,
        body: &[u8],
        options: &WriteOptions,
    ) -> Result<ScaleEdit, Status> {
        if verb == Verb::Update {
            return replacement(call, body, options).map(ScaleEdit::Replace);
        }
        let media = media_type(&call.ask.headers);
        let known = matches!(media, JSON | MERGE | APPLY)
            || (media == STRATEGIC && call.served.kind.conventions.strategic_merge);
        if !known {
            return Err(patch::unsupported(call));
        }
        options.check_patch(&call.ask.query, media == APPLY)?;
        if media == APPLY {
            let (config, duplicates) = patch::configuration(call, body)?;
            patch::judge_duplicates(call, &duplicates, options.field_validation)?;
            return Ok(ScaleEdit::Apply(config.into()));
        }
        let parsed = bareboat_wire::json::parse(body)
            .map_err(|error| Status::bad_request(format!("error decoding patch: {error}")))?;
        let validation = options.field_validation;
        match media {
            JSON => {
                let operations = patch::json_patch(&parsed.value, validation)?;
                let findings = patch::json_findings(body, parsed.duplicates, &operations);
                patch::judge(call, &parsed.value, validation, findings)?;
                Ok(ScaleEdit::Json(operations))
            }
            // A Scale has no lists, so merge patch and strategic merge patch are the same.
            _ => {
                patch::judge(call, &parsed.value, validation, parsed.duplicates)?;
                Ok(ScaleEdit::Merge(parsed.value))
            }
        }
    }

    /// Returns whether the client gave the resourceVersion it wants to change.
    pub(super) fn is_conditional(&self) -> bool {
        let version = match self {
            ScaleEdit::Replace(value) | ScaleEdit::Merge(value) | ScaleEdit::Apply(value) => {
                value.at(&["metadata", "resourceVersion"])
            }
            ScaleEdit::Json(_) => None,
        };
        version
            .and_then(Value::as_str)
            .is_some_and(|version| !matches!(version, "" | "0"))
    }
}

/// Parses the Scale in the body of an update.
fn replacement(call: &KindRequest, body: &[u8], options: &WriteOptions) -> Result<Value, Status> {
    let refuse =
        |why: String| Status::bad_request(format!("the Scale in the body cannot be read: {why}"));
    let message = call.messages().named(MESSAGE);
    let media = content_type(&call.ask.headers, message.is_some());
    let media = media
        .ok_or_else(|| Status::unsupported_media_type(&["application/json", "application/yaml"]))?;
    let (mut value, mut findings) = match media {
        Media::Json => {
            let parsed = bareboat_wire::json::parse(body);
            let parsed = parsed.map_err(|error| refuse(error.to_string()))?;
            (parsed.value, parsed.duplicates)
        }
        Media::Yaml => {
            let parsed = bareboat_wire::yaml::parse(body);
            let parsed = parsed.map_err(|error| refuse(error.to_string()))?;
            (parsed.value, parsed.duplicates)
        }
        Media::Protobuf => (parse(media, body, message).map_err(refuse)?, Vec::new()),
    };
    if value.as_object().is_none() {
        let found = value.type_name();
        return Err(refuse(format!(
            "an object is needed, this is of type {found}"
        )));
    }
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or("");
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let fits = |found: &str, wanted: &str| found.is_empty() || found == wanted;
    if !fits(kind, "Scale") || !fits(api_version, API_VERSION) {
        let kind = if kind.is_empty() { "Scale" } else { kind };
        let version = api_version.rsplit('/').next().unwrap_or("");
        return Err(Status::bad_request(format!(
            "{kind} in version \"{version}\" cannot be handled as a Scale: this URL takes a Scale of {API_VERSION}"
        )));
    }
    findings.extend(drop_unknown(&mut value));
    match options.field_validation {
        _ if findings.is_empty() => {}
        FieldValidation::Ignore => {}
        FieldValidation::Warn => findings
            .into_iter()
            .for_each(|text| call.ask.warnings.add(text)),
        FieldValidation::Strict => {
            return Err(Status::bad_request(format!(
                "Scale in version \"v1\" cannot be handled as a Scale: strict decoding error: {}",
                findings.join(", ")
            )));
        }
    }
    Ok(value)
}

/// Removes unknown members of a Scale, and returns their names.
pub(super) fn drop_unknown(scale: &mut Value) -> Vec<String> {
    let known: [(&str, &[&str]); 3] = [
        ("", &["apiVersion", "kind", "metadata", "spec", "status"]),
        ("spec", &["replicas"]),
        ("status", &["replicas", "selector"]),
    ];
    let mut findings = Vec::new();
    for (part, members) in known {
        let object = match part {
            "" => Some(&mut *scale),
            part => scale.as_object_mut().and_then(|scale| scale.get_mut(part)),
        };
        let Some(map) = object.and_then(Value::as_object_mut) else {
            continue;
        };
        let strangers: Vec<String> = map
            .iter()
            .map(|(member, _)| member)
            .filter(|member| !members.contains(member))
            .map(str::to_owned)
            .collect();
        for stranger in strangers {
            map.remove(stranger.as_str());
            let dot = if part.is_empty() { "" } else { "." };
            findings.push(format!("unknown field \"{part}{dot}{stranger}\""));
        }
    }
    findings
}
