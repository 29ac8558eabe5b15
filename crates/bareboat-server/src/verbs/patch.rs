//! PATCH: JSON, merge and strategic merge patches, and server-side apply.

use super::call::Call;
use super::create::create_object;
use super::misfit;
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
    // Whether there is anything to be patched is told before what is wrong with the patch.
    if call.served.resource().get(&call.key()).is_none() {
        return Err(call.not_found());
    }
    let parsed = bareboat_wire::json::parse(&body)
        .map_err(|error| Status::bad_request(format!("error decoding patch: {error}")))?;
    let mut patch = Patch {
        change: match kind.as_str() {
            // Nothing at all changes nothing.
            STRATEGIC if parsed.value.is_null() => Change::Strategic(Value::object()),
            JSON => Change::Json(json_patch(&parsed.value, options.field_validation)?),
            MERGE => Change::Merge(object_patch(parsed.value.clone())?),
            _ => Change::Strategic(object_patch(parsed.value.clone())?),
        },
        conditional: parsed
            .value
            .at(&["metadata", "resourceVersion"])
            .is_some_and(|version| !version.is_null()),
        text: parsed.value,
        findings: parsed.duplicates,
        validation: options.field_validation,
    };
    if let Change::Json(operations) = &patch.change {
        let all = patch.findings.iter().chain(operations.unknown());
        patch.findings = all.map(|text| format!("json patch {text}")).collect();
    }
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

/// Reads operations. Who wants to know of mistakes is told of all members of another type, others of those that matter.
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

enum Change {
    Json(JsonPatch),
    Merge(Value),
    Strategic(Value),
}

struct Patch {
    change: Change,
    conditional: bool,
    text: Value,
    /// What the patch itself says twice or in vain.
    findings: Vec<String>,
    validation: FieldValidation,
}

impl Edit for Patch {
    fn edit<'a>(
        &'a self,
        call: &'a Call,
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
        let mut findings = match &self.change {
            Change::Strategic(_) => self.findings.clone(),
            // What the patch itself says twice comes after what its result holds in vain.
            Change::Json(_) | Change::Merge(_) => Vec::new(),
        };
        let shown = match &self.change {
            Change::Strategic(patch) => patch.to_string(),
            Change::Json(_) | Change::Merge(_) => object.value().to_string(),
        };
        let conformed = decode::conform(decode::Wanted::of(call), &mut object, &mut findings);
        if let Err(status) = conformed {
            if status.reason != "BadRequest" {
                return Err(status);
            }
            let message = call.version().shape.message();
            let why = message
                .filter(|_| matches!(self.change, Change::Strategic(_)))
                .and_then(|message| misfit::describe(message.get(), object.value()));
            return Err(unfit(&shown, why.unwrap_or(status.message)));
        }
        if !matches!(self.change, Change::Strategic(_)) {
            findings.extend_from_slice(&self.findings);
        }
        judge(call, &self.text, self.validation, findings)?;
        decode::fill_in(&*call.version().shape, &mut object)?;
        Ok(object)
    }

    /// A patch may not turn an object into one of another type; a strategic one has no say in it.
    fn check_type(&self, call: &Call, object: &mut Object) -> Result<(), Status> {
        let (api_version, kind) = (
            call.served.api_version(call.version),
            &call.served.kind.names.kind,
        );
        if object.api_version() == api_version && object.kind() == kind {
            return Ok(());
        }
        if matches!(self.change, Change::Strategic(_)) {
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
        if !call.served.kind.custom {
            let unsaid = |member: &str| {
                let text = object
                    .get(member)
                    .map(|value| value.as_str().or_else(|| value.is_null().then_some("")));
                text.unwrap_or(Some("")) == Some("")
            };
            // Of no version at all it has no members, and with them its name is gone: that is what is told.
            if unsaid("apiVersion") {
                return Err(nameless(&call.ask.info.name));
            }
            if unsaid("kind") && object.api_version() == api_version {
                object.set_type(api_version, kind);
                return Ok(());
            }
        }
        if call.served.kind.custom && object.api_version() == api_version {
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
            Err(unfit(&patch.to_string(), why))
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

/// Reads what a manager wants applied, with the members that stand there twice.
pub(super) fn configuration(call: &Call, body: &[u8]) -> Result<(Object, Vec<String>), Status> {
    let parsed = bareboat_wire::yaml::parse(body)
        .map_err(|error| Status::bad_request(format!("error decoding YAML: {error}")))?;
    decode::refuse_with_advice(call, &parsed.value)?;
    let config = Object::try_from(parsed.value)
        .map_err(|_| Status::bad_request("an apply patch must be an object"))?;
    Ok((config, parsed.duplicates))
}

/// Warns about members of a configuration that stand there twice, refuses them, or lets them pass. That comes after
/// applying, so that what cannot be applied is told first.
pub(crate) fn judge_duplicates(
    call: &Call,
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

/// Server-side apply: the body is what its manager wants, no more and no less.
async fn apply(call: &Call, body: &[u8], options: &WriteOptions) -> Result<Response, Status> {
    let (config, duplicates) = configuration(call, body)?;
    let apply = managed::Apply::new(call, config, duplicates, options, now())?;
    loop {
        if let Some(shown) = change(call, &apply, options).await? {
            return call.present(StatusCode::OK, shown).await;
        }
        let edited = Edited {
            object: apply.create(call).await?,
            managed: true,
        };
        match create_object(call, edited, options).await {
            Ok(shown) => return call.present(StatusCode::CREATED, shown).await,
            // Somebody created it in the meantime: then there is something to change.
            Err(status) if status.reason == "AlreadyExists" => {}
            Err(status) => return Err(status),
        }
    }
}
