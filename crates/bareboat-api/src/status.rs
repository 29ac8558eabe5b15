//! `Status`: the answer for a failure, or for a success without an object.

use crate::field::{FieldError, go_quote};
use crate::{Map, Value};
use std::borrow::Cow;
use std::collections::HashSet;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// One of several causes of a failure.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Cause {
    /// The machine-readable reason, such as `FieldValueInvalid`.
    pub reason: String,
    /// The human-readable message.
    pub message: String,
    /// The field concerned, if any.
    pub field: String,
}

/// The details of a failure.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Details {
    /// The name of the object.
    pub name: String,
    /// The API group.
    pub group: String,
    /// The resource (plural), or the kind for validation errors.
    pub kind: String,
    /// The uid of the object.
    pub uid: String,
    /// The causes.
    pub causes: Vec<Cause>,
    /// The number of seconds after which the client should retry; 0 for none.
    pub retry_after_seconds: u32,
}

/// An answer without an object: a failure, or plain success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The HTTP code.
    pub code: u16,
    /// The machine-readable reason, empty for success.
    pub reason: Cow<'static, str>,
    /// The human-readable message.
    pub message: String,
    /// The details.
    pub details: Option<Box<Details>>,
    /// `metadata.continue` of an expired list.
    pub continue_token: String,
    /// The error behind it: for the log of the server, never for the client.
    source: Source,
}

/// The error behind a Status. It is no part of what a Status says, so all are equal.
#[derive(Clone, Debug, Default)]
struct Source(Option<Arc<dyn Error + Send + Sync>>);

impl PartialEq for Source {
    fn eq(&self, _: &Source) -> bool {
        true
    }
}

impl Eq for Source {}

/// The resource that a Status names: `configmaps`, or `deployments.apps`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupResource<'a> {
    /// The API group, empty for core.
    pub group: &'a str,
    /// The plural, or for validation errors the kind.
    pub resource: &'a str,
}

impl fmt::Display for GroupResource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.resource)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        Ok(())
    }
}

impl<'a> GroupResource<'a> {
    fn details(self, name: &str) -> Details {
        Details {
            name: name.to_owned(),
            group: self.group.to_owned(),
            kind: self.resource.to_owned(),
            ..Details::default()
        }
    }
}

/// The message of a 409 answer caused by an outdated resourceVersion.
pub const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

impl Status {
    /// Returns a failure without details.
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Status {
        Status {
            code,
            reason: Cow::Borrowed(reason),
            message: message.into(),
            details: None,
            continue_token: String::new(),
            source: Source::default(),
        }
    }

    /// The same with the error behind it, which the server logs and the client does not see.
    #[must_use]
    pub fn caused_by(mut self, error: impl Error + Send + Sync + 'static) -> Status {
        self.source = Source(Some(Arc::new(error)));
        self
    }

    /// Takes the error behind it, if there is one.
    pub fn take_source(&mut self) -> Option<Arc<dyn Error + Send + Sync>> {
        self.source.0.take()
    }

    /// Sets a reason that another server chose.
    #[must_use]
    pub fn with_reason(mut self, reason: String) -> Status {
        self.reason = Cow::Owned(reason);
        self
    }

    /// Sets the details.
    #[must_use]
    pub fn with_details(mut self, details: Details) -> Status {
        self.details = Some(Box::new(details));
        self
    }

    /// Adds a cause.
    #[must_use]
    pub fn with_cause(mut self, reason: &str, message: impl Into<String>, field: &str) -> Status {
        self.details.get_or_insert_default().causes.push(Cause {
            reason: reason.to_owned(),
            message: message.into(),
            field: field.to_owned(),
        });
        self
    }

    /// Sets the seconds after which the client should retry.
    #[must_use]
    pub fn retry_after(mut self, seconds: u32) -> Status {
        self.details.get_or_insert_default().retry_after_seconds = seconds;
        self
    }

    /// 400: the request is malformed.
    pub fn bad_request(message: impl Into<String>) -> Status {
        Status::new(400, "BadRequest", message)
    }

    /// 401: the request has no valid credentials.
    pub fn unauthorized() -> Status {
        Status::new(401, "Unauthorized", "Unauthorized")
    }

    /// 403 for an object: `configmaps "a" is forbidden: why`.
    pub fn forbidden(what: GroupResource<'_>, name: &str, why: impl fmt::Display) -> Status {
        let message = match (what.resource.is_empty(), name.is_empty()) {
            (true, _) => format!("forbidden: {why}"),
            (false, true) => format!("{what} is forbidden: {why}"),
            (false, false) => format!("{what} {} is forbidden: {why}", go_quote(name)),
        };
        Status::new(403, "Forbidden", message).with_details(what.details(name))
    }

    /// 404 for an object.
    pub fn not_found(what: GroupResource<'_>, name: &str) -> Status {
        Status::new(
            404,
            "NotFound",
            format!("{what} {} not found", go_quote(name)),
        )
        .with_details(what.details(name))
    }

    /// 404 for a route inside a group that is served.
    pub fn no_such_route() -> Status {
        Status::new(
            404,
            "NotFound",
            "the server could not find the requested resource",
        )
        .with_details(Details::default())
    }

    /// 405 for a route that exists for other methods.
    pub fn method_not_allowed() -> Status {
        let message = "the server does not allow this method on the requested resource";
        Status::new(405, "MethodNotAllowed", message).with_details(Details::default())
    }

    /// 405 for a verb that the kind does not support.
    pub fn verb_not_supported(what: GroupResource<'_>, verb: &str) -> Status {
        let message = format!("{verb} is not supported on resources of kind \"{what}\"");
        Status::new(405, "MethodNotAllowed", message).with_details(what.details(""))
    }

    /// 406: the server offers none of the media types the client accepts.
    pub fn not_acceptable(offered: &[&str]) -> Status {
        let list = offered.join(", ");
        let message = format!("only the following media types are accepted: {list}");
        Status::new(406, "NotAcceptable", message)
    }

    /// 415: the body has a media type that the server does not read.
    pub fn unsupported_media_type(offered: &[&str]) -> Status {
        let list = offered.join(", ");
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {list}"
        );
        Status::new(415, "UnsupportedMediaType", message)
    }

    /// 409: the name is taken.
    pub fn already_exists(what: GroupResource<'_>, name: &str) -> Status {
        let message = format!("{what} {} already exists", go_quote(name));
        Status::new(409, "AlreadyExists", message).with_details(what.details(name))
    }

    /// 409: the stored object differs from what the request assumes.
    pub fn conflict(what: GroupResource<'_>, name: &str, why: impl fmt::Display) -> Status {
        let message = format!(
            "Operation cannot be fulfilled on {what} {}: {why}",
            go_quote(name)
        );
        Status::new(409, "Conflict", message).with_details(what.details(name))
    }

    /// 410: the requested resourceVersion is no longer kept.
    pub fn expired(message: impl Into<String>) -> Status {
        Status::new(410, "Expired", message)
    }

    /// 413: the body exceeds the limit.
    pub fn too_large(limit: usize) -> Status {
        let message = format!("Request entity too large: limit is {limit}");
        Status::new(413, "RequestEntityTooLarge", message)
    }

    /// 422: the object is invalid; `what` names the *kind*.
    pub fn invalid(what: GroupResource<'_>, name: &str, errors: &[FieldError]) -> Status {
        // The message contains each problem once, the causes contain all of them.
        let all: Vec<String> = errors.iter().map(FieldError::to_string).collect();
        let mut seen = HashSet::with_capacity(all.len());
        let texts = all.iter().map(String::as_str);
        let texts: Vec<&str> = texts.filter(|text| seen.insert(*text)).collect();
        let mut message = format!("{what} {} is invalid", go_quote(name));
        let (open, close) = match texts.len() {
            0 => ("", ""),
            1 => (": ", ""),
            _ => (": [", "]"),
        };
        message.push_str(open);
        for (index, text) in texts.iter().enumerate() {
            message.push_str(if index > 0 { ", " } else { "" });
            message.push_str(text);
        }
        message.push_str(close);
        drop((texts, seen));
        drop(all);
        let mut details = what.details(name);
        details.causes = errors
            .iter()
            .map(|error| Cause {
                reason: error.kind.reason().to_owned(),
                message: error.body(),
                field: error.path.to_string(),
            })
            .collect();
        Status::new(422, "Invalid", message).with_details(details)
    }

    /// 429: the client must retry later.
    pub fn too_many_requests(message: impl Into<String>, seconds: u32) -> Status {
        Status::new(429, "TooManyRequests", message).retry_after(seconds)
    }

    /// 500: an internal error.
    pub fn internal(why: impl fmt::Display) -> Status {
        let why = why.to_string();
        Status::new(
            500,
            "InternalError",
            format!("Internal error occurred: {why}"),
        )
        .with_cause("", why, "")
    }

    /// 500 because of an error that has no better answer. The client sees what it says, the log its causes, too.
    pub fn failed(error: impl Error + Send + Sync + 'static) -> Status {
        Status::internal(&error).caused_by(error)
    }

    /// 503: temporarily unavailable.
    pub fn unavailable(message: impl Into<String>) -> Status {
        Status::new(503, "ServiceUnavailable", message)
    }

    /// 504: the operation took too long.
    pub fn timeout(message: impl fmt::Display) -> Status {
        Status::new(504, "Timeout", format!("Timeout: {message}"))
    }

    /// Returns the Status as an API object.
    pub fn to_value(&self) -> Value {
        let mut meta = Map::new();
        if !self.continue_token.is_empty() {
            meta.insert("continue", Value::string(&self.continue_token));
        }
        let mut map = Map::with_capacity(8);
        map.insert("kind", Value::string("Status"));
        map.insert("apiVersion", Value::string("v1"));
        map.insert("metadata", Value::Object(meta));
        let success = self.code < 400;
        map.insert(
            "status",
            Value::string(if success { "Success" } else { "Failure" }),
        );
        if !self.message.is_empty() {
            map.insert("message", Value::string(&self.message));
        }
        if !self.reason.is_empty() {
            map.insert("reason", Value::string(&*self.reason));
        }
        if let Some(details) = &self.details {
            map.insert("details", details.to_value());
        }
        // A success without an object has no code.
        if self.code != 200 {
            map.insert("code", Value::Int(self.code.into()));
        }
        Value::Object(map)
    }
}

impl Details {
    fn to_value(&self) -> Value {
        let mut map = Map::new();
        for (key, text) in [
            ("name", &self.name),
            ("group", &self.group),
            ("kind", &self.kind),
            ("uid", &self.uid),
        ] {
            if !text.is_empty() {
                map.insert(key, Value::string(text));
            }
        }
        if !self.causes.is_empty() {
            map.insert("causes", self.causes.iter().map(Cause::to_value).collect());
        }
        if self.retry_after_seconds > 0 {
            map.insert("retryAfterSeconds", self.retry_after_seconds.into());
        }
        Value::Object(map)
    }
}

impl Cause {
    fn to_value(&self) -> Value {
        let mut map = Map::new();
        for (key, text) in [
            ("reason", &self.reason),
            ("message", &self.message),
            ("field", &self.field),
        ] {
            if !text.is_empty() {
                map.insert(key, Value::string(text));
            }
        }
        Value::Object(map)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for Status {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.source.0 {
            Some(error) => Some(error.as_ref()),
            None => None,
        }
    }
}
