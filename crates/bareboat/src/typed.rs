//! Kinds from Rust structs: serde gives the fields, schemars the schema, `From` the conversion.

mod behaviour;
mod carry;
#[cfg(feature = "expressions")]
mod rules;
mod shape;
mod structural;

use bareboat_api::jsonpath::{JsonPath, PathError};
use bareboat_api::kind::{
    Column, Conversion, ConvertError, Generation, Kind, Names, Now, OnGet, Policy, ReadFilter,
    Scope, Search, SelectableField, Strategy, Subresource, Verbs, Version,
};
use bareboat_api::value::{from_value, to_value};
use bareboat_api::{Str, Value};
pub use behaviour::ActionCall;
use behaviour::{Behaviour, VersionCheck};
use carry::carry;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use shape::TypedShape;
use std::collections::HashMap;
use std::sync::Arc;

/// Members that every object has in addition to those of its struct.
const COMMON: [&str; 3] = ["apiVersion", "kind", "metadata"];

type Convert = Arc<dyn Fn(&Value) -> Result<Value, String> + Send + Sync>;

/// Why a kind is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TypedKindError {
    /// A kind needs a version.
    #[error("the kind has no version")]
    NoVersion,
    /// Two versions have the same name.
    #[error("the version {0} is given twice")]
    TwoVersions(String),
    /// A stored, converted or described version does not exist.
    #[error("the version {0} does not exist")]
    UnknownVersion(String),
    /// A column or selectable field comes before the first version.
    #[error("{0} belongs to a version, but there is no version yet")]
    BeforeVersions(String),
    /// A CEL rule is invalid.
    #[error("the rule {rule:?} is invalid: {why}")]
    Rule {
        /// The expression.
        rule: String,
        /// Why it is invalid.
        why: String,
    },
    /// The schema of a type has something that this build cannot check.
    #[error("the schema of {of} cannot be used")]
    Schema {
        /// The version, or the kind of an action.
        of: String,
        /// What it has.
        source: bareboat_schema::SchemaError,
    },
    /// The path of a column is invalid.
    #[error("the path of the column {column} is invalid")]
    Column {
        /// The heading of the column.
        column: String,
        /// Why the path is invalid.
        source: PathError,
    },
}

/// A builder for a kind, with one struct per version.
///
/// A struct describes an object without `apiVersion`, `kind` and `metadata`: usually `spec` and `status`. The first
/// version is preferred. It is also stored, unless [`TypedKind::stored_in`] names another.
///
/// ```
/// use bareboat::prelude::*;
///
/// #[derive(Serialize, Deserialize, JsonSchema)]
/// struct BoatV1 {
///     spec: SpecV1,
/// }
/// #[derive(Serialize, Deserialize, JsonSchema)]
/// struct SpecV1 {
///     feet: u32,
/// }
/// #[derive(Serialize, Deserialize, JsonSchema)]
/// struct BoatV2 {
///     spec: SpecV2,
/// }
/// #[derive(Serialize, Deserialize, JsonSchema)]
/// struct SpecV2 {
///     /// Its length.
///     inches: u32,
/// }
/// impl From<BoatV1> for BoatV2 {
///     fn from(v1: BoatV1) -> BoatV2 {
///         BoatV2 { spec: SpecV2 { inches: v1.spec.feet * 12 } }
///     }
/// }
/// impl From<BoatV2> for BoatV1 {
///     fn from(v2: BoatV2) -> BoatV1 {
///         BoatV1 { spec: SpecV1 { feet: v2.spec.inches / 12 } }
///     }
/// }
///
/// # fn main() -> Result<(), bareboat::TypedKindError> {
/// let boats = TypedKind::new("sea.example.com", "boats", "Boat")
///     .cluster_scoped()
///     .short_name("bo")
///     .version::<BoatV2>("v2")
///     .column("Inches", ".spec.inches")
///     .version::<BoatV1>("v1")
///     .convert::<BoatV1, BoatV2>("v1", "v2")
///     .stored_in("v2")
///     .build()?;
/// assert_eq!(boats.storage_api_version, "sea.example.com/v2");
/// # Ok(()) }
/// ```
pub struct TypedKind {
    group: String,
    names: Names,
    scope: Scope,
    versions: Vec<Version>,
    /// The schemas of the versions, to which rules are added.
    schemas: Vec<Value>,
    checks: Vec<VersionCheck>,
    reader: Option<Arc<dyn ReadFilter>>,
    searches: Vec<Search>,
    on_get: Option<OnGet>,
    verbs: Option<Verbs>,
    stored: Option<String>,
    conversions: HashMap<(String, String), Convert>,
    strategy: Option<Arc<dyn Strategy>>,
    /// The first error; [`TypedKind::build`] returns it.
    fault: Option<TypedKindError>,
}

bareboat_api::opaque_debug!(TypedKind);

impl TypedKind {
    /// Starts a namespaced kind without versions.
    pub fn new(group: &str, plural: &str, kind: &str) -> TypedKind {
        TypedKind {
            group: group.to_owned(),
            names: Names::new(plural, kind),
            scope: Scope::Namespaced,
            versions: Vec::new(),
            schemas: Vec::new(),
            checks: Vec::new(),
            reader: None,
            searches: Vec::new(),
            on_get: None,
            verbs: None,
            stored: None,
            conversions: HashMap::new(),
            strategy: None,
            fault: None,
        }
    }

    /// Makes the kind cluster-scoped.
    #[must_use]
    pub fn cluster_scoped(mut self) -> TypedKind {
        self.scope = Scope::Cluster;
        self
    }

    /// Adds a short name.
    #[must_use]
    pub fn short_name(mut self, name: &str) -> TypedKind {
        self.names.short.push(Str::new(name));
        self
    }

    /// Adds a category, such as `all`.
    #[must_use]
    pub fn category(mut self, name: &str) -> TypedKind {
        self.names.categories.push(Str::new(name));
        self
    }

    /// Adds a version with objects of type `T`. If `T` has a `status`, the version gets a status subresource.
    #[must_use]
    pub fn version<T: JsonSchema + Serialize + DeserializeOwned>(self, name: &str) -> TypedKind {
        self.add_version(name, structural::schema_of::<T>())
    }

    /// Adds a version with objects of any form.
    #[must_use]
    pub fn untyped_version(self, name: &str) -> TypedKind {
        let any =
            bareboat_api::value!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        self.add_version(name, any)
    }

    fn add_version(mut self, name: &str, schema: Value) -> TypedKind {
        if self.versions.iter().any(|version| version.name == name) {
            self.fail(TypedKindError::TwoVersions(name.to_owned()));
        }
        let has_status = schema.at(&["properties", "status"]).is_some();
        let mut shape = TypedShape::new(schema.clone());
        if let Some(source) = shape.take_fault() {
            let of = format!("version {name}");
            self.fail(TypedKindError::Schema { of, source });
        }
        self.schemas.push(schema);
        self.versions.push(Version {
            name: Str::new(name),
            served: true,
            deprecation: None,
            shape: Arc::new(shape),
            columns: Arc::new([Column::age().typed("date")]),
            subresources: if has_status {
                vec![Subresource::status()]
            } else {
                Vec::new()
            },
            selectable: Vec::new(),
        });
        self
    }

    /// Adds a column to the last version: a heading and a JSONPath such as `.spec.image`.
    #[must_use]
    pub fn column(mut self, name: &str, path: &str) -> TypedKind {
        let path = match JsonPath::compile(path) {
            Ok(path) => path,
            Err(source) => {
                let column = name.to_owned();
                self.fail(TypedKindError::Column { column, source });
                return self;
            }
        };
        let cell = move |object: &Value, _: Now| path.first(object).cloned().unwrap_or_default();
        self.with_column(Column::string(name, cell))
    }

    /// Adds a computed column to the last version.
    #[must_use]
    pub fn with_column(mut self, column: Column) -> TypedKind {
        if let Some(version) = self.versions.last_mut() {
            // `Age` remains the last column.
            let mut columns: Vec<Column> = version.columns.to_vec();
            columns.insert(columns.len().saturating_sub(1), column);
            version.columns = columns.into();
        } else {
            self.fail(TypedKindError::BeforeVersions("a column".to_owned()));
        }
        self
    }

    /// Adds a field selector such as `spec.image` to the last version.
    #[must_use]
    pub fn selectable(mut self, field: &str) -> TypedKind {
        if let Some(version) = self.versions.last_mut() {
            version.selectable.push(SelectableField::at_path(field));
        } else {
            self.fail(TypedKindError::BeforeVersions(format!("the field {field}")));
        }
        self
    }

    /// Sets the storage version.
    #[must_use]
    pub fn stored_in(mut self, version: &str) -> TypedKind {
        self.stored = Some(version.to_owned());
        self
    }

    /// Converts between two versions by `From` in both directions.
    ///
    /// A write in one version keeps the fields that only the other version has: it changes the stored object and does
    /// not replace it.
    #[must_use]
    pub fn convert<A, B>(self, a: &str, b: &str) -> TypedKind
    where
        A: Serialize + DeserializeOwned + From<B> + 'static,
        B: Serialize + DeserializeOwned + From<A> + 'static,
    {
        self.one_way::<A, B>(a, b).one_way::<B, A>(b, a)
    }

    fn one_way<A, B>(mut self, from: &str, to: &str) -> TypedKind
    where
        A: DeserializeOwned + 'static,
        B: Serialize + From<A> + 'static,
    {
        let convert = |value: &Value| {
            let own: A = from_value(value).map_err(|error| error.to_string())?;
            to_value(&B::from(own)).map_err(|error| error.to_string())
        };
        self.conversions
            .insert((from.to_owned(), to.to_owned()), Arc::new(convert));
        self
    }

    /// Sets the strategy.
    #[must_use]
    pub fn strategy(mut self, strategy: impl Strategy + 'static) -> TypedKind {
        self.strategy = Some(Arc::new(strategy));
        self
    }

    /// Records the first error.
    fn fail(&mut self, fault: TypedKindError) {
        self.fault.get_or_insert(fault);
    }

    fn check(&self) -> Result<(), TypedKindError> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        if self.versions.is_empty() {
            return Err(TypedKindError::NoVersion);
        }
        let converted = self.conversions.keys().flat_map(|(from, to)| [from, to]);
        let mut named = self.stored.iter().chain(converted);
        let known = |name: &String| self.versions.iter().any(|version| version.name == *name);
        match named.find(|name| !known(name)) {
            Some(name) => Err(TypedKindError::UnknownVersion(name.clone())),
            None => Ok(()),
        }
    }

    /// Builds the kind, or returns the first error.
    pub fn build(self) -> Result<Kind, TypedKindError> {
        self.check()?;
        let mut kind = Kind::new(&self.group, self.names, self.scope);
        let has_status = self.versions.iter().any(Version::has_status);
        for version in self.versions {
            kind = kind.with_version(version);
        }
        if let Some(stored) = &self.stored {
            kind.storage_api_version = kind.api_version(stored);
        }
        kind = kind.into_custom();
        kind.policy = Policy {
            slow_conversion: true,
            generation: if has_status {
                Generation::OutsideStatus
            } else {
                Generation::OutsideMetadata
            },
            status_keeps_metadata: false,
            ..Policy::default()
        };
        let behaviour = Behaviour {
            strategy: self.strategy,
            checks: self.checks,
            verbs: self.verbs,
            reader: self.reader,
            searches: self.searches,
            on_get: self.on_get,
        };
        TypedKind::add_behaviour(&mut kind, behaviour, &self.conversions);
        if !self.conversions.is_empty() {
            kind.conversion = conversion(self.group, self.conversions);
        }
        Ok(kind)
    }
}

fn conversion(group: String, conversions: HashMap<(String, String), Convert>) -> Conversion {
    let version_of = move |api_version: &str| -> String {
        api_version
            .strip_prefix(&group)
            .and_then(|rest| rest.strip_prefix('/'))
            .unwrap_or(api_version)
            .to_owned()
    };
    Conversion::Pure(Arc::new(move |object, to, live| {
        let from = object
            .get("apiVersion")
            .and_then(Value::as_str)
            .map_or_else(String::new, &version_of);
        let to = version_of(to);
        let convert = |value: &Value, from: &str, to: &str| {
            let known = conversions.get(&(from.to_owned(), to.to_owned()));
            let convert = known.ok_or_else(|| {
                ConvertError(format!("no conversion from {from} to {to} was declared"))
            })?;
            let mut converted = convert(&own_part(value))
                .map_err(|why| ConvertError(format!("conversion from {from} to {to}: {why}")))?;
            drop_nulls(&mut converted);
            Ok(converted)
        };
        let mut converted = convert(&object, &from, &to)?;
        if let Some(live) = live {
            let before = convert(&convert(live, &to, &from)?, &from, &to)?;
            converted = carry(&own_part(live), &before, converted);
        }
        for key in COMMON {
            if let Some(value) = object.get(key) {
                converted.make_object().insert(key, value.clone());
            }
        }
        Ok(converted)
    }))
}

/// Returns the part of an object that its struct describes.
fn own_part(object: &Value) -> Value {
    let mut own = object.clone();
    for key in COMMON {
        own.make_object().remove(key);
    }
    own
}

/// Removes nulls: an absent `Option` serializes as null, but API objects omit it.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, member| !member.is_null());
            map.iter_mut().for_each(|(_, member)| drop_nulls(member));
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
