//! PATCH: JSON, merge and strategic merge patches, and server-side apply.

use super::call::Call;
use super::create::create_object;
use super::write::change::{Edit, Edited, change, nameless};
use super::write::{decode, now};
use crate::managed;
use crate::reply::Response;
use crate::request::negotiate::media_type;
use crate::request::options::{FieldValidation, WriteOptions};
use bareboat_api::kind::BoxFuture;
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

/// Changes part of the object the URL names.
pub(crate) async fn patch(call: &Call, body: Bytes) -> Result<Response, Status> {
    let kind = media_type(&call.ask.headers).to_owned();
    let known = matches!(kind.as_str(), JSON | MERGE | APPLY)
        || (kind == STRATEGIC && !call.served.kind.custom);
    if !known {
        return Err(unsupported(call));
    }
    let options = WriteOptions::parse(&call.ask.query, "PatchOptions")?;
    options.check_patch(&call.ask.query, kind == APPLY)?;
    if kind == APPLY {
        return apply(call, &body, &options).await;
    }
    let parsed = bareboat_wire::json::parse(&body)
        .map_err(|error| Status::bad_request(format!("error decoding patch: {error}")))?;
    let patch = Patch {
        change: match kind.as_str() {
            JSON => Change::Json(JsonPatch::parse(parsed.value.clone()).map_err(decode_error)?),
            MERGE => Change::Merge(object_patch(parsed.value.clone())?),
            _ => Change::Strategic(object_patch(parsed.value.clone())?),
        },
        conditional: parsed
            .value
            .at(&["metadata", "resourceVersion"])
            .is_some_and(|version| !version.is_null()),
        text: parsed.value,
        duplicates: parsed.duplicates,
        validation: options.field_validation,
    };
    let shown = change(call, &patch, &options)
        .await?
        .ok_or_else(|| call.not_found())?;
    call.present(StatusCode::OK, shown).await
}

/// 415 in the words of the two kinds of endpoints.
pub(super) fn unsupported(call: &Call) -> Status {
    if call.served.kind.custom {
        return Status::unsupported_media_type(&[JSON, MERGE, APPLY]);
    }
    Status::new(415, "UnsupportedMediaType", "415: Unsupported Media Type")
        .with_details(Default::default())
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

enum Change {
    Json(JsonPatch),
    Merge(Value),
    Strategic(Value),
}

struct Patch {
    change: Change,
    conditional: bool,
    text: Value,
    duplicates: Vec<String>,
    validation: FieldValidation,
}

impl Edit for Patch {
    fn edit<'a>(
        &'a self,
        call: &'a Call,
        live: &'a Object,
    ) -> BoxFuture<'a, Result<Edited, Status>> {
        Box::pin(std::future::ready(self.patched(call, live).map(|object| {
            Edited {
                object,
                managed: false,
            }
        })))
    }

    fn is_conditional(&self) -> bool {
        self.conditional
    }
}

impl Patch {
    fn patched(&self, call: &Call, live: &Object) -> Result<Object, Status> {
        let mut value = live.value().clone();
        match &self.change {
            Change::Json(patch) => patch
                .apply(&mut value)
                .map_err(|error| inapplicable(&error))?,
            Change::Merge(patch) => merge_patch(&mut value, patch.clone()),
            Change::Strategic(patch) => {
                let shape = &call.version().shape;
                strategic_merge(&mut value, patch.clone(), &*shape.typing()).map_err(|error| {
                    match error {
                        StrategicError::Malformed(_) => Status::bad_request(error.to_string()),
                        // Not the server's fault, but clients know it by this code.
                        StrategicError::NoMergeKey(why) => Status::new(500, "", why),
                        other => inapplicable(&other),
                    }
                })?;
            }
        }
        let mut object =
            Object::try_from(value).map_err(|_| inapplicable(&"the result is no object"))?;
        self.check_type(call, &object)?;
        let mut findings = self.duplicates.clone();
        let shown = match &self.change {
            Change::Strategic(patch) => patch.to_string(),
            Change::Json(_) | Change::Merge(_) => object.value().to_string(),
        };
        decode::conform(decode::Wanted::of(call), &mut object, &mut findings).map_err(
            |status| match status.reason {
                "BadRequest" => unfit(&shown, status.message),
                _ => status,
            },
        )?;
        judge(call, &self.text, self.validation, findings)?;
        call.version().shape.default(object.value_mut());
        Ok(object)
    }

    /// A patch may not turn an object into one of another type.
    fn check_type(&self, call: &Call, object: &Object) -> Result<(), Status> {
        let (api_version, kind) = (
            call.served.api_version(call.version),
            &call.served.kind.names.kind,
        );
        if object.api_version() == api_version && object.kind() == kind {
            return Ok(());
        }
        // Nothing is left of it, and with its type its name is gone: that is what is told.
        if matches!(self.change, Change::Strategic(_)) && object.map().is_empty() {
            return Err(nameless(&call.ask.info.name));
        }
        if call.served.kind.custom && object.api_version() == api_version {
            let (own, name) = (object.kind(), object.name());
            return Err(decode::another_kind(api_version, own, name, kind));
        }
        Err(Status::bad_request(format!(
            "the patch would make this {} of {api_version} a {} of {}; apiVersion and kind cannot be patched",
            kind,
            object.kind(),
            object.api_version()
        )))
    }
}

/// Warns about what a patch says and the type does not know, refuses it, or lets it pass, as the client wishes.
pub(super) fn judge(
    call: &Call,
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
            let error = FieldError::invalid(FieldPath::new("patch"), patch.to_string(), why);
            let nobody = GroupResource {
                group: "",
                resource: "",
            };
            Err(Status::invalid(nobody, &call.ask.info.name, &[error]))
        }
    }
}

/// 422 for a patch that leaves an object of another form.
fn unfit(shown: &str, why: impl Into<String>) -> Status {
    let error = FieldError::invalid(FieldPath::new("patch"), shown, why);
    let nobody = GroupResource {
        group: "",
        resource: "",
    };
    Status::invalid(nobody, "", &[error])
}

/// 422 for a patch that does not apply, in the sentence clients match; what is wrong goes to the log.
pub(super) fn inapplicable(why: &dyn std::fmt::Display) -> Status {
    let text = "the server rejected our request due to an error in our request";
    tracing::debug!(%why, "a patch does not apply");
    Status::new(422, "Invalid", text).with_details(Default::default())
}

/// Reads what a manager wants applied.
pub(super) fn configuration(
    call: &Call,
    body: &[u8],
    options: &WriteOptions,
) -> Result<Object, Status> {
    let parsed = bareboat_wire::yaml::parse(body)
        .map_err(|error| Status::bad_request(format!("error decoding YAML: {error}")))?;
    if !parsed.duplicates.is_empty() {
        let listed = parsed.duplicates.join(", ");
        match options.field_validation {
            FieldValidation::Strict => {
                return Err(Status::bad_request(format!(
                    "error strict decoding YAML: {listed}"
                )));
            }
            FieldValidation::Warn => parsed
                .duplicates
                .into_iter()
                .for_each(|text| call.ask.warnings.add(text)),
            FieldValidation::Ignore => {}
        }
    }
    decode::refuse_with_advice(call, &parsed.value)?;
    Object::try_from(parsed.value)
        .map_err(|_| Status::bad_request("an apply patch must be an object"))
}

/// Server-side apply: the body is what its manager wants, no more and no less.
async fn apply(call: &Call, body: &[u8], options: &WriteOptions) -> Result<Response, Status> {
    let config = configuration(call, body, options)?;
    let apply = managed::Apply::new(call, config, options, now())?;
    loop {
        if let Some(shown) = change(call, &apply, options).await? {
            return call.present(StatusCode::OK, shown).await;
        }
        let object = apply.create(call).await?;
        match create_object(call, object, options).await {
            Ok(shown) => return call.present(StatusCode::CREATED, shown).await,
            // Somebody created it in the meantime: then there is something to change.
            Err(status) if status.reason == "AlreadyExists" => {}
            Err(status) => return Err(status),
        }
    }
}
