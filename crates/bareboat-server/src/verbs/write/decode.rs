//! Decodes the body of a write into an object of the kind, with the findings of strict field validation.

use crate::request::negotiate::{Media, content_type};
use crate::request::options::FieldValidation;
use crate::verbs::kind_request::KindRequest;
use bareboat_api::kind::{Conventions, Decoding, PostedType, Shape};
use bareboat_api::status::GroupResource;
use bareboat_api::{FieldError, FieldPath, Object, Status, Value};

/// How much of an undecodable body an error shows.
const SHOWN: usize = 30;

/// The type that a body must have.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    api_version: &'a str,
    kind: &'a str,
    shape: &'a dyn Shape,
    conventions: &'a Conventions,
}

impl<'a> Wanted<'a> {
    /// An object of the kind a request is about.
    pub(crate) fn of(call: &'a KindRequest) -> Wanted<'a> {
        Wanted {
            api_version: call.served.api_version(call.version),
            kind: &call.served.kind.names.kind,
            shape: call.version().shape.as_ref(),
            conventions: &call.served.kind.conventions,
        }
    }

    /// The type of a posted action.
    fn posted(posted_type: &'a PostedType) -> Wanted<'a> {
        Wanted {
            api_version: &posted_type.api_version,
            kind: &posted_type.kind,
            shape: posted_type.shape.as_ref(),
            conventions: &Conventions::BUILT_IN,
        }
    }

    fn speaks_protobuf(&self) -> bool {
        self.shape.message().is_some() && self.conventions.protobuf
    }

    fn version(&self) -> &'a str {
        self.api_version.rsplit('/').next().unwrap_or("")
    }

    /// Returns a 400 for a body that does not fit the type.
    fn cannot_handle(&self, why: &str) -> Status {
        let (kind, version) = (self.kind, self.version());
        Status::bad_request(format!(
            "{kind} in version \"{version}\" cannot be handled as a {kind}: {why}"
        ))
    }
}

/// Decodes the body of a create or update: parses it, checks its type, prunes it and applies defaults.
pub(crate) fn object(
    call: &KindRequest,
    body: &[u8],
    validation: FieldValidation,
) -> Result<Object, Status> {
    let wanted = Wanted::of(call);
    let media = media(call, wanted)?;
    let (value, findings) = parse(wanted, media, body)?;
    finish(call, wanted, media, value, findings, body, validation)
}

/// Decodes the body of a posted action, in any of its types.
pub(crate) fn posted(
    call: &KindRequest,
    types: &[PostedType],
    body: &[u8],
    validation: FieldValidation,
) -> Result<Object, Status> {
    let usual = types
        .first()
        .ok_or_else(|| Status::internal("nothing can be posted here"))?;
    let media = media(call, Wanted::posted(usual))?;
    // The type must be known before a protobuf body can be decoded; its envelope names it.
    let named = match media {
        Media::Protobuf => bareboat_wire::proto::decode_envelope(body)
            .map(|envelope| envelope.api_version.to_owned())
            .unwrap_or_default(),
        _ => String::new(),
    };
    let form_of = |api_version: &str| {
        types
            .iter()
            .find(|posted_type| posted_type.api_version == api_version)
    };
    let wanted = Wanted::posted(form_of(&named).unwrap_or(usual));
    let (value, findings) = parse(wanted, media, body)?;
    let named = value.get("apiVersion").and_then(Value::as_str);
    let wanted = Wanted::posted(named.and_then(form_of).unwrap_or(usual));
    finish(call, wanted, media, value, findings, body, validation)
}

/// Returns a 400 for an object of a removed API version, with advice on how to change it.
pub(crate) fn refuse_with_advice(call: &KindRequest, value: &Value) -> Result<(), Status> {
    let sent = value
        .get("apiVersion")
        .and_then(Value::as_str)
        .unwrap_or("");
    let expected = call.served.api_version(call.version);
    let version = match sent.rsplit_once('/') {
        Some((group, version)) if group == call.served.kind.group && sent != expected => version,
        _ => return Ok(()),
    };
    match call.served.kind.strategy.advise(version, Some(value)) {
        None => Ok(()),
        Some(advice) => Err(Status::bad_request(format!(
            "the API version in the data ({sent}) does not match the expected API version ({expected}): {advice}"
        ))),
    }
}

fn media(call: &KindRequest, wanted: Wanted<'_>) -> Result<Media, Status> {
    let protobuf = wanted.speaks_protobuf();
    content_type(&call.ask.headers, protobuf).ok_or_else(|| {
        let mut known = vec!["application/json", "application/yaml"];
        if protobuf {
            known.push("application/vnd.kubernetes.protobuf");
        }
        Status::unsupported_media_type(&known)
    })
}

fn finish(
    call: &KindRequest,
    wanted: Wanted<'_>,
    media: Media,
    value: Value,
    mut findings: Vec<String>,
    body: &[u8],
    validation: FieldValidation,
) -> Result<Object, Status> {
    refuse_with_advice(call, &value)?;
    let value = with_core_version(value);
    let mut object = typed(wanted, value, body)?;
    conform(wanted, &mut object, &mut findings)?;
    // A typed decoder reports duplicate and unknown fields in the order of the body.
    if media == Media::Json && wanted.conventions.decoding == Decoding::Typed {
        findings = bareboat_wire::json::in_order(body, findings);
    }
    judge(call, wanted, validation, findings)?;
    fill_in(wanted.shape, &mut object)?;
    Ok(object)
}

/// Applies the defaults of a version.
pub(crate) fn fill_in(shape: &dyn Shape, object: &mut Object) -> Result<(), Status> {
    let defaulted = shape.default(object.value_mut());
    defaulted.map_err(|why| {
        let message = format!("Request entity too large: {why}");
        Status::new(413, "RequestEntityTooLarge", message)
    })
}

/// Rewrites the `apiVersion` `/v1` to `v1`, and `/` to an empty string, because an empty group is the core group.
fn with_core_version(mut value: Value) -> Value {
    let core = value
        .get("apiVersion")
        .and_then(Value::as_str)
        .and_then(|text| text.strip_prefix('/'))
        .filter(|version| !version.contains('/'))
        .map(Value::string);
    if let Some(core) = core {
        value.make_object().insert("apiVersion", core);
    }
    value
}

fn parse(wanted: Wanted<'_>, media: Media, body: &[u8]) -> Result<(Value, Vec<String>), Status> {
    let kind = wanted.kind;
    let unrecognized = |why: String| {
        let shown = String::from_utf8_lossy(&body[..body.len().min(SHOWN)]).into_owned();
        let shown = if shown.is_empty() {
            "<empty>".to_owned()
        } else {
            shown
        };
        Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; {why} ({shown})"
        ))
    };
    match media {
        Media::Json => bareboat_wire::json::parse(body)
            .map(|parsed| (parsed.value, parsed.duplicates))
            .map_err(|error| unrecognized(format!("json parse error: {error}"))),
        Media::Yaml => bareboat_wire::yaml::parse(body)
            .map(|parsed| (parsed.value, parsed.duplicates))
            .map_err(|error| unrecognized(format!("yaml parse error: {error}"))),
        Media::Protobuf => {
            let unknown = bareboat_wire::proto::decode_envelope(body)
                .map_err(|error| unrecognized(error.to_string()))?;
            let message = wanted.shape.message();
            let message =
                message.ok_or_else(|| Status::internal("this kind has no protobuf form"))?;
            let mut value = bareboat_wire::proto::decode_message(message.get(), unknown.raw)
                .map_err(|error| match error.is_too_large() {
                    true => Status::new(413, "RequestEntityTooLarge", error.to_string()),
                    false => wanted.cannot_handle(&error.to_string()),
                })?;
            // The type is in the envelope; most clients omit it inside.
            let map = value.make_object();
            for (key, text) in [("apiVersion", unknown.api_version), ("kind", unknown.kind)] {
                if !text.is_empty() {
                    map.insert(key, Value::string(text));
                }
            }
            Ok((value, Vec::new()))
        }
    }
}

/// Checks that the body has the endpoint's type; fills in what clients may omit for built-in kinds.
fn typed(wanted: Wanted<'_>, value: Value, body: &[u8]) -> Result<Object, Status> {
    let Wanted {
        api_version, kind, ..
    } = wanted;
    let value = match value {
        Value::Null if !wanted.conventions.type_meta_required => Value::object(),
        other => other,
    };
    let mut object = Object::try_from(value).map_err(|value| {
        let shown = String::from_utf8_lossy(&body[..body.len().min(SHOWN)]).into_owned();
        Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): an object is needed, this is of type {} ({shown})",
            kind,
            value.type_name(),
        ))
    })?;
    let (own_version, own_kind) = (object.api_version(), object.kind());
    for key in ["apiVersion", "kind"] {
        if object
            .get(key)
            .is_some_and(|value| value.as_str().is_none() && !value.is_null())
        {
            return Err(wanted.cannot_handle(&format!("{key} must be a string")));
        }
    }
    if wanted.conventions.type_meta_required {
        if own_kind.is_empty() {
            return Err(Status::bad_request(
                "Object 'Kind' is missing: give apiVersion and kind in the body",
            ));
        }
        if own_version != api_version {
            return Err(Status::bad_request(format!(
                "the API version in the data ({own_version}) does not match the expected API version ({api_version})"
            )));
        }
        if own_kind != kind {
            return Err(another_kind(api_version, own_kind, object.name(), kind));
        }
        return Ok(object);
    }
    let wrong_kind = !own_kind.is_empty() && own_kind != kind;
    let wrong_version = !own_version.is_empty() && own_version != api_version;
    if wrong_kind || wrong_version {
        let named = own_version.rsplit('/').next().unwrap_or("");
        let own_kind = if own_kind.is_empty() { kind } else { own_kind };
        let why = if wrong_kind {
            format!("this URL takes objects of kind {kind}")
        } else {
            format!(
                "this URL takes objects of apiVersion {api_version}, this one has {own_version}"
            )
        };
        return Err(Status::bad_request(format!(
            "{own_kind} in version \"{named}\" cannot be handled as a {kind}: {why}"
        )));
    }
    object.set_type(api_version, kind);
    Ok(object)
}

/// Returns a 422 for a custom object of another kind.
pub(crate) fn another_kind(api_version: &str, own: &str, name: &str, wanted: &str) -> Status {
    let error = FieldError::invalid(FieldPath::new("kind"), own, format!("must be {wanted}"));
    let what = GroupResource {
        group: api_version.split_once('/').map_or("", |(group, _)| group),
        resource: own,
    };
    Status::invalid(what, name, &[error])
}

/// Makes an object fit the shape of its kind.
pub(crate) fn conform(
    wanted: Wanted<'_>,
    object: &mut Object,
    findings: &mut Vec<String>,
) -> Result<(), Status> {
    if object
        .get("metadata")
        .is_some_and(|meta| !meta.is_null() && meta.as_object().is_none())
    {
        return Err(wanted.cannot_handle("metadata must be an object"));
    }
    // An empty list of managed fields resets them. Structural decoding has removed an empty list by now, so that only a
    // list with one empty entry resets them.
    let resets = wanted.conventions.decoding == Decoding::Typed
        && object
            .meta("managedFields")
            .is_some_and(|list| list.as_array().is_some_and(<[Value]>::is_empty));
    wanted
        .shape
        .conform(object.value_mut(), findings)
        .map_err(|why| wanted.cannot_handle(&why))?;
    if resets {
        object.set_meta("managedFields", Value::Array(Vec::new()));
    }
    Ok(())
}

/// Handles findings as the client asked: warns, rejects or ignores.
fn judge(
    call: &KindRequest,
    wanted: Wanted<'_>,
    validation: FieldValidation,
    findings: Vec<String>,
) -> Result<(), Status> {
    if findings.is_empty() || validation == FieldValidation::Ignore {
        return Ok(());
    }
    if validation == FieldValidation::Warn {
        for finding in findings {
            call.ask.warnings.add(finding);
        }
        return Ok(());
    }
    let listed = listed(&findings);
    Err(wanted.cannot_handle(&format!("strict decoding error: {listed}")))
}

/// Joins findings into one text. Duplicate YAML keys come first, as one error of the YAML parser with a line for each.
fn listed(findings: &[String]) -> String {
    let twice = findings
        .iter()
        .take_while(|finding| finding.starts_with("line "));
    let (twice, others) = findings.split_at(twice.count());
    let mut parts = Vec::with_capacity(1 + others.len());
    if !twice.is_empty() {
        parts.push(yaml_error(twice));
    }
    parts.extend_from_slice(others);
    parts.join(", ")
}

/// Formats duplicate keys as the YAML parser's error.
pub(crate) fn yaml_error(twice: &[String]) -> String {
    format!("yaml: unmarshal errors:\n  {}", twice.join("\n  "))
}
