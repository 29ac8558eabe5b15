//! CustomResourceDefinitions: parsing, validation, defaults and status.
//!
//! Pure functions over the object. The server stores it and serves its kind; controllers delete its
//! instances.

mod approval;
mod beta;
mod conversion;
mod convert;
mod defaults;
mod expressions;
mod keywords;
mod lists;
mod parts;
mod patterns;
mod props;
mod reconcile;
mod selectable;
mod structural;
mod validate;
mod version;
mod warnings;

pub use approval::{ANNOTATION as APPROVAL_ANNOTATION, is_protected};
pub use beta::advise_v1beta1;
pub use convert::{ANNOTATION as CONVERSION_ANNOTATION, Conversions};
pub use reconcile::{Condition, Taken, reconcile, set_condition};
pub use validate::{validate_create, validate_status, validate_update};
pub use version::{PrinterColumn, Version, compare_versions};
pub use warnings::warnings;

pub use crate::client::{Target, check as check_client_config};
pub use crate::shape::{CustomShape, SchemaText};
use crate::{Schema, SchemaCache};
use bareboat_api::kind::{Names, Scope};
use bareboat_api::{Map, Str, Value};
use std::cmp::Ordering;

/// A parsed definition, as the server needs it; schemas stay in the object.
#[derive(Clone, Debug)]
pub struct Definition {
    /// `plural.group`.
    pub name: Str,
    /// The API group.
    pub group: Str,
    /// Whether objects are in namespaces.
    pub scope: Scope,
    /// The requested names, `spec.names`.
    pub names: Names,
    /// The accepted names, `status.acceptedNames`.
    pub accepted: Names,
    /// The versions in the order of the definition.
    pub versions: Vec<Version>,
    /// How objects are converted between versions.
    pub conversion: Conversion,
    /// Whether pruning is off; only old definitions may have this.
    pub preserve_unknown_fields: bool,
    /// Versions in which objects may be stored.
    pub stored_versions: Vec<Str>,
    /// Whether the condition `Established` is true.
    pub established: bool,
    /// Whether the condition `NamesAccepted` is true.
    pub names_accepted: bool,
    /// Condition `Terminating`: instances are being deleted and none may be created.
    pub terminating: bool,
}

/// How objects are converted between versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conversion {
    /// Only `apiVersion` changes.
    None,
    /// A webhook converts objects.
    Webhook(Webhook),
    /// CEL expressions in an annotation of the definition convert: [`Conversions`].
    Declared,
}

/// A webhook that converts objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// The address of the webhook.
    pub target: Target,
    /// The CA bundle in base64, as in the definition; empty for the system roots.
    pub ca_bundle: String,
    /// The ConversionReview versions it supports, the preferred one first.
    pub review_versions: Vec<Str>,
}

impl Definition {
    /// Parses a definition; malformed parts count as absent.
    pub fn parse(crd: &Value) -> Definition {
        let text = |path: &[&str]| crd.at(path).and_then(Value::as_str).unwrap_or("");
        let scope = match text(&["spec", "scope"]) {
            "Namespaced" => Scope::Namespaced,
            _ => Scope::Cluster,
        };
        Definition {
            name: Str::new(text(&["metadata", "name"])),
            group: Str::new(text(&["spec", "group"])),
            scope,
            names: read_names(crd.at(&["spec", "names"])),
            accepted: read_names(crd.at(&["status", "acceptedNames"])),
            versions: validate::versions(crd).iter().map(Version::parse).collect(),
            conversion: match read_conversion(crd.at(&["spec", "conversion"])) {
                Conversion::None if convert::declaration(crd).is_some() => Conversion::Declared,
                other => other,
            },
            preserve_unknown_fields: crd.at(&["spec", "preserveUnknownFields"])
                == Some(&Value::Bool(true)),
            stored_versions: strings(crd.at(&["status", "storedVersions"])),
            established: is_condition_true(crd, "Established"),
            names_accepted: is_condition_true(crd, "NamesAccepted"),
            // Its objects are being deleted; no new ones may be created until the definition is
            // gone.
            terminating: is_condition_true(crd, "Terminating")
                || crd.at(&["metadata", "deletionTimestamp"]).is_some(),
        }
    }

    /// Returns the version with that name.
    pub fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|version| version.name == name)
    }

    /// Returns the version that objects are stored in.
    pub fn storage_version(&self) -> Option<&Version> {
        self.versions.iter().find(|version| version.storage)
    }

    /// Returns the served versions, the preferred one first.
    pub fn served_versions(&self) -> Vec<&Version> {
        let mut served: Vec<&Version> = self.versions.iter().filter(|v| v.served).collect();
        served.sort_by(|a, b| compare_versions(&b.name, &a.name));
        served
    }

    /// Returns the warning sent with every answer for a deprecated version.
    pub fn deprecation_warning(&self, name: &str) -> Option<String> {
        self.deprecation_of(self.version(name)?, self.recommended())
    }

    /// Returns the preferred one of the served versions that are not deprecated.
    pub fn recommended(&self) -> Option<&Version> {
        let fresh = self.versions.iter().filter(|v| v.served && !v.deprecated);
        fresh.reduce(
            |best, other| match compare_versions(&other.name, &best.name) {
                Ordering::Greater => other,
                _ => best,
            },
        )
    }

    /// Returns the warning for a deprecated version, which names the recommended one if that is newer.
    pub fn deprecation_of(
        &self,
        version: &Version,
        recommended: Option<&Version>,
    ) -> Option<String> {
        if !version.deprecated {
            return None;
        }
        if let Some(text) = &version.deprecation_warning {
            return Some(text.to_string());
        }
        let (group, kind, name) = (&self.group, &self.accepted.kind, &version.name);
        let better =
            recommended.filter(|other| compare_versions(&other.name, name) == Ordering::Greater);
        Some(match better {
            Some(better) => format!(
                "{group}/{name} {kind} is deprecated; use {group}/{} {kind}",
                better.name
            ),
            None => format!("{group}/{name} {kind} is deprecated"),
        })
    }
}

/// Returns the schema of a version inside its definition.
pub fn schema_of<'v>(crd: &'v Value, version: &str) -> Option<&'v Value> {
    validate::versions(crd)
        .iter()
        .find(|found| found.get("name").and_then(Value::as_str) == Some(version))?
        .at(&["schema", "openAPIV3Schema"])
}

/// Returns the schema of each version, in the order of [`Definition::versions`].
pub fn schemas_of(crd: &Value) -> impl Iterator<Item = Option<&Value>> {
    let versions = validate::versions(crd).iter();
    versions.map(|version| version.at(&["schema", "openAPIV3Schema"]))
}

/// Compiles the schema of a version; a version without one allows any object.
pub fn compile(crd: &Value, version: &str, cache: &SchemaCache) -> Schema {
    let bare = || {
        let mut map = Map::new();
        map.insert("type", Value::string("object"));
        cache
            .parse(&Value::Object(map))
            .expect("a schema of one keyword is not deep")
    };
    schema_of(crd, version).map_or_else(bare, |schema| {
        cache.parse(schema).unwrap_or_else(|_| bare())
    })
}

/// Fills in the defaults of a definition.
pub fn default(crd: &mut Value) {
    let Some(spec) = crd.as_object_mut().and_then(|map| map.get_mut("spec")) else {
        return;
    };
    let Some(spec) = spec.as_object_mut() else {
        return;
    };
    if let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) {
        let kind = names.get_str("kind").unwrap_or("").to_owned();
        let missing = |names: &Map, key: &str| names.get_str(key).is_none_or(str::is_empty);
        if missing(names, "singular") {
            names.insert("singular", Value::string(kind.to_lowercase()));
        }
        if missing(names, "listKind") && !kind.is_empty() {
            names.insert("listKind", Value::string(format!("{kind}List")));
        }
    }
    if spec.get("conversion").is_none_or(Value::is_null) {
        let mut conversion = Map::new();
        conversion.insert("strategy", Value::string("None"));
        spec.insert("conversion", Value::Object(conversion));
    }
    if let Some(Value::Object(service)) = spec
        .get_mut("conversion")
        .and_then(|value| value.at_mut(&["webhook", "clientConfig", "service"]))
        && service.get("port").is_none_or(Value::is_null)
    {
        service.insert("port", Value::Int(443));
    }
    let storage = storage_name(crd);
    let stored = crd.at(&["status", "storedVersions"]);
    if let Some(name) = storage
        && stored
            .and_then(Value::as_array)
            .is_none_or(<[Value]>::is_empty)
        && let Some(map) = crd.as_object_mut()
    {
        map.object_mut("status")
            .insert("storedVersions", Value::Array(vec![Value::String(name)]));
    }
}

/// Prepares the status before a write of the definition itself: cleared on create, kept on update,
/// and in both cases including the storage version.
pub fn prepare(new: &mut Value, old: Option<&Value>) {
    let storage = storage_name(new);
    let Some(map) = new.as_object_mut() else {
        return;
    };
    let mut status = match old.and_then(|old| old.get("status")) {
        Some(Value::Object(status)) => status.clone(),
        _ => Map::new(),
    };
    if let Some(name) = storage {
        let name = Value::String(name);
        let stored = status.entry_or_insert_with("storedVersions", || Value::Array(Vec::new()));
        match stored {
            Value::Array(list) if list.contains(&name) => {}
            Value::Array(list) => list.push(name),
            other => *other = Value::Array(vec![name]),
        }
    }
    map.insert("status", Value::Object(status));
}

fn storage_name(crd: &Value) -> Option<Str> {
    validate::versions(crd)
        .iter()
        .find(|version| version.get("storage") == Some(&Value::Bool(true)))?
        .get("name")?
        .as_str()
        .map(Str::new)
}

/// Returns whether a condition is present and true.
pub fn is_condition_true(crd: &Value, kind: &str) -> bool {
    let conditions = crd.at(&["status", "conditions"]);
    let list = conditions.and_then(Value::as_array).unwrap_or(&[]);
    list.iter().any(|condition| {
        condition.get("type").and_then(Value::as_str) == Some(kind)
            && condition.get("status").and_then(Value::as_str) == Some("True")
    })
}

fn strings(value: Option<&Value>) -> Vec<Str> {
    let list = value.and_then(Value::as_array).unwrap_or(&[]);
    list.iter()
        .filter_map(Value::as_str)
        .map(Str::new)
        .collect()
}

fn read_names(value: Option<&Value>) -> Names {
    let text = |key: &str| {
        let found = value.and_then(|value| value.get(key));
        found
            .and_then(Value::as_str)
            .map(Str::new)
            .unwrap_or_default()
    };
    Names {
        plural: text("plural"),
        singular: text("singular"),
        kind: text("kind"),
        list_kind: text("listKind"),
        short: strings(value.and_then(|value| value.get("shortNames"))),
        categories: strings(value.and_then(|value| value.get("categories"))),
    }
}

fn read_conversion(value: Option<&Value>) -> Conversion {
    let Some(value) = value else {
        return Conversion::None;
    };
    let client = value.at(&["webhook", "clientConfig"]);
    let (Some("Webhook"), Some(client)) = (value.get("strategy").and_then(Value::as_str), client)
    else {
        return Conversion::None;
    };
    Conversion::Webhook(Webhook {
        target: Target::parse(client),
        ca_bundle: client
            .get("caBundle")
            .and_then(Value::as_str)
            .unwrap_or("")
            .to_owned(),
        review_versions: strings(value.at(&["webhook", "conversionReviewVersions"])),
    })
}

#[cfg(test)]
mod tests;
