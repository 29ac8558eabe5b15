//! Kinds from Rust structs: serde gives the form, schemars the schema, `From` the conversion.

mod carry;
mod shape;
mod structural;

use bareboat_api::jsonpath::JsonPath;
use bareboat_api::kind::{
    Column, Conversion, ConvertError, Generation, Kind, Names, Now, Policy, Scope, SelectableField,
    Strategy, Subresource, Version,
};
use bareboat_api::value::{from_value, to_value};
use bareboat_api::{Str, Value};
use carry::carry;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use shape::TypedShape;
use std::collections::HashMap;
use std::sync::Arc;

/// Members every object has beside those of its struct.
const COMMON: [&str; 3] = ["apiVersion", "kind", "metadata"];

type Convert = Arc<dyn Fn(&Value) -> Result<Value, String> + Send + Sync>;

/// A kind in the making, from one struct a version.
///
/// A struct describes an object without `apiVersion`, `kind` and `metadata`: mostly `spec` and
/// `status`. The first version given is preferred and, unless [`TypedKind::stored_in`] says
/// otherwise, stored.
pub struct TypedKind {
    group: String,
    names: Names,
    scope: Scope,
    versions: Vec<Version>,
    stored: Option<String>,
    conversions: HashMap<(String, String), Convert>,
    strategy: Option<Arc<dyn Strategy>>,
}

impl TypedKind {
    /// A namespaced kind without versions.
    pub fn new(group: &str, plural: &str, kind: &str) -> TypedKind {
        TypedKind {
            group: group.to_owned(),
            names: Names::new(plural, kind),
            scope: Scope::Namespaced,
            versions: Vec::new(),
            stored: None,
            conversions: HashMap::new(),
            strategy: None,
        }
    }

    /// Objects live in no namespace.
    #[must_use]
    pub fn cluster_scoped(mut self) -> TypedKind {
        self.scope = Scope::Cluster;
        self
    }

    /// A name for people in a hurry.
    #[must_use]
    pub fn short_name(mut self, name: &str) -> TypedKind {
        self.names.short.push(Str::new(name));
        self
    }

    /// A group of kinds it is listed with, such as `all`.
    #[must_use]
    pub fn category(mut self, name: &str) -> TypedKind {
        self.names.categories.push(Str::new(name));
        self
    }

    /// A version whose objects look like `T`. If `T` has a `status`, it is written apart.
    #[must_use]
    pub fn version<T: JsonSchema + Serialize + DeserializeOwned>(
        mut self,
        name: &str,
    ) -> TypedKind {
        let schema = structural::schema_of::<T>();
        let has_status = schema.at(&["properties", "status"]).is_some();
        self.versions.push(Version {
            name: Str::new(name),
            served: true,
            deprecation: None,
            shape: Arc::new(TypedShape::new(schema)),
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

    /// A column of the version given last: a heading and a JSONPath such as `.spec.image`.
    #[must_use]
    pub fn column(self, name: &str, path: &str) -> TypedKind {
        let compiled = JsonPath::compile(path).ok();
        let cell = move |object: &Value, _: Now| {
            let found = compiled.as_ref().and_then(|path| path.first(object));
            found.cloned().unwrap_or_default()
        };
        self.with_column(Column::string(name, cell))
    }

    /// A computed column of the version given last.
    #[must_use]
    pub fn with_column(mut self, column: Column) -> TypedKind {
        if let Some(version) = self.versions.last_mut() {
            // The age stays the last column.
            let mut columns: Vec<Column> = version.columns.to_vec();
            columns.insert(columns.len().saturating_sub(1), column);
            version.columns = columns.into();
        }
        self
    }

    /// Lets field selectors name a field of the version given last, such as `spec.image`.
    #[must_use]
    pub fn selectable(mut self, field: &str) -> TypedKind {
        if let Some(version) = self.versions.last_mut() {
            version.selectable.push(SelectableField::at_path(field));
        }
        self
    }

    /// Stores objects in this version.
    #[must_use]
    pub fn stored_in(mut self, version: &str) -> TypedKind {
        self.stored = Some(version.to_owned());
        self
    }

    /// Converts between two versions by `From` in both directions.
    ///
    /// What one version cannot say survives writes in it: they change what they change of the
    /// stored object and leave the rest as it is.
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

    /// What the kind does beyond its data.
    #[must_use]
    pub fn strategy(mut self, strategy: impl Strategy + 'static) -> TypedKind {
        self.strategy = Some(Arc::new(strategy));
        self
    }

    /// The finished kind.
    pub fn build(self) -> Kind {
        let mut kind = Kind::new(&self.group, self.names, self.scope);
        let has_status = self.versions.iter().any(Version::has_status);
        for version in self.versions {
            kind = kind.with_version(version);
        }
        if let Some(stored) = &self.stored {
            kind.stored_api_version = kind.api_version(stored);
        }
        kind.custom = true;
        kind.policy = Policy {
            generation: if has_status {
                Generation::OutsideStatus
            } else {
                Generation::OutsideMetadata
            },
            status_keeps_metadata: false,
            ..Policy::default()
        };
        if let Some(strategy) = self.strategy {
            kind.strategy = strategy;
        }
        if !self.conversions.is_empty() {
            kind.conversion = conversion(self.group, self.conversions);
        }
        kind
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

/// An object without what its struct does not describe.
fn own_part(object: &Value) -> Value {
    let mut own = object.clone();
    for key in COMMON {
        own.make_object().remove(key);
    }
    own
}

/// An absent `Option` serializes as null; objects of the API leave it out.
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
