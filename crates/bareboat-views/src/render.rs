//! Rows of the shelf as clients see them: versions, apiVersion, Secrets, forms of lists.

use crate::twins;
use crate::types::{Asked, converter};
use bareboat_api::kind::Now;
use bareboat_api::{Map, Object, Value, value};
use bareboat_server::request::negotiate::Transform;
use bareboat_server::tables::{self, Include};
use bareboat_shelf::{CLUSTER_ANNOTATION, Directory, Item, Narrow, VERSION_ANNOTATION};
use bytes::{Bytes, BytesMut};
use sha2::{Digest as _, Sha256};
use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::Arc;

/// The annotation with the events of an object.
pub(crate) const EVENTS_ANNOTATION: &str = "shadow.clusterpedia.io/events";

/// Which resourceVersion objects carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Versions {
    /// The counter of the fleet.
    Fleet,
    /// That of the member, so that clients can write what they read.
    Member,
}

/// How objects of one kind are shown.
#[derive(Clone)]
pub(crate) struct Renderer {
    pub(crate) asked: Asked,
    pub(crate) versions: Versions,
    pub(crate) transform: Transform,
    pub(crate) include: Include,
    pub(crate) only_metadata: bool,
    /// The members whose Secrets may be shown; empty for kinds that are no Secrets.
    pub(crate) shows_secrets: Arc<HashSet<String>>,
    /// For the hashes of values of Secrets.
    pub(crate) salt: Arc<[u8]>,
    pub(crate) now: Now,
}

impl Renderer {
    /// Returns whether rows are shown as their bytes, with only a version added.
    fn is_plain(&self, narrow: &Narrow, directory: &Directory) -> bool {
        self.transform == Transform::Whole
            && !self.only_metadata
            && !self.is_secret()
            && self.asked.is_stored(narrow, directory)
    }

    fn is_secret(&self) -> bool {
        self.asked.group.is_empty() && self.asked.resource == "secrets"
    }

    /// Returns the resourceVersion that a row is shown with.
    pub(crate) fn version(&self, narrow: &Narrow) -> String {
        match self.versions {
            Versions::Fleet => narrow.rev.to_string(),
            Versions::Member => narrow.member_version.clone(),
        }
    }

    /// Returns an object as JSON, in the form that was negotiated.
    pub(crate) fn bytes(&self, item: &Item, directory: &Directory, events: Option<Value>) -> Bytes {
        let mut out = BytesMut::new();
        self.write(item, directory, events, &mut out);
        out.freeze()
    }

    /// Writes an object as JSON, in the form that was negotiated.
    pub(crate) fn write(
        &self,
        item: &Item,
        directory: &Directory,
        events: Option<Value>,
        out: &mut BytesMut,
    ) {
        // A deletion that is replayed has no body.
        if events.is_none() && !item.body.is_empty() && self.is_plain(&item.narrow, directory) {
            return item.write_with_version(&self.version(&item.narrow), out);
        }
        let mut object = self.object(item, directory);
        if let Some(events) = events {
            annotate(&mut object, EVENTS_ANNOTATION, events);
        }
        let formed = self.formed(object, directory.member_name(item.narrow.member));
        out.extend_from_slice(&formed.to_json());
    }

    /// Returns a whole object.
    pub(crate) fn object(&self, item: &Item, directory: &Directory) -> Value {
        let version = self.version(&item.narrow);
        let mut object = item.value(&version);
        if item.body.is_empty() {
            object = self.buried(&item.narrow, directory);
        }
        if !self.asked.is_stored(&item.narrow, directory) {
            object = self.in_version(object);
        }
        if self.is_secret() {
            let member = directory.member_name(item.narrow.member);
            if !self.shows_secrets.contains(member) {
                self.mask(&mut object);
            }
        }
        if self.only_metadata {
            object
                .make_object()
                .retain(|key, _| matches!(key, "apiVersion" | "kind" | "metadata"));
        }
        object
    }

    /// Returns an object in the version that is asked for.
    fn in_version(&self, mut object: Value) -> Value {
        let asked = &self.asked;
        let to = asked.api_version();
        let convert = converter(&asked.group, &asked.resource, &asked.version)
            .or_else(|| twins::converter(&asked.group, &asked.resource, &asked.version));
        if let Some(convert) = convert
            && let Ok(converted) = convert(object.clone(), &to, None)
        {
            return converted;
        }
        object.make_object().insert("apiVersion", Value::string(to));
        object
    }

    /// Returns an object in the negotiated form; for tables, its row.
    pub(crate) fn formed(&self, object: Value, member: &str) -> Value {
        let object = Object::try_from(object).unwrap_or_default();
        match self.transform {
            Transform::Whole => object.into(),
            Transform::Metadata { beta } => tables::partial(&object, beta),
            Transform::Table { beta } => self.row(object, member, beta),
        }
    }

    fn row(&self, object: Object, member: &str, beta: bool) -> Value {
        let (kind, columns) = (&self.asked.printer, &self.asked.columns);
        let mut row = tables::row(kind, columns, object, self.include, beta, self.now);
        let cells = row.at_mut(&["cells"]).and_then(Value::as_array_mut);
        if let Some(cells) = cells {
            cells.insert(0, Value::string(member));
            cells.iter_mut().for_each(clean);
        }
        row
    }

    /// Returns the definitions of the columns.
    pub(crate) fn columns(&self) -> Value {
        let mut columns = tables::definitions(&self.asked.columns);
        if let Some(columns) = columns.as_array_mut() {
            columns.insert(0, cluster_column());
        }
        columns
    }

    /// Returns what is left of a deleted object whose body is gone.
    fn buried(&self, narrow: &Narrow, directory: &Directory) -> Value {
        let labels = bareboat_wire::json::parse(narrow.labels.as_bytes());
        let mut metadata = value!({
            "name": (narrow.name.as_str()), "uid": (narrow.uid.as_str()),
            "creationTimestamp": (crate::times::print(narrow.created * 1000)),
            "resourceVersion": (self.version(narrow)),
            "annotations": {
                CLUSTER_ANNOTATION: (directory.member_name(narrow.member)),
                VERSION_ANNOTATION: (narrow.member_version.as_str()),
            },
        });
        let map = metadata.make_object();
        if !narrow.namespace.is_empty() {
            map.insert("namespace", Value::string(&narrow.namespace));
        }
        if let Ok(labels) = labels {
            map.insert("labels", labels.value);
        }
        value!({
            "apiVersion": (self.asked.api_version()), "kind": (self.asked.kind.as_str()),
            "metadata": (metadata),
        })
    }

    /// Replaces the values of a Secret by hashes.
    fn mask(&self, secret: &mut Value) {
        for part in ["data", "stringData"] {
            let Some(Value::Object(data)) = secret.at_mut(&[part]) else {
                continue;
            };
            for (_, value) in data.iter_mut() {
                let text = value.as_str().unwrap_or("");
                if text.starts_with("sha256:") {
                    continue;
                }
                let mut digest = Sha256::new();
                digest.update(&self.salt);
                digest.update(text.as_bytes());
                let mut shown = String::from("sha256:");
                for byte in digest.finalize() {
                    let _ = write!(shown, "{byte:02x}");
                }
                *value = Value::string(shown);
            }
        }
    }
}

/// The first column of all tables.
pub(crate) fn cluster_column() -> Value {
    value!({
        "name": "Cluster", "type": "string", "format": "",
        "description": "The cluster that has the object.", "priority": 0,
    })
}

/// Replaces control characters, which could move the cursor of a terminal.
fn clean(cell: &mut Value) {
    if let Some(text) = cell.as_str()
        && text.contains(char::is_control)
    {
        *cell = Value::string(text.replace(char::is_control, " "));
    }
}

/// Adds an annotation with a value as JSON.
fn annotate(object: &mut Value, key: &str, value: Value) {
    let text = String::from_utf8(value.to_json()).unwrap_or_default();
    if let Some(metadata) = object.at_mut(&["metadata"]).and_then(Value::as_object_mut) {
        metadata
            .object_mut("annotations")
            .insert(key, Value::string(text));
    }
}

/// The parts of a list around its items.
pub(crate) struct Envelope {
    pub(crate) head: Vec<u8>,
    pub(crate) tail: &'static [u8],
}

impl Renderer {
    /// Returns the parts of a list around its items.
    pub(crate) fn envelope(&self, metadata: &Map) -> Envelope {
        let metadata = Value::Object(metadata.clone());
        let (mut document, last) = match self.transform {
            Transform::Table { beta } => (
                value!({
                    "kind": "Table", "apiVersion": (tables::meta_version(beta)),
                    "metadata": (metadata), "columnDefinitions": (self.columns()),
                }),
                "rows",
            ),
            Transform::Metadata { beta } => (
                value!({
                    "kind": "PartialObjectMetadataList",
                    "apiVersion": (tables::meta_version(beta)), "metadata": (metadata),
                }),
                "items",
            ),
            Transform::Whole => (
                value!({
                    "kind": (format!("{}List", self.asked.kind)),
                    "apiVersion": (self.asked.api_version()), "metadata": (metadata),
                }),
                "items",
            ),
        };
        let mut head = document.take().to_json();
        head.pop();
        head.extend_from_slice(format!(",\"{last}\":[").as_bytes());
        Envelope { head, tail: b"]}" }
    }
}
