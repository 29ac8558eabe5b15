//! One entry of `managedFields`.

use crate::fields::{FieldSet, FieldsError};
use bareboat_api::{Map, Str, Value, field::go_quote};
use std::cmp::Ordering;

/// The error of an invalid list of managed fields.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ManagedError {
    /// `managedFields` is not a list; holds the JSON type found.
    #[error("managedFields must be a list, not {0}")]
    NotAList(&'static str),
    /// The entry with this index is not an object, or a member of it is not a string.
    #[error("entry {0} is malformed")]
    Malformed(usize),
    /// The operation of an entry is unknown.
    #[error("operation must be `Apply` or `Update`")]
    Operation,
    /// An entry has no `apiVersion`.
    #[error("apiVersion must not be empty")]
    ApiVersion,
    /// The entry with this index has no `fieldsType`.
    #[error("missing fieldsType in managed fields entry {0}")]
    MissingFieldsType(usize),
    /// The entry with this index has an unknown `fieldsType`, which follows.
    #[error("invalid fieldsType {1} in managed fields entry {0}")]
    FieldsType(usize, String),
    /// The fields of the entry with this index cannot be parsed.
    #[error("error decoding set of entry {0}")]
    Fields(usize, #[source] FieldsError),
}

/// How a manager got its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// By server-side apply.
    Apply,
    /// By any other write.
    Update,
}

impl Operation {
    /// Returns the text in the entry.
    pub fn as_str(self) -> &'static str {
        match self {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        }
    }
}

/// The fields of one manager.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The manager's name.
    pub manager: Str,
    /// Whether the manager applied the fields or wrote them otherwise.
    pub operation: Operation,
    /// The version of the fields.
    pub api_version: Str,
    /// The subresource; empty for the object itself.
    pub subresource: Str,
    /// The time of the manager's last change.
    pub time: Option<Str>,
    /// The fields that the manager owns.
    pub fields: FieldSet,
}

impl Entry {
    /// Returns whether both entries have one manager: an applier has one entry regardless of the
    /// version.
    pub fn same_identity(&self, other: &Entry) -> bool {
        self.operation == other.operation
            && self.manager == other.manager
            && self.subresource == other.subresource
            && (self.operation == Operation::Apply || self.api_version == other.api_version)
    }

    /// Compares entries in the order of the list.
    pub(super) fn order(&self, other: &Entry) -> Ordering {
        // Times are in UTC and of one width; a missing time is the oldest.
        (
            self.operation,
            &self.time,
            &self.manager,
            &self.api_version,
            &self.subresource,
        )
            .cmp(&(
                other.operation,
                &other.time,
                &other.manager,
                &other.api_version,
                &other.subresource,
            ))
    }

    /// Compares entries in the order of conflicts; entries with one identity are neighbours.
    pub(crate) fn identity_order(&self, other: &Entry) -> Ordering {
        let version = |entry: &'_ Entry| match entry.operation {
            Operation::Apply => Str::default(),
            Operation::Update => entry.api_version.clone(),
        };
        (&self.manager, self.operation)
            .cmp(&(&other.manager, other.operation))
            .then_with(|| version(self).cmp(&version(other)))
            .then_with(|| self.subresource.cmp(&other.subresource))
    }

    pub(super) fn parse(index: usize, entry: &Value) -> Result<Entry, ManagedError> {
        let members = entry.as_object().ok_or(ManagedError::Malformed(index))?;
        let text = |name: &str| match members.get(name) {
            None | Some(Value::Null) => Ok(""),
            Some(Value::String(text)) => Ok(text.as_str()),
            Some(_) => Err(ManagedError::Malformed(index)),
        };
        let operation = match text("operation")? {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return Err(ManagedError::Operation),
        };
        let api_version = text("apiVersion")?;
        if api_version.is_empty() {
            return Err(ManagedError::ApiVersion);
        }
        match text("fieldsType")? {
            "FieldsV1" => {}
            "" => return Err(ManagedError::MissingFieldsType(index)),
            other => return Err(ManagedError::FieldsType(index, go_quote(other))),
        }
        let time = match text("time")? {
            "" => None,
            text => Some(super::times::whole_seconds(text).ok_or(ManagedError::Malformed(index))?),
        };
        let fields = members.get("fieldsV1").unwrap_or(&Value::Null);
        Ok(Entry {
            manager: text("manager")?.into(),
            operation,
            api_version: api_version.into(),
            subresource: text("subresource")?.into(),
            time,
            fields: FieldSet::parse(fields).map_err(|error| ManagedError::Fields(index, error))?,
        })
    }

    pub(super) fn trusted(entry: Value) -> Entry {
        let Value::Object(mut members) = entry else {
            return Entry::trusted(Value::object());
        };
        let mut text = |name: &str| match members.remove(name) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        Entry {
            manager: text("manager").unwrap_or_default(),
            operation: match text("operation").as_deref() {
                Some("Apply") => Operation::Apply,
                _ => Operation::Update,
            },
            api_version: text("apiVersion").unwrap_or_default(),
            subresource: text("subresource").unwrap_or_default(),
            time: text("time"),
            fields: FieldSet::trusted(members.remove("fieldsV1").unwrap_or_default()),
        }
    }

    pub(super) fn into_value(self) -> Value {
        let mut members = Vec::with_capacity(7);
        let mut add =
            |name: &'static str, value: Value| members.push((Str::const_new(name), value));
        // In the order of the names, so that no sorting is needed.
        add("apiVersion", Value::String(self.api_version));
        add("fieldsType", Value::string("FieldsV1"));
        add("fieldsV1", self.fields.into_value());
        if !self.manager.is_empty() {
            add("manager", Value::String(self.manager));
        }
        add("operation", Value::string(self.operation.as_str()));
        if !self.subresource.is_empty() {
            add("subresource", Value::String(self.subresource));
        }
        if let Some(time) = self.time {
            add("time", Value::String(time));
        }
        Value::Object(Map::from_unsorted(members))
    }
}
