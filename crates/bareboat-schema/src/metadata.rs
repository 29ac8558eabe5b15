//! Normalises the metadata of objects and of embedded resources: drops unknown members; rejects
//! wrong types in requests and drops them from stored objects.
//!
//! This module does not validate names, labels and annotations. `validate` does that for embedded
//! resources, the server for the object itself.

mod embedded;

use crate::schema::{Flags, Node, Schema};
use bareboat_api::time::Timestamp;
use bareboat_api::{FieldPath, Map, Str, Value, value};
use std::sync::LazyLock;

/// The origin of an object, which decides how strictly its metadata is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Sent by a client: wrong types are errors.
    Request,
    /// Read from storage, perhaps written by an older server: wrong types are dropped, a missing
    /// generation is 1.
    Stored,
}

/// The error of a metadata member with the wrong type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetadataError {
    /// In the metadata of the object itself.
    #[error("{path}: expected {expected}, found {found}")]
    Own {
        /// The path of the member.
        path: FieldPath,
        /// The expected type.
        expected: &'static str,
        /// The JSON type found.
        found: &'static str,
    },
    /// In an embedded resource, with upstream's text.
    #[error("{0}")]
    Embedded(Box<str>),
}

impl Schema {
    /// Normalises an object by its schema: drops unknown metadata and unknown members (and collects
    /// their paths), and drops nulls that are not allowed.
    ///
    /// Defaults are a separate step, [`Schema::default`].
    pub fn coerce(
        &self,
        object: &mut Value,
        source: Source,
        mut unknown: Option<&mut Vec<String>>,
    ) -> Result<(), MetadataError> {
        own_metadata(object, source, unknown.as_deref_mut())?;
        if let Some(unknown) = unknown.as_deref_mut() {
            let mut pruned = Vec::new();
            self.prune(object, Some(&mut pruned));
            unknown.append(&mut pruned);
        } else {
            self.prune(object, None);
        }
        self.drop_nulls(object);
        self.embedded_metadata(object, source, unknown)
    }

    /// Normalises the metadata of the object and of every embedded resource.
    pub fn coerce_metadata(
        &self,
        object: &mut Value,
        source: Source,
        mut unknown: Option<&mut Vec<String>>,
    ) -> Result<(), MetadataError> {
        own_metadata(object, source, unknown.as_deref_mut())?;
        self.embedded_metadata(object, source, unknown)
    }

    /// Normalises the metadata of every embedded resource.
    fn embedded_metadata(
        &self,
        object: &mut Value,
        source: Source,
        unknown: Option<&mut Vec<String>>,
    ) -> Result<(), MetadataError> {
        if !self.root.has(Flags::EMBEDDED_BELOW) {
            return Ok(());
        }
        let mut found = Vec::new();
        let mut coercer = Coercer {
            drop: source == Source::Stored,
            unknown: unknown.is_some().then_some(&mut found),
        };
        coercer.below(object, &self.root, &FieldPath::root())?;
        if let Some(unknown) = unknown {
            unknown.append(&mut found);
        }
        Ok(())
    }
}

/// Drops unknown metadata members of the object itself (not of embedded resources). Wrong types,
/// also of `apiVersion` and `kind`, are errors in requests and dropped from stored objects; a
/// stored object without a generation gets 1.
fn own_metadata(
    object: &mut Value,
    source: Source,
    unknown: Option<&mut Vec<String>>,
) -> Result<(), MetadataError> {
    let Value::Object(map) = object else {
        return Ok(());
    };
    let mut coercer = Coercer {
        drop: source == Source::Stored,
        unknown,
    };
    coercer.resource(map, &FieldPath::root())?;
    if source == Source::Stored
        && let Some(Value::Object(meta)) = map.get_mut("metadata")
        && !meta.contains_key("generation")
    {
        meta.insert("generation", Value::Int(1));
    }
    Ok(())
}

/// Normalises the embedded resources of a default; reports dropped members.
pub(crate) fn coerce_embedded(
    value: &mut Value,
    node: &Node,
    resource: bool,
) -> Result<(), MetadataError> {
    let mut coercer = Coercer {
        drop: false,
        unknown: None,
    };
    if resource && let Value::Object(map) = value {
        coercer.resource(map, &FieldPath::root())?;
    }
    coercer.below(value, node, &FieldPath::root())
}

struct Coercer<'r> {
    drop: bool,
    unknown: Option<&'r mut Vec<String>>,
}

impl Coercer<'_> {
    /// Visits embedded resources; enters only branches that contain some.
    fn below(
        &mut self,
        value: &mut Value,
        node: &Node,
        path: &FieldPath,
    ) -> Result<(), MetadataError> {
        if !node.has(Flags::EMBEDDED_BELOW) {
            return Ok(());
        }
        match value {
            Value::Object(map) => {
                if node.has(Flags::EMBEDDED) {
                    let shaped = self.resource(map, path);
                    shaped.map_err(|error| embedded::worded(error, map, path))?;
                }
                let mut declared = node.in_order();
                for (name, member) in map.iter_mut() {
                    if let Some(property) = declared.property(name) {
                        self.below(member, property, &path.child(name))?;
                    } else if let Some(schema) = node.additional() {
                        self.below(member, schema, &path.key(name))?;
                    }
                }
            }
            Value::Array(list) => {
                if let Some(items) = &node.items {
                    for (index, item) in list.iter_mut().enumerate() {
                        self.below(item, items, &path.index(index))?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn resource(&mut self, map: &mut Map, path: &FieldPath) -> Result<(), MetadataError> {
        for key in ["apiVersion", "kind"] {
            let Some(value) = map.get(key) else { continue };
            if value.as_str().is_none() {
                if !self.drop {
                    return Err(wrong(path.child(key), "a string", value));
                }
                map.remove(key);
            }
        }
        let Some(meta) = map.get_mut("metadata") else {
            return Ok(());
        };
        if meta.is_null() {
            *meta = Value::object();
        }
        let path = || path.child("metadata");
        match meta {
            Value::Object(meta) => self.record(meta, META, &path),
            other if !self.drop => Err(wrong(path(), "an object", other)),
            _ => Ok(()),
        }
    }

    /// Normalises one record by its table of members. Every write comes here: a path is made only
    /// for an error.
    fn record(
        &mut self,
        map: &mut Map,
        members: &[(&str, MetadataType)],
        path: &dyn Fn() -> FieldPath,
    ) -> Result<(), MetadataError> {
        let mut failure = None;
        map.retain(|key, value| {
            if failure.is_some() {
                return true;
            }
            let Some((_, shape)) = members.iter().find(|(name, _)| *name == key) else {
                if let Some(unknown) = &mut self.unknown {
                    unknown.push(path().child(key).as_str().to_owned());
                }
                return false;
            };
            match self.shape(value, shape, &|| path().child(key)) {
                Ok(keep) => keep,
                Err(_) if self.drop => false,
                Err(error) => {
                    failure = Some(error);
                    true
                }
            }
        });
        failure.map_or(Ok(()), Err)
    }

    /// Normalises one member; returns `false` if it is empty and must be dropped.
    fn shape(
        &mut self,
        value: &mut Value,
        shape: &MetadataType,
        path: &dyn Fn() -> FieldPath,
    ) -> Result<bool, MetadataError> {
        if value.is_null() {
            return Ok(false);
        }
        match (shape, &mut *value) {
            (MetadataType::Text, Value::String(text)) => return Ok(!text.is_empty()),
            (MetadataType::Word, Value::String(_)) | (MetadataType::Truth, Value::Bool(_)) => {
                return Ok(true);
            }
            (MetadataType::Count, Value::Int(number)) => return Ok(*number != 0),
            (MetadataType::Seconds, Value::Int(_)) => return Ok(true),
            (MetadataType::Count | MetadataType::Seconds, Value::Float(_)) => {
                if let Some(number) = value.as_i64() {
                    *value = Value::Int(number);
                    return Ok(number != 0 || matches!(shape, MetadataType::Seconds));
                }
            }
            (MetadataType::Time, Value::String(text)) => {
                if let Some(time) = normal_time(text) {
                    *text = time;
                    return Ok(true);
                }
            }
            (MetadataType::Texts, Value::Object(map)) => {
                for (key, member) in map.iter_mut() {
                    self.text(member, || path().child(key))?;
                }
                return Ok(!map.is_empty());
            }
            (MetadataType::List, Value::Array(list)) => {
                for (index, item) in list.iter_mut().enumerate() {
                    self.text(item, || path().index(index))?;
                }
                return Ok(!list.is_empty());
            }
            (MetadataType::Records(members), Value::Array(list)) => {
                for (index, item) in list.iter_mut().enumerate() {
                    if item.is_null() {
                        *item = Value::object();
                    }
                    let path = || path().index(index);
                    match item {
                        Value::Object(map) => {
                            self.record(map, members, &path)?;
                            for (name, shape) in *members {
                                if matches!(shape, MetadataType::Word) && !map.contains_key(name) {
                                    map.insert(*name, Value::string(""));
                                }
                            }
                        }
                        other => return Err(wrong(path(), "an object", other)),
                    }
                }
                return Ok(!list.is_empty());
            }
            (MetadataType::Object, Value::Object(_)) => return Ok(true),
            _ => {}
        }
        Err(wrong(path(), shape.words(), value))
    }

    fn text(
        &mut self,
        value: &mut Value,
        path: impl FnOnce() -> FieldPath,
    ) -> Result<(), MetadataError> {
        match value {
            Value::String(_) => Ok(()),
            Value::Null => {
                *value = Value::string("");
                Ok(())
            }
            other => Err(wrong(path(), "a string", other)),
        }
    }
}

fn wrong(path: FieldPath, expected: &'static str, value: &Value) -> MetadataError {
    MetadataError::Own {
        path,
        expected,
        found: value.type_name(),
    }
}

/// Converts a time to UTC and whole seconds, the form used in metadata.
fn normal_time(text: &str) -> Option<Str> {
    let normal = text.len() == 20 && text.ends_with('Z') && text.as_bytes()[10] == b'T';
    let time = Timestamp::parse(text).ok()?;
    if normal {
        return Some(Str::new(text));
    }
    Some(time.print_seconds().into())
}

/// The type of a metadata member and whether its zero value is worth keeping.
enum MetadataType {
    /// A string that is dropped when empty.
    Text,
    /// A string that is always kept.
    Word,
    Truth,
    /// An integer that is dropped when zero.
    Count,
    /// An integer that may be zero.
    Seconds,
    Time,
    /// A map of strings.
    Texts,
    /// A list of strings.
    List,
    Records(&'static [(&'static str, MetadataType)]),
    Object,
}

impl MetadataType {
    fn words(&self) -> &'static str {
        match self {
            MetadataType::Text | MetadataType::Word => "a string",
            MetadataType::Truth => "a boolean",
            MetadataType::Count | MetadataType::Seconds => "an integer",
            MetadataType::Time => "a time as in RFC 3339",
            MetadataType::Texts => "a map of strings",
            MetadataType::List => "a list of strings",
            MetadataType::Records(_) => "a list of objects",
            MetadataType::Object => "an object",
        }
    }
}

const META: &[(&str, MetadataType)] = &[
    ("name", MetadataType::Text),
    ("generateName", MetadataType::Text),
    ("namespace", MetadataType::Text),
    ("selfLink", MetadataType::Text),
    ("uid", MetadataType::Text),
    ("resourceVersion", MetadataType::Text),
    ("generation", MetadataType::Count),
    ("creationTimestamp", MetadataType::Time),
    ("deletionTimestamp", MetadataType::Time),
    ("deletionGracePeriodSeconds", MetadataType::Seconds),
    ("labels", MetadataType::Texts),
    ("annotations", MetadataType::Texts),
    ("ownerReferences", MetadataType::Records(OWNER)),
    ("finalizers", MetadataType::List),
    ("managedFields", MetadataType::Records(MANAGED)),
];

const OWNER: &[(&str, MetadataType)] = &[
    ("apiVersion", MetadataType::Word),
    ("kind", MetadataType::Word),
    ("name", MetadataType::Word),
    ("uid", MetadataType::Word),
    ("controller", MetadataType::Truth),
    ("blockOwnerDeletion", MetadataType::Truth),
];

const MANAGED: &[(&str, MetadataType)] = &[
    ("manager", MetadataType::Text),
    ("operation", MetadataType::Text),
    ("apiVersion", MetadataType::Text),
    ("time", MetadataType::Time),
    ("fieldsType", MetadataType::Text),
    ("fieldsV1", MetadataType::Object),
    ("subresource", MetadataType::Text),
];

/// Returns the type of `metadata`, for merging custom resources.
pub fn object_meta() -> &'static Schema {
    static META: LazyLock<Schema> = LazyLock::new(|| {
        let text = value!({"type": "string"});
        let integer = value!({"type": "integer"});
        let texts = value!({"type": "object", "additionalProperties": {"type": "string"}});
        let mut properties = Map::new();
        for name in [
            "name",
            "generateName",
            "namespace",
            "selfLink",
            "uid",
            "resourceVersion",
            "creationTimestamp",
            "deletionTimestamp",
        ] {
            properties.insert(name, text.clone());
        }
        for name in ["generation", "deletionGracePeriodSeconds"] {
            properties.insert(name, integer.clone());
        }
        for name in ["labels", "annotations"] {
            properties.insert(name, texts.clone());
        }
        properties.insert(
            "finalizers",
            value!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
        );
        properties.insert(
            "ownerReferences",
            value!({
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["uid"],
                "items": {
                    "type": "object",
                    "x-kubernetes-map-type": "atomic",
                    "properties": {
                        "apiVersion": {"type": "string"},
                        "kind": {"type": "string"},
                        "name": {"type": "string"},
                        "uid": {"type": "string"},
                        "controller": {"type": "boolean"},
                        "blockOwnerDeletion": {"type": "boolean"}
                    }
                }
            }),
        );
        properties.insert(
            "managedFields",
            value!({"type": "array", "x-kubernetes-list-type": "atomic", "items": {
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": true
            }}),
        );
        let mut schema = Map::new();
        schema.insert("type", Value::string("object"));
        schema.insert("properties", Value::Object(properties));
        Schema::parse(&Value::Object(schema)).expect("the schema above is shallow")
    });
    &META
}

#[cfg(test)]
mod tests;
