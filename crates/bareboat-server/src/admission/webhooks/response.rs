//! The answer of a webhook: checked against the review that was sent. `mutating` applies its patch.

use super::hook::ReviewVersion;
use bareboat_api::status::{Cause, Details};
use bareboat_api::{Status, Value};
use base64::prelude::BASE64_STANDARD;
use base64::{DecodeError, Engine as _};

/// What a webhook answered.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Answer {
    pub(super) allowed: bool,
    /// The operations of a JSON patch, as sent; empty for none.
    pub(super) patch: Vec<u8>,
    pub(super) patch_type: String,
    pub(super) status: Option<Value>,
    pub(super) warnings: Vec<String>,
    pub(super) annotations: Vec<(String, String)>,
}

/// Why an answer cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unusable {
    /// It is no AdmissionReview at all.
    Undecodable(String),
    /// It does not fit the review that was sent.
    Invalid(String),
}

/// Reads an answer.
pub(super) fn read(
    version: ReviewVersion,
    uid: &str,
    mutating: bool,
    bytes: &[u8],
) -> Result<Answer, Unusable> {
    let undecodable = |why: String| Unusable::Undecodable(why);
    let parsed = bareboat_wire::json::parse(bytes).map_err(|error| {
        undecodable(format!(
            "couldn't get version/kind; json parse error: {error}"
        ))
    })?;
    let review = parsed.value;
    if review.as_object().is_none() {
        let found = review.type_name();
        return Err(undecodable(format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}"
        )));
    }
    let response = match review.get("response") {
        None | Some(Value::Null) => {
            return Err(Unusable::Invalid("webhook response was absent".to_owned()));
        }
        Some(response @ Value::Object(_)) => response,
        Some(other) => {
            return Err(undecodable(mistyped(
                "AdmissionReview.response",
                other,
                "v1.AdmissionResponse",
            )));
        }
    };
    let strict = version == ReviewVersion::V1;
    if strict {
        check_identity(version, uid, &review, response)?;
    }
    let mut answer = Answer {
        allowed: match response.get("allowed") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(allowed)) => *allowed,
            Some(other) => {
                return Err(undecodable(mistyped(
                    "AdmissionResponse.response.allowed",
                    other,
                    "bool",
                )));
            }
        },
        status: response.get("status").filter(|it| !it.is_null()).cloned(),
        ..Answer::default()
    };
    read_patch(strict, mutating, response, &mut answer)?;
    for warning in list(response, "warnings")? {
        answer.warnings.push(warning.to_owned());
    }
    match response.get("auditAnnotations") {
        None | Some(Value::Null) => {}
        Some(Value::Object(map)) => {
            for (key, value) in map.iter() {
                let Some(text) = value.as_str() else {
                    let place = "AdmissionResponse.response.auditAnnotations";
                    return Err(undecodable(mistyped(place, value, "string")));
                };
                answer.annotations.push((key.to_owned(), text.to_owned()));
            }
        }
        Some(other) => {
            return Err(undecodable(mistyped(
                "AdmissionResponse.response.auditAnnotations",
                other,
                "map[string]string",
            )));
        }
    }
    Ok(answer)
}

fn mistyped(place: &str, found: &Value, wanted: &str) -> String {
    let found = found.type_name();
    format!("json: cannot unmarshal {found} into Go struct field {place} of type {wanted}")
}

fn list<'v>(response: &'v Value, key: &str) -> Result<Vec<&'v str>, Unusable> {
    let place = format!("AdmissionResponse.response.{key}");
    match response.get(key) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) => items
            .iter()
            .map(|item| {
                let text = item.as_str();
                text.ok_or_else(|| Unusable::Undecodable(mistyped(&place, item, "string")))
            })
            .collect(),
        Some(other) => Err(Unusable::Undecodable(mistyped(&place, other, "[]string"))),
    }
}

fn check_identity(
    version: ReviewVersion,
    uid: &str,
    review: &Value,
    response: &Value,
) -> Result<(), Unusable> {
    let got = response.get("uid").and_then(Value::as_str).unwrap_or("");
    if got != uid {
        return Err(Unusable::Invalid(format!(
            "expected response.uid={uid:?}, got {got:?}"
        )));
    }
    let text = |key: &str| review.get(key).and_then(Value::as_str).unwrap_or("");
    let (got, kind) = (text("apiVersion"), text("kind"));
    let expected = version.api_version();
    if (got, kind) == (expected, "AdmissionReview") {
        return Ok(());
    }
    // Go prints a version without a group with a leading slash.
    let slash = if got.contains('/') { "" } else { "/" };
    Err(Unusable::Invalid(format!(
        "expected webhook response of {expected}, Kind=AdmissionReview, got {slash}{got}, Kind={kind}"
    )))
}

fn read_patch(
    strict: bool,
    mutating: bool,
    response: &Value,
    answer: &mut Answer,
) -> Result<(), Unusable> {
    let patch = match response.get("patch") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::String(text)) => {
            let decoded = BASE64_STANDARD.decode(text.as_bytes());
            decoded.map_err(|error| {
                let at = match error {
                    DecodeError::InvalidByte(at, _) | DecodeError::InvalidLastSymbol(at, _) => at,
                    _ => text.len(),
                };
                Unusable::Undecodable(format!("illegal base64 data at input byte {at}"))
            })?
        }
        Some(other) => {
            return Err(Unusable::Undecodable(mistyped(
                "AdmissionResponse.response.patch",
                other,
                "[]uint8",
            )));
        }
    };
    let patch_type = match response.get("patchType") {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.to_string()),
        Some(other) => {
            return Err(Unusable::Undecodable(mistyped(
                "AdmissionResponse.response.patchType",
                other,
                "v1.PatchType",
            )));
        }
    };
    let invalid = |why: &str| Err(Unusable::Invalid(why.to_owned()));
    match (strict, mutating, patch.is_empty(), &patch_type) {
        (true, true, false, None) => {
            return invalid("webhook returned response.patch but not response.patchType");
        }
        (true, true, true, Some(_)) => {
            return invalid("webhook returned response.patchType but not response.patch");
        }
        (true, true, false, Some(name)) if name.is_empty() => {
            return invalid("webhook returned invalid response.patchType of \"\"");
        }
        (true, false, false, _) => {
            return invalid("validating webhook may not return response.patch");
        }
        (true, false, _, Some(_)) => {
            return invalid("validating webhook may not return response.patchType");
        }
        _ => {}
    }
    if mutating && !patch.is_empty() {
        answer.patch = patch;
        answer.patch_type = match strict {
            true => patch_type.unwrap_or_default(),
            // The older version does not check the type.
            false => "JSONPatch".to_owned(),
        };
    }
    Ok(())
}

/// Returns the Status of a refusal.
pub(super) fn denial(name: &str, status: Option<&Value>) -> Status {
    let text = |path: &[&str]| {
        let found = status.and_then(|status| status.at(path));
        found.and_then(Value::as_str).unwrap_or("").to_owned()
    };
    let number = |path: &[&str]| {
        let found = status.and_then(|status| status.at(path));
        found.and_then(Value::as_i64).unwrap_or(0)
    };
    let by = format!("admission webhook {name:?} denied the request");
    let (message, reason) = (text(&["message"]), text(&["reason"]));
    let message = match (message.as_str(), reason.as_str()) {
        ("", "") => format!("{by} without explanation"),
        ("", reason) => format!("{by}: {reason}"),
        (message, _) => format!("{by}: {message}"),
    };
    // HTTP answers have no larger code.
    let code = u16::try_from(number(&["code"])).unwrap_or(400);
    let code = if (400..=999).contains(&code) {
        code
    } else {
        400
    };
    let refusal = Status::new(code, "", message).with_reason(reason);
    let details = status.and_then(|status| status.get("details"));
    let Some(details) = details.filter(|details| details.as_object().is_some()) else {
        return refusal;
    };
    let causes = details.get("causes").and_then(Value::as_array);
    let causes = causes.unwrap_or(&[]).iter().map(|cause| {
        let text = |key: &str| {
            let found = cause.get(key).and_then(Value::as_str);
            found.unwrap_or("").to_owned()
        };
        Cause {
            reason: text("reason"),
            message: text("message"),
            field: text("field"),
        }
    });
    refusal.with_details(Details {
        name: text(&["details", "name"]),
        group: text(&["details", "group"]),
        kind: text(&["details", "kind"]),
        uid: text(&["details", "uid"]),
        causes: causes.collect(),
        retry_after_seconds: u32::try_from(number(&["details", "retryAfterSeconds"])).unwrap_or(0),
    })
}

#[cfg(test)]
mod tests;
