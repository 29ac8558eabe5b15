//! DeleteOptions: parsed from the body, or from the query if there is no body.

use crate::request::negotiate::content_type;
use crate::request::options::dry_run;
use crate::request::parse::parse;
use crate::verbs::kind_request::KindRequest;
use bareboat_api::status::GroupResource;
use bareboat_api::{FieldError, FieldPath, Status, Value};

/// What happens to objects that the deleted one owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// Dependents stay.
    Orphan,
    /// Dependents are deleted after the object.
    Background,
    /// Dependents are deleted before the object.
    Foreground,
}

/// The options of a deletion.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeleteOptions {
    pub(crate) dry_run: bool,
    pub(crate) propagation: Option<Propagation>,
    pub(crate) old_orphan: Option<bool>,
    pub(crate) grace_seconds: Option<i64>,
    /// Precondition: the uid.
    pub(crate) uid: Option<String>,
    /// Precondition: the resourceVersion.
    pub(crate) version: Option<String>,
    /// Whether to delete an object that cannot be read.
    pub(crate) ignore_read_error: bool,
}

const IGNORE_READ_ERROR: &str = "ignoreStoreReadErrorWithClusterBreakingPotential";

impl DeleteOptions {
    /// Returns whether an unreadable object is to be deleted; rejects other options in that case.
    pub(crate) fn erases(&self) -> Result<bool, Status> {
        let others = [
            (self.dry_run, ".dryRun"),
            (self.old_orphan.is_some(), ".orphanDependents"),
            (
                self.propagation.is_some() && self.old_orphan.is_none(),
                ".propagationPolicy",
            ),
            (self.grace_seconds.is_some(), ".gracePeriodSeconds"),
            (
                self.uid.is_some() || self.version.is_some(),
                ".preconditions",
            ),
        ];
        match others.iter().find(|(given, _)| *given) {
            Some((_, other)) if self.ignore_read_error => {
                let why = format!("cannot be set together with {other}");
                let path = FieldPath::new(IGNORE_READ_ERROR);
                Err(invalid(FieldError::invalid(path, true, why)))
            }
            _ => Ok(self.ignore_read_error),
        }
    }

    /// Parses the options of a request.
    pub(crate) fn read(call: &KindRequest, body: &[u8]) -> Result<DeleteOptions, Status> {
        if body.is_empty() {
            return Self::from_query(call);
        }
        let media = content_type(&call.ask.headers, call.messages().available());
        let media = media.ok_or_else(|| {
            Status::unsupported_media_type(&[
                "application/json",
                "application/yaml",
                "application/vnd.kubernetes.protobuf",
            ])
        })?;
        let refuse = |why: String| {
            Status::bad_request(format!(
                "the DeleteOptions in the body cannot be read: {why}"
            ))
        };
        let value = parse(media, body, call.messages().meta("DeleteOptions")).map_err(refuse)?;
        if value.as_object().is_none() {
            return Err(refuse(format!(
                "an object is needed, this is of type {}",
                value.type_name()
            )));
        }
        Self::from_body(&value)
    }

    /// Parses options from a body.
    pub(crate) fn from_body(value: &Value) -> Result<DeleteOptions, Status> {
        let refuse = |why: String| {
            Status::bad_request(format!(
                "the DeleteOptions in the body cannot be read: {why}"
            ))
        };
        // Typed clients send various groups in apiVersion; only the kind is checked.
        if let Some(kind) = value
            .get("kind")
            .and_then(Value::as_str)
            .filter(|kind| !kind.is_empty() && *kind != "DeleteOptions")
        {
            return Err(refuse(format!("the kind in the body is {kind}")));
        }
        Self::from_value(value, &refuse)
    }

    fn from_query(call: &KindRequest) -> Result<DeleteOptions, Status> {
        let query = &call.ask.query;
        let grace = match query.given("gracePeriodSeconds") {
            None => None,
            Some(text) => Some(text.parse::<i64>().map_err(|_| {
                Status::bad_request(format!(
                    "gracePeriodSeconds must be a whole number of seconds, not {text:?}"
                ))
            })?),
        };
        DeleteOptions {
            dry_run: dry_run(query.all("dryRun"), "DeleteOptions")?,
            propagation: propagation(query.given("propagationPolicy"))?,
            old_orphan: query
                .given("orphanDependents")
                .map(|text| !matches!(text, "false" | "0")),
            grace_seconds: grace,
            uid: None,
            version: None,
            ignore_read_error: query.given(IGNORE_READ_ERROR) == Some("true"),
        }
        .settle()
    }

    fn from_value(
        value: &Value,
        refuse: &dyn Fn(String) -> Status,
    ) -> Result<DeleteOptions, Status> {
        let wrong = |what: &str, wanted: &str| refuse(format!("{what} must be {wanted}"));
        let text = |path: &[&str], name: &str| match value.at(path) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.to_string())),
            Some(_) => Err(wrong(name, "a string")),
        };
        let grace = match value.get("gracePeriodSeconds") {
            None | Some(Value::Null) => None,
            Some(value) => Some(
                value
                    .as_i64()
                    .ok_or_else(|| wrong("gracePeriodSeconds", "a whole number"))?,
            ),
        };
        let old_orphan = match value.get("orphanDependents") {
            None | Some(Value::Null) => None,
            Some(value) => Some(
                value
                    .as_bool()
                    .ok_or_else(|| wrong("orphanDependents", "true or false"))?,
            ),
        };
        let dry: Vec<&str> = match value.get("dryRun") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(items)) => items
                .iter()
                .map(|item| item.as_str().unwrap_or("?"))
                .collect(),
            Some(_) => return Err(wrong("dryRun", "a list")),
        };
        DeleteOptions {
            dry_run: dry_run(dry.into_iter(), "DeleteOptions")?,
            propagation: propagation(
                text(&["propagationPolicy"], "propagationPolicy")?.as_deref(),
            )?,
            old_orphan,
            grace_seconds: grace,
            uid: text(&["preconditions", "uid"], "preconditions.uid")?,
            version: text(
                &["preconditions", "resourceVersion"],
                "preconditions.resourceVersion",
            )?,
            ignore_read_error: match value.get(IGNORE_READ_ERROR) {
                None | Some(Value::Null) => false,
                Some(value) => value
                    .as_bool()
                    .ok_or_else(|| wrong(IGNORE_READ_ERROR, "true or false"))?,
            },
        }
        .settle()
    }

    /// Converts the deprecated `orphanDependents` to a propagation policy.
    fn settle(mut self) -> Result<DeleteOptions, Status> {
        if let Some(orphan) = self.old_orphan {
            if self.propagation.is_some() {
                let path = FieldPath::new("propagationPolicy");
                let why = "orphanDependents and deletionPropagation cannot be both set";
                return Err(invalid(FieldError::invalid(
                    path,
                    self.propagation_name(),
                    why,
                )));
            }
            self.propagation = Some(if orphan {
                Propagation::Orphan
            } else {
                Propagation::Background
            });
        }
        Ok(self)
    }

    fn propagation_name(&self) -> &'static str {
        match self.propagation {
            Some(Propagation::Orphan) => "Orphan",
            Some(Propagation::Foreground) => "Foreground",
            Some(Propagation::Background) | None => "Background",
        }
    }
}

fn propagation(text: Option<&str>) -> Result<Option<Propagation>, Status> {
    Ok(Some(match text {
        None | Some("") => return Ok(None),
        Some("Orphan") => Propagation::Orphan,
        Some("Background") => Propagation::Background,
        Some("Foreground") => Propagation::Foreground,
        Some(other) => {
            let path = FieldPath::new("propagationPolicy");
            let choices = ["Foreground", "Background", "Orphan", "nil"];
            return Err(invalid(FieldError::not_supported(path, other, choices)));
        }
    }))
}

fn invalid(error: FieldError) -> Status {
    let what = GroupResource {
        group: "meta.k8s.io",
        resource: "DeleteOptions",
    };
    Status::invalid(what, "", &[error])
}
