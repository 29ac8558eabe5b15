//! A recorded transcript of a real server, and the part of a server that is needed to replay it.

use crate::vectors;
use bareboat_api::kind::{User, WriteContext};
use bareboat_api::metadata::{validate_metadata, validate_metadata_update};
use bareboat_api::{FieldError, FieldPath, Kind, Map, Object, Status, Str, Value};
use bareboat_builtin::{kinds, services};

/// The time of every write.
const NOW: &str = "2026-11-14T00:00:00Z";

/// One request and its response.
pub(crate) struct Step {
    pub(crate) name: String,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) body: Value,
    pub(crate) code: i64,
    pub(crate) answer: Value,
}

/// Reads the steps of a transcript; empty if there are no vectors.
pub(crate) fn read(name: &str) -> Vec<Step> {
    let Some(folder) = vectors::folder("transcript") else {
        return Vec::new();
    };
    let text = std::fs::read_to_string(folder.join(name)).unwrap();
    text.lines().map(step).collect()
}

fn step(line: &str) -> Step {
    let value: Value = serde_json::from_str(line).unwrap();
    let text = |path: &[&str]| {
        let found = value.at(path).and_then(Value::as_str);
        found.unwrap_or("").to_owned()
    };
    let url = text(&["request", "path"]);
    let (path, query) = url.split_once('?').unwrap_or((&url, ""));
    let mut answer = value.at(&["answer", "body"]).cloned().unwrap_or_default();
    if let Some(meta) = answer.at_mut(&["metadata"]).and_then(Value::as_object_mut) {
        meta.remove("managedFields");
    }
    Step {
        name: text(&["name"]),
        method: text(&["request", "method"]),
        path: path.to_owned(),
        query: query.to_owned(),
        body: value.at(&["request", "body"]).cloned().unwrap_or_default(),
        code: value
            .at(&["answer", "code"])
            .and_then(Value::as_i64)
            .unwrap_or(0),
        answer,
    }
}

/// The object that a path refers to.
pub(crate) struct Target {
    pub(crate) kind: Kind,
    pub(crate) version: Str,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// Returns the built-in kind of a path; `None` for subresources and other paths.
pub(crate) fn target(path: &str) -> Option<Target> {
    let mut parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let (group, version) = match *parts.first()? {
        "api" => ("", *parts.get(1)?),
        "apis" => (*parts.get(1)?, *parts.get(2)?),
        _ => return None,
    };
    parts.drain(..if group.is_empty() { 2 } else { 3 });
    let mut namespace = String::new();
    if parts.first() == Some(&"namespaces") && parts.len() > 2 {
        namespace = parts[1].to_owned();
        parts.drain(..2);
    }
    let (plural, name) = match parts.as_slice() {
        [plural] => (*plural, ""),
        [plural, name] => (*plural, *name),
        _ => return None,
    };
    let mut kind = kinds::find(group, plural)?;
    if (group, plural) == ("", "services") {
        let claims = services::Claims::new(services::ServiceRanges::default());
        kind = services::allocating(kind, &claims);
    }
    Some(Target {
        kind,
        version: version.into(),
        namespace,
        name: name.to_owned(),
    })
}

/// The result of a write.
pub(crate) type Outcome = Result<Object, Refusal>;

/// Why a write is rejected.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The body does not fit the type.
    Type(String),
    /// Strict decoding reported findings.
    Strict(Vec<String>),
    /// A resourceVersion is missing.
    Unconditional,
    /// An allocation failed.
    Reserve(Status),
    /// Validation failed.
    Invalid(Vec<FieldError>),
}

impl Target {
    fn decode(&self, step: &Step) -> Result<Object, Refusal> {
        let version = self.kind.version(&self.version).unwrap();
        let mut body = step.body.clone();
        let mut findings = Vec::new();
        version
            .shape
            .conform(&mut body, &mut findings)
            .map_err(Refusal::Type)?;
        if step.query.contains("fieldValidation=Strict") && !findings.is_empty() {
            return Err(Refusal::Strict(findings));
        }
        version.shape.default(&mut body).unwrap();
        let mut object = Object::try_from(body).unwrap();
        if self.kind.namespaced() {
            object.set_meta("namespace", self.namespace.as_str().into());
        }
        Ok(object)
    }

    fn context<'a>(&'a self, user: &'a User) -> WriteContext<'a> {
        WriteContext {
            subresource: None,
            user,
            now: NOW,
            version: &self.version,
            dry_run: false,
        }
    }

    /// Runs the write pipeline for a POST.
    pub(crate) fn create(&self, step: &Step) -> Outcome {
        let user = User::default();
        let context = self.context(&user);
        let mut object = self.decode(step)?;
        object.set_meta("uid", "1b4e28ba-2fa1-11d2-883f-0016d3cca427".into());
        object.set_meta("creationTimestamp", NOW.into());
        bareboat_builtin::admission::complete_on_create(&self.kind, &mut object);
        let has_status = self.kind.version(&self.version).unwrap().has_status();
        if has_status && !self.kind.policy.status_on_create {
            object.map_mut().insert("status", Value::object());
        }
        if self.kind.policy.generation != bareboat_api::kind::Generation::Untracked {
            object.set_meta("generation", Value::Int(1));
        }
        self.kind.strategy.prepare_create(&mut object, &context);
        let reserved = self.kind.strategy.reserve(&mut object, None, &context);
        let _held = reserved.map_err(Refusal::Reserve)?;
        let empty = Map::new();
        let mut wrong = validate_metadata(
            object.metadata().unwrap_or(&empty),
            self.kind.namespaced(),
            self.kind.policy.name_rule,
            &FieldPath::new("metadata"),
        );
        wrong.extend(self.kind.strategy.validate_create(&object, &context));
        if !wrong.is_empty() {
            return Err(Refusal::Invalid(wrong));
        }
        if !step.query.contains("dryRun") {
            object.set_meta("resourceVersion", "1".into());
        }
        Ok(object)
    }

    /// Runs the write pipeline for a PUT.
    pub(crate) fn update(&self, step: &Step, live: &Object) -> Outcome {
        let user = User::default();
        let context = self.context(&user);
        let mut object = self.decode(step)?;
        if !self.kind.policy.unconditional_update && object.resource_version().is_empty() {
            return Err(Refusal::Unconditional);
        }
        for key in ["uid", "creationTimestamp", "resourceVersion", "generation"] {
            if let Some(value) = live.meta(key) {
                object.set_meta(key, value.clone());
            }
        }
        if self.kind.version(&self.version).unwrap().has_status()
            && let Some(status) = live.get("status")
        {
            object.map_mut().insert("status", status.clone());
        }
        bareboat_builtin::admission::complete_on_update(&self.kind, &mut object, live);
        self.kind
            .strategy
            .prepare_update(&mut object, live, &context);
        let reserved = self
            .kind
            .strategy
            .reserve(&mut object, Some(live), &context);
        let _held = reserved.map_err(Refusal::Reserve)?;
        let empty = Map::new();
        let mut wrong = validate_metadata_update(
            object.metadata().unwrap_or(&empty),
            live.metadata().unwrap_or(&empty),
            &FieldPath::new("metadata"),
        );
        wrong.extend(self.kind.strategy.validate_update(&object, live, &context));
        if !wrong.is_empty() {
            return Err(Refusal::Invalid(wrong));
        }
        Ok(object)
    }
}

/// Compares recorded and actual values; recorded placeholders match any text.
pub(crate) fn matches(recorded: &Value, found: &Value) -> bool {
    match (recorded, found) {
        (Value::String(a), Value::String(b)) => {
            let volatile = ["<time>", "<uid>", "<rv>", "<age>", "<hash>"]
                .into_iter()
                .find_map(|placeholder| a.split_once(placeholder));
            match volatile {
                Some((before, after)) => b.starts_with(before) && b.ends_with(after),
                None => a == b,
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| matches(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, a)| b.get(key).is_some_and(|b| matches(a, b)))
        }
        _ => recorded == found,
    }
}
