//! The body of a write as an object of the kind, with what strict clients want to know about it.

use crate::request::negotiate::{Media, content_type};
use crate::request::options::FieldValidation;
use crate::verbs::call::Call;
use bareboat_api::kind::{Form, Shape};
use bareboat_api::status::GroupResource;
use bareboat_api::{FieldError, FieldPath, Object, Status, Value};

/// How much of a body that makes no sense is shown to its sender.
const SHOWN: usize = 30;

/// What a body is to be read as.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    api_version: &'a str,
    kind: &'a str,
    shape: &'a dyn Shape,
    /// Type meta must be there, and there is no protobuf.
    custom: bool,
}

impl<'a> Wanted<'a> {
    /// An object of the kind a request is about.
    pub(crate) fn of(call: &'a Call) -> Wanted<'a> {
        Wanted {
            api_version: call.served.api_version(call.version),
            kind: &call.served.kind.names.kind,
            shape: call.version().shape.as_ref(),
            custom: call.served.kind.custom,
        }
    }

    /// Something that is posted to be acted upon.
    fn posted(form: &'a Form) -> Wanted<'a> {
        Wanted {
            api_version: &form.api_version,
            kind: &form.kind,
            shape: form.shape.as_ref(),
            custom: false,
        }
    }

    fn speaks_protobuf(&self) -> bool {
        self.shape.message().is_some() && !self.custom
    }

    fn version(&self) -> &'a str {
        self.api_version.rsplit('/').next().unwrap_or("")
    }

    /// 400 for a body that does not fit the type.
    fn cannot_handle(&self, why: &str) -> Status {
        let (kind, version) = (self.kind, self.version());
        Status::bad_request(format!(
            "{kind} in version \"{version}\" cannot be handled as a {kind}: {why}"
        ))
    }
}

/// Reads the body of a create or update: parsed, checked for its type, in form and defaulted.
pub(crate) fn object(
    call: &Call,
    body: &[u8],
    validation: FieldValidation,
) -> Result<Object, Status> {
    let wanted = Wanted::of(call);
    let media = media(call, wanted)?;
    let (value, findings) = parse(wanted, media, body)?;
    finish(call, wanted, media, value, findings, body, validation)
}

/// Reads what is posted to be acted upon, in whichever of its forms it comes.
pub(crate) fn posted(
    call: &Call,
    forms: &[Form],
    body: &[u8],
    validation: FieldValidation,
) -> Result<Object, Status> {
    let usual = forms
        .first()
        .ok_or_else(|| Status::internal("nothing can be posted here"))?;
    let media = media(call, Wanted::posted(usual))?;
    // The type must be known before a protobuf body can be read, and its envelope tells it.
    let named = match media {
        Media::Protobuf => bareboat_wire::proto::decode_envelope(body)
            .map(|envelope| envelope.api_version.to_owned())
            .unwrap_or_default(),
        _ => String::new(),
    };
    let form_of = |api_version: &str| forms.iter().find(|form| form.api_version == api_version);
    let wanted = Wanted::posted(form_of(&named).unwrap_or(usual));
    let (value, findings) = parse(wanted, media, body)?;
    let named = value.get("apiVersion").and_then(Value::as_str);
    let wanted = Wanted::posted(named.and_then(form_of).unwrap_or(usual));
    finish(call, wanted, media, value, findings, body, validation)
}

/// 400 for an object of a version that is known to have gone, with what to change in it.
pub(crate) fn refuse_with_advice(call: &Call, value: &Value) -> Result<(), Status> {
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

fn media(call: &Call, wanted: Wanted<'_>) -> Result<Media, Status> {
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
    call: &Call,
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
    // Custom objects are read first and compared with their schema afterwards, so that what stands twice is told
    // before what is unknown; types are met while reading.
    if media == Media::Json && !wanted.custom {
        findings = bareboat_wire::json::in_order(body, findings);
    }
    judge(call, wanted, validation, findings)?;
    fill_in(wanted.shape, &mut object)?;
    Ok(object)
}

/// Fills in the defaults of a version.
pub(crate) fn fill_in(shape: &dyn Shape, object: &mut Object) -> Result<(), Status> {
    let defaulted = shape.default(object.value_mut());
    defaulted.map_err(|why| {
        let message = format!("Request entity too large: {why}");
        Status::new(413, "RequestEntityTooLarge", message)
    })
}

/// An empty group is the core group: `/v1` is `v1`, and `/` alone says nothing.
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
fn typed(wanted: Wanted<'_>, value: Value, body: &[u8]) -> Result<Object, Status> {
    let Wanted {
        api_version, kind, ..
    } = wanted;
    let value = match value {
        Value::Null if !wanted.custom => Value::object(),
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
    if wanted.custom {
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

/// 422 for a custom object that says it is of another kind.
pub(crate) fn another_kind(api_version: &str, own: &str, name: &str, wanted: &str) -> Status {
    let error = FieldError::invalid(FieldPath::new("kind"), own, format!("must be {wanted}"));
    let what = GroupResource {
        group: api_version.split_once('/').map_or("", |(group, _)| group),
        resource: own,
    };
    Status::invalid(what, name, &[error])
}

/// Brings an object into the form of its kind.
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
    // An empty list of managers has a meaning that its type does not know: it resets them. Of custom kinds only
    // a list with one empty entry does, as metadata of theirs has gone through the type before anybody looks.
    let resets = !wanted.custom
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

/// Warns about findings, refuses them, or lets them pass, as the client wishes.
fn judge(
    call: &Call,
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

/// Findings in one text. Keys that stand twice in YAML come as the error of the YAML reader, a line each;
/// they are the first findings.
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

/// Keys that stand twice, in the sentence of the YAML reader.
pub(crate) fn yaml_error(twice: &[String]) -> String {
    format!("yaml: unmarshal errors:\n  {}", twice.join("\n  "))
}
