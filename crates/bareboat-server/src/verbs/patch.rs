//! PATCH: JSON, merge and strategic merge patches, and server-side apply.

use super::create::{authorize_creation, create_object};
use super::kind_request::KindRequest;
use super::misfit;
use super::write::change::{Edit, Edited, change, nameless};
use super::write::{check_deadline, decode};
use crate::managed;
use crate::reply::Response;
use crate::request::negotiate::media_type;
use crate::request::options::{FieldValidation, WriteOptions};
use bareboat_api::kind::{BoxFuture, MediaErrors};
use bareboat_api::status::GroupResource;
use bareboat_api::{FieldError, FieldPath, Object, Status, Value};
use bareboat_merge::json_patch::{DecodeError, JsonPatch};
use bareboat_merge::{StrategicError, merge_patch, strategic_merge};
use bytes::Bytes;
use http::StatusCode;

pub(super) const JSON: &str = "application/json-patch+json";
pub(super) const MERGE: &str = "application/merge-patch+json";
pub(super) const STRATEGIC: &str = "application/strategic-merge-patch+json";
pub(super) const APPLY: &str = "application/apply-patch+yaml";

/// Patches the object the URL names.
pub(crate) async fn patch(call: &KindRequest, body: Bytes) -> Result<Response, Status> {
    let kind = media_type(&call.ask.headers).to_owned();
    let known = matches!(kind.as_str(), JSON | MERGE | APPLY)
        || (kind == STRATEGIC && call.served.kind.conventions.strategic_merge);
    if !known {
        return Err(unsupported(call));
    }
    let options = WriteOptions::parse(&call.ask.query, "PatchOptions")?;
    options.check_patch(&call.ask.query, kind == APPLY)?;
    if kind == APPLY {
        return apply(call, &body, &options).await;
    }
    // A missing object is reported before errors in the patch.
    if call.served.resource().get(&call.key()).is_none() {
        return Err(call.not_found());
    }
    let parsed = bareboat_wire::json::parse(&body)
        .map_err(|error| Status::bad_request(format!("error decoding patch: {error}")))?;
    let mut patch = Patch {
        change: match kind.as_str() {
            // A null patch changes nothing.
            STRATEGIC if parsed.value.is_null() => PatchBody::Strategic(Value::object()),
            JSON => PatchBody::Json(json_patch(&parsed.value, options.field_validation)?),
            MERGE => PatchBody::Merge(object_patch(parsed.value.clone())?),
            _ => PatchBody::Strategic(object_patch(parsed.value.clone())?),
        },
        conditional: parsed
            .value
            .at(&["metadata", "resourceVersion"])
            .is_some_and(|version| !version.is_null()),
        text: parsed.value,
        findings: parsed.duplicates,
        validation: options.field_validation,
    };
    if let PatchBody::Json(operations) = &patch.change {
        patch.findings = json_findings(&body, patch.findings, operations);
    }
    let shown = change(call, &patch, &options)
        .await?
        .ok_or_else(|| call.not_found())?;
    call.present(StatusCode::OK, shown).await
}

/// Returns the findings in a JSON patch, in its order: duplicate members and unknown members of operations.
pub(super) fn json_findings(
    body: &[u8],
    mut duplicates: Vec<String>,
    operations: &JsonPatch,
) -> Vec<String> {
    duplicates.extend_from_slice(operations.unknown());
    let all = bareboat_wire::json::in_order(body, duplicates);
    all.iter()
        .map(|text| format!("json patch {text}"))
        .collect()
}

/// Returns a 415 for a patch of an unknown type.
pub(super) fn unsupported(call: &KindRequest) -> Status {
    if call.served.kind.conventions.media_errors == MediaErrors::Unstructured {
        return Status::unsupported_media_type(&[JSON, MERGE, APPLY]);
    }
    Status::new(415, "UnsupportedMediaType", "415: Unsupported Media Type")
        .with_details(Default::default())
}

/// Parses the operations. With field validation, all members of the wrong type are errors; without it, only those that
/// matter.
pub(super) fn json_patch(patch: &Value, validation: FieldValidation) -> Result<JsonPatch, Status> {
    let operations = JsonPatch::parse(patch.clone()).map_err(decode_error)?;
    if validation != FieldValidation::Ignore {
        operations.check_types().map_err(decode_error)?;
    }
    Ok(operations)
}

fn decode_error(error: DecodeError) -> Status {
    match error {
        DecodeError::TooManyOperations(_) => {
            Status::new(413, "RequestEntityTooLarge", error.to_string())
        }
        other => Status::bad_request(format!("error decoding patch: {other}")),
    }
}

fn object_patch(patch: Value) -> Result<Value, Status> {
    match patch {
        Value::Object(_) => Ok(patch),
        other => Err(Status::bad_request(format!(
            "error decoding patch: a patch of this type must be an object, this is of type {}",
            other.type_name()
        ))),
    }
}

enum PatchBody {
    Json(JsonPatch),
    Merge(Value),
    Strategic(Value),
}

struct Patch {
    change: PatchBody,
    conditional: bool,
    text: Value,
    /// Duplicate and unknown fields in the patch itself.
    findings: Vec<String>,
    validation: FieldValidation,
}

impl Edit for Patch {
    fn edit<'a>(
        &'a self,
        call: &'a KindRequest,
        live: &'a Object,
    ) -> BoxFuture<'a, Result<Edited, Status>> {
        let edited = self.patched(call, live).map(Edited::new);
        Box::pin(std::future::ready(edited))
    }

    fn is_conditional(&self) -> bool {
        self.conditional
    }
}

impl Patch {
    /// Returns the live object with the patch applied, before it is compared with the schema.
    fn merged(&self, call: &KindRequest, live: &Object) -> Result<Object, Status> {
        let mut value = live.value().clone();
        match &self.change {
            PatchBody::Json(patch) => patch
                .apply(&mut value)
                .map_err(|error| inapplicable(&error))?,
            PatchBody::Merge(patch) => merge_patch(&mut value, patch.clone()),
            PatchBody::Strategic(patch) => {
                let shape = &call.version().shape;
                strategic_merge(&mut value, patch.clone(), &*shape.typing()).map_err(|error| {
                    match error {
                        StrategicError::Malformed(_) => Status::bad_request(error.to_string()),
                        StrategicError::Unsupported(_) => inapplicable(&error),
                        other => Status::new(500, "", other.to_string()),
                    }
                })?;
            }
        }
        let shown = value.as_object().is_none().then(|| value.to_string());
        let mut object = Object::try_from(value)
            .map_err(|_| unfit(&shown.unwrap_or_default(), "the result is no object"))?;
        self.check_type(call, &mut object)?;
        Ok(object)
    }

    /// Returns the object as error messages show it: a strategic patch as it was sent, the result of other patches.
    fn shown(&self, call: &KindRequest, live: &Object) -> Result<String, Status> {
        Ok(match &self.change {
            PatchBody::Strategic(patch) => patch.to_string(),
            PatchBody::Json(_) | PatchBody::Merge(_) => {
                self.merged(call, live)?.value().to_string()
            }
        })
    }

    fn patched(&self, call: &KindRequest, live: &Object) -> Result<Object, Status> {
        let mut object = self.merged(call, live)?;
        // Findings in the patch itself come before those in its result.
        let mut findings = self.findings.clone();
        let conformed = decode::conform(decode::Wanted::of(call), &mut object, &mut findings);
        if let Err(status) = conformed {
            if status.reason != "BadRequest" {
                return Err(status);
            }
            let message = call.version().shape.message();
            let why = message
                .filter(|_| matches!(self.change, PatchBody::Strategic(_)))
                .and_then(|message| misfit::describe(message.get(), object.value()));
            let shown = self.shown(call, live)?;
            return Err(unfit(&shown, why.unwrap_or(status.message)));
        }
        judge(call, &self.text, self.validation, findings)?;
        decode::fill_in(&*call.version().shape, &mut object)?;
        Ok(object)
    }

    /// Rejects a patch that changes the object's type; a strategic patch cannot change it.
    fn check_type(&self, call: &KindRequest, object: &mut Object) -> Result<(), Status> {
        let (api_version, kind) = (
            call.served.api_version(call.version),
            &call.served.kind.names.kind,
        );
        if object.api_version() == api_version && object.kind() == kind {
            return Ok(());
        }
        if matches!(self.change, PatchBody::Strategic(_)) {
            for member in ["apiVersion", "kind"] {
                let given = object.get(member).filter(|given| !given.is_null());
                if given.is_some_and(|given| given.as_str().is_none()) {
                    let why = format!("{member} must be a string");
                    return Err(unfit(&self.text.to_string(), why));
                }
            }
            object.set_type(api_version, kind);
            return Ok(());
        }
        let required = call.served.kind.conventions.type_meta_required;
        if !required {
            let unsaid = |member: &str| {
                let text = object
                    .get(member)
                    .map(|value| value.as_str().or_else(|| value.is_null().then_some("")));
                text.unwrap_or(Some("")) == Some("")
            };
            // Upstream decodes an object without a version to one without members, so it reports the missing name.
            if unsaid("apiVersion") {
                return Err(nameless(&call.ask.info.name));
            }
            if unsaid("kind") && object.api_version() == api_version {
                object.set_type(api_version, kind);
                return Ok(());
            }
        }
        if required && object.api_version() == api_version {
            let (own, name) = (object.kind(), object.name());
            return Err(decode::another_kind(api_version, own, name, kind));
        }
        let why = format!(
            "the patch would make this {} of {api_version} a {} of {}; apiVersion and kind cannot be patched",
            kind,
            object.kind(),
            object.api_version()
        );
        Err(unfit(&self.text.to_string(), why))
    }
}

/// Handles unknown fields in a patch as the client asked: warns, rejects or ignores.
pub(super) fn judge(
    call: &KindRequest,
    patch: &Value,
    validation: FieldValidation,
    findings: Vec<String>,
) -> Result<(), Status> {
    match validation {
        _ if findings.is_empty() => Ok(()),
        FieldValidation::Ignore => Ok(()),
        FieldValidation::Warn => {
            for finding in findings {
                call.ask.warnings.add(finding);
            }
            Ok(())
        }
        FieldValidation::Strict => {
            let why = format!("strict decoding error: {}", findings.join(", "));
            Err(unfit(&patch.to_string(), why))
        }
    }
}

/// Returns a 422 for a patch whose result does not fit the type.
fn unfit(shown: &str, why: impl Into<String>) -> Status {
    let error = FieldError::invalid(FieldPath::new("patch"), shown, why);
    let nobody = GroupResource {
        group: "",
        resource: "",
    };
    Status::invalid(nobody, "", &[error])
}

/// Returns the 422 message that clients match for a patch that does not apply; the reason goes to the log.
pub(super) fn inapplicable(why: &dyn std::fmt::Display) -> Status {
    let text = "the server rejected our request due to an error in our request";
    tracing::debug!(%why, "a patch does not apply");
    Status::new(422, "Invalid", text).with_details(Default::default())
}

/// Parses an applied configuration, and its duplicate members.
pub(super) fn configuration(
    call: &KindRequest,
    body: &[u8],
) -> Result<(Object, Vec<String>), Status> {
    let parsed = bareboat_wire::yaml::parse(body)
        .map_err(|error| Status::bad_request(format!("error decoding YAML: {error}")))?;
    decode::refuse_with_advice(call, &parsed.value)?;
    let config = Object::try_from(parsed.value)
        .map_err(|_| Status::bad_request("an apply patch must be an object"))?;
    Ok((config, parsed.duplicates))
}

/// Handles duplicate members of a configuration as the client asked: warns, rejects or ignores. Runs after applying, so
/// that errors of the apply are reported first.
pub(crate) fn judge_duplicates(
    call: &KindRequest,
    duplicates: &[String],
    validation: FieldValidation,
) -> Result<(), Status> {
    match validation {
        _ if duplicates.is_empty() => Ok(()),
        FieldValidation::Ignore => Ok(()),
        FieldValidation::Warn => {
            for text in duplicates {
                call.ask.warnings.add(text.clone());
            }
            Ok(())
        }
        FieldValidation::Strict => {
            let text = format!(
                "error strict decoding YAML: error converting YAML to JSON: {}",
                decode::yaml_error(duplicates)
            );
            Err(Status::bad_request(text))
        }
    }
}

/// Server-side apply: the body is the complete set of fields its manager wants.
async fn apply(
    call: &KindRequest,
    body: &[u8],
    options: &WriteOptions,
) -> Result<Response, Status> {
    let (config, duplicates) = configuration(call, body)?;
    let now = call.state.clock.text();
    let apply = managed::Apply::new(call, config, duplicates, options, now)?;
    loop {
        if let Some(shown) = change(call, &apply, options).await? {
            return call.present(StatusCode::OK, shown).await;
        }
        // The right to patch does not include the right to create.
        authorize_creation(call).await?;
        let edited = Edited {
            object: apply.create(call).await?,
            managed: true,
        };
        match create_object(call, edited, options).await {
            Ok(shown) => return call.present(StatusCode::CREATED, shown).await,
            // Another request created the object in the meantime, so the next round changes it.
            Err(status) if status.reason == "AlreadyExists" => check_deadline(call)?,
            Err(status) => return Err(status),
        }
    }
}
