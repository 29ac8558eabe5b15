//! The body of a write as an object of the kind, with what strict clients want to know about it.

use crate::kinds::served::Served;
use crate::request::negotiate::{Media, content_type};
use crate::request::options::FieldValidation;
use crate::verbs::call::Call;
use bareboat_api::{Object, Status, Value};

/// How much of a body that makes no sense is shown to its sender.
const SHOWN: usize = 30;

/// Reads the body of a create or update: parsed, checked for its type, in form and defaulted.
pub(crate) fn object(
    call: &Call,
    body: &[u8],
    validation: FieldValidation,
) -> Result<Object, Status> {
    let shape = &call.version().shape;
    let protobuf = shape.message().is_some() && !call.served.kind.custom;
    let media = content_type(&call.ask.headers, protobuf).ok_or_else(|| {
        let mut known = vec!["application/json", "application/yaml"];
        if protobuf {
            known.push("application/vnd.kubernetes.protobuf");
        }
        Status::unsupported_media_type(&known)
    })?;
    let (value, mut findings) = parse(call, media, body)?;
    let mut object = typed(call, value, body)?;
    conform(call, &mut object, &mut findings)?;
    judge(call, &object, validation, findings)?;
    shape.default(object.value_mut());
    Ok(object)
}

fn parse(call: &Call, media: Media, body: &[u8]) -> Result<(Value, Vec<String>), Status> {
    let kind = &call.served.kind.names.kind;
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
            let message = call.version().shape.message();
            let message =
                message.ok_or_else(|| Status::internal("this kind has no protobuf form"))?;
            let mut value = bareboat_wire::proto::decode_message(message.get(), unknown.raw)
                .map_err(|error| cannot_handle(&call.served, call.version, &error.to_string()))?;
            // The type stands on the envelope; inside, most clients leave it out.
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

/// Checks that the body is of the endpoint's type, filling in what built-in kinds may leave out.
fn typed(call: &Call, value: Value, body: &[u8]) -> Result<Object, Status> {
    let kind = &call.served.kind;
    let api_version = call.served.api_version(call.version);
    let value = match value {
        Value::Null if !kind.custom => Value::object(),
        other => other,
    };
    let mut object = Object::try_from(value).map_err(|value| {
        let shown = String::from_utf8_lossy(&body[..body.len().min(SHOWN)]).into_owned();
        Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): an object is needed, this is of type {} ({shown})",
            kind.names.kind,
            value.type_name(),
        ))
    })?;
    let (own_version, own_kind) = (object.api_version(), object.kind());
    for key in ["apiVersion", "kind"] {
        if object
            .get(key)
            .is_some_and(|value| value.as_str().is_none() && !value.is_null())
        {
            return Err(cannot_handle(
                &call.served,
                call.version,
                &format!("{key} must be a string"),
            ));
        }
    }
    if kind.custom {
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
        if own_kind != kind.names.kind {
            return Err(Status::bad_request(format!(
                "the kind in the data ({own_kind}) does not match the expected kind ({})",
                kind.names.kind
            )));
        }
        return Ok(object);
    }
    let wrong_kind = !own_kind.is_empty() && own_kind != kind.names.kind;
    let wrong_version = !own_version.is_empty() && own_version != api_version;
    if wrong_kind || wrong_version {
        let named = own_version.rsplit('/').next().unwrap_or("");
        let own_kind = if own_kind.is_empty() {
            &kind.names.kind
        } else {
            own_kind
        };
        let why = if wrong_kind {
            format!("this URL takes objects of kind {}", kind.names.kind)
        } else {
            format!(
                "this URL takes objects of apiVersion {api_version}, this one has {own_version}"
            )
        };
        return Err(Status::bad_request(format!(
            "{own_kind} in version \"{named}\" cannot be handled as a {}: {why}",
            kind.names.kind
        )));
    }
    object.set_type(api_version, &kind.names.kind);
    Ok(object)
}

/// Brings an object into the form of its kind.
pub(crate) fn conform(
    call: &Call,
    object: &mut Object,
    findings: &mut Vec<String>,
) -> Result<(), Status> {
    if object
        .get("metadata")
        .is_some_and(|meta| !meta.is_null() && meta.as_object().is_none())
    {
        return Err(cannot_handle(
            &call.served,
            call.version,
            "metadata must be an object",
        ));
    }
    let shape = &call.version().shape;
    shape
        .conform(object.value_mut(), findings)
        .map_err(|why| cannot_handle(&call.served, call.version, &why))
}

/// 400 for a body that does not fit the type.
pub(crate) fn cannot_handle(served: &Served, version: usize, why: &str) -> Status {
    let kind = &served.kind.names.kind;
    let version = &served.version(version).name;
    Status::bad_request(format!(
        "{kind} in version \"{version}\" cannot be handled as a {kind}: {why}"
    ))
}

/// Warns about findings, refuses them, or lets them pass, as the client wishes.
fn judge(
    call: &Call,
    object: &Object,
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
    let kind = object.kind();
    let version = &call.version().name;
    let listed = findings.join(", ");
    Err(Status::bad_request(format!(
        "{kind} in version \"{version}\" cannot be handled as a {kind}: strict decoding error: {listed}"
    )))
}
