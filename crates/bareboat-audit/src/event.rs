//! Events (`audit.k8s.io/v1`): what is known of a request at one of its stages, as JSON.

use crate::redact::{REDACTED, redact};
use crate::{Level, Payload, Stage, is_confidential};
use bareboat_api::kind::User;
use bareboat_api::time::Timestamp;
use bareboat_api::{Map, Status, Str, Value};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

/// Longer user agents are cut, and marked.
const LONGEST_AGENT: usize = 1024;
/// Longer URIs are cut, and marked.
const LONGEST_URI: usize = 16 * 1024;
/// The annotation with the id of an issued token.
const ISSUED: &str = "authentication.kubernetes.io/issued-credential-id";
const CUT: &str = "...TRUNCATED";

/// The facts about a request that all its audit events share.
#[derive(Clone, Debug)]
pub struct Request {
    /// The audit level: how much of the request is recorded.
    pub level: Level,
    /// Whether managed fields are left out of objects.
    pub omit_managed_fields: bool,
    /// The audit ID of the request.
    pub audit_id: String,
    /// Path and query as they were sent.
    pub uri: String,
    /// The verb, such as `create`; the HTTP method in lower case for other paths.
    pub verb: Str,
    /// The authenticated user; none if authentication failed.
    pub user: Option<Arc<User>>,
    /// The addresses of the client and of proxies, according to the headers; the address of the connection is the last.
    pub source_ips: Vec<IpAddr>,
    /// The `User-Agent` header.
    pub user_agent: String,
    /// The object or collection of the request; `None` for paths that are not resources.
    pub object: Option<ObjectRef>,
    /// When the request arrived.
    pub received: Timestamp,
}

/// The object a request is about.
#[derive(Clone, Debug, Default)]
pub struct ObjectRef {
    /// The API group; empty for the core group.
    pub group: Str,
    /// The API version.
    pub version: Str,
    /// The resource, such as `pods`.
    pub resource: Str,
    /// The subresource, or empty.
    pub subresource: Str,
    /// The namespace, or empty.
    pub namespace: Str,
    /// The name, or empty.
    pub name: Str,
}

/// How a request was answered.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The HTTP code; 0 if there was no answer.
    pub code: u16,
    /// The Status, if it was refused or failed.
    pub status: Option<Status>,
    /// Whether the Status may quote the body of the request.
    pub quotes_body: bool,
}

/// A request at one of its stages.
#[derive(Clone, Debug)]
pub struct Event {
    /// The facts that do not change during the request.
    pub request: Arc<Request>,
    /// The stage that the request has reached.
    pub stage: Stage,
    /// When the stage was reached.
    pub time: Timestamp,
    /// The impersonated user, if there is one.
    pub impersonated: Option<Arc<User>>,
    /// The name of a new object, which is not in the URL.
    pub created_name: Option<Str>,
    /// The answer: code and Status; `None` before there is one.
    pub outcome: Option<Outcome>,
    /// The object in the request body, if the level records it.
    pub request_object: Option<Payload>,
    /// The object in the answer, if the level records it.
    pub response_object: Option<Payload>,
    /// Annotations from authentication, authorization, admission and others.
    pub annotations: BTreeMap<String, String>,
}

impl Event {
    /// Returns about how many bytes the event keeps in memory.
    pub fn weight(&self) -> usize {
        let payload = |payload: &Option<Payload>| payload.as_ref().map_or(0, Payload::len);
        let annotations = self.annotations.iter();
        let annotations: usize = annotations.map(|(key, text)| key.len() + text.len()).sum();
        let request = &self.request;
        // Twice a payload: it is decoded to be written.
        1024 + request.uri.len()
            + request.user_agent.len()
            + annotations
            + 2 * payload(&self.request_object)
            + 2 * payload(&self.response_object)
    }

    /// Returns the id of the issued token, which is not secret.
    fn issued_credential(&self) -> Option<String> {
        let object = self.request.object.as_ref()?;
        let answer = self.response_object.as_ref();
        let answer = answer.filter(|_| object.issues_credentials())?.decode()?;
        let token = answer.at(&["status", "token"])?.as_str()?;
        let claims = token.split('.').nth(1)?;
        let claims = BASE64_URL_SAFE_NO_PAD.decode(claims).ok()?;
        let claims = bareboat_wire::json::parse(&claims).ok()?.value;
        Some(claims.get("jti")?.as_str()?.to_owned())
    }

    /// Returns the event as an object of the API.
    pub fn to_value(&self) -> Value {
        let request = &*self.request;
        let mut map = Map::with_capacity(20);
        let mut text = |key: &'static str, text: &str| {
            map.insert(key, Value::string(text));
        };
        text("kind", "Event");
        text("apiVersion", "audit.k8s.io/v1");
        text("level", request.level.name());
        text("auditID", &request.audit_id);
        text("stage", self.stage.name());
        text("requestURI", &cut(&request.uri, LONGEST_URI));
        text("verb", &request.verb);
        text("requestReceivedTimestamp", &request.received.print_micros());
        text("stageTimestamp", &self.time.print_micros());
        if !request.user_agent.is_empty() {
            text("userAgent", &cut(&request.user_agent, LONGEST_AGENT));
        }
        map.insert(
            "user",
            request.user.as_deref().map_or_else(Value::object, user),
        );
        if let Some(other) = &self.impersonated {
            map.insert("impersonatedUser", user(other));
        }
        if !request.source_ips.is_empty() {
            let ips = request.source_ips.iter();
            let ips = ips.map(|ip| Value::string(ip.to_string()));
            map.insert("sourceIPs", ips.collect());
        }
        if let Some(object) = &request.object {
            map.insert("objectRef", object.to_value(self.created_name.as_ref()));
        }
        let confidential = request
            .object
            .as_ref()
            .is_some_and(ObjectRef::is_confidential);
        if let Some(outcome) = &self.outcome {
            map.insert("responseStatus", outcome.to_value(confidential));
        }
        let bodies = [
            ("requestObject", Level::Request, &self.request_object),
            (
                "responseObject",
                Level::RequestResponse,
                &self.response_object,
            ),
        ];
        for (key, level, payload) in bodies {
            let payload = payload.as_ref().filter(|_| request.level >= level);
            let Some(mut value) = payload.and_then(Payload::decode) else {
                continue;
            };
            redact(request.object.as_ref(), &mut value);
            if request.omit_managed_fields {
                drop_managed_fields(&mut value);
            }
            map.insert(key, value);
        }
        let annotations = self.annotations.iter();
        let mut annotations: Vec<(Str, Value)> = annotations
            .map(|(key, text)| (Str::new(key), Value::string(text)))
            .collect();
        if let Some(id) = self.issued_credential() {
            annotations.push((Str::const_new(ISSUED), Value::from(format!("JTI={id}"))));
        }
        if !annotations.is_empty() {
            let annotations = Map::from_unsorted(annotations);
            map.insert("annotations", Value::Object(annotations));
        }
        Value::Object(map)
    }
}

impl ObjectRef {
    /// Returns whether the request or its answer carries credentials.
    pub fn is_confidential(&self) -> bool {
        is_confidential(&self.group, &self.resource, &self.subresource)
    }

    /// Returns whether the answer to a request is a token.
    pub fn issues_credentials(&self) -> bool {
        self.group.is_empty() && self.resource == "serviceaccounts" && self.subresource == "token"
    }

    fn to_value(&self, created: Option<&Str>) -> Value {
        let name = match self.name.is_empty() {
            true => created.unwrap_or(&self.name),
            false => &self.name,
        };
        let mut map = Map::new();
        for (key, text) in [
            ("resource", &self.resource),
            ("namespace", &self.namespace),
            ("name", name),
            ("apiGroup", &self.group),
            ("apiVersion", &self.version),
            ("subresource", &self.subresource),
        ] {
            if !text.is_empty() {
                map.insert(key, Value::string(text));
            }
        }
        Value::Object(map)
    }
}

impl Outcome {
    fn to_value(&self, confidential: bool) -> Value {
        let mut value = match &self.status {
            Some(status) => status.to_value(),
            None => Value::object(),
        };
        let map = value.make_object();
        map.remove("kind");
        map.remove("apiVersion");
        map.insert("metadata", Value::object());
        if self.code > 0 {
            map.insert("code", Value::Int(self.code.into()));
        }
        if confidential && self.quotes_body {
            map.remove("details");
            if let Some(message) = map.get_mut("message") {
                *message = Value::string(REDACTED);
            }
        }
        value
    }
}

fn user(user: &User) -> Value {
    let mut map = Map::new();
    map.insert("username", Value::string(&user.name));
    if !user.uid.is_empty() {
        map.insert("uid", Value::string(&user.uid));
    }
    if !user.groups.is_empty() {
        map.insert("groups", user.groups.iter().map(Value::string).collect());
    }
    if !user.extra.is_empty() {
        let extra = user.extra.iter();
        let extra =
            extra.map(|(key, values)| (Str::new(key), values.iter().map(Value::string).collect()));
        let extra = Map::from_unsorted(extra.collect());
        map.insert("extra", Value::Object(extra));
    }
    Value::Object(map)
}

/// Removes managed fields from an object, or from each object of a list.
fn drop_managed_fields(value: &mut Value) {
    if let Some(Value::Object(metadata)) = value.at_mut(&["metadata"]) {
        metadata.remove("managedFields");
    }
    if let Some(Value::Array(items)) = value.at_mut(&["items"]) {
        items.iter_mut().for_each(drop_managed_fields);
    }
}

/// Returns the beginning of a text, with a mark if it was cut.
fn cut(text: &str, longest: usize) -> String {
    if text.len() <= longest {
        return text.to_owned();
    }
    let mut end = longest;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{CUT}", &text[..end])
}

#[cfg(test)]
mod tests;
