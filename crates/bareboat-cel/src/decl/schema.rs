//! Builds a declared type from a structural schema.
//!
//! Upstream: apiserver pkg/cel/common/schemas.go, SchemaDeclType. Estimates depend on every number
//! here, and estimates decide which CRDs are accepted.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use bareboat_api::{Str, Value};

use super::{DeclType, Field, JsonType, ListOrder, MAX_REQUEST_BYTES, ObjectType};

/// The parts of a schema node that CEL needs.
///
/// ```
/// use bareboat_api::Value;
/// use bareboat_cel::{DeclType, SchemaView, SizeHints as _};
///
/// /// A list of texts: every other member is absent.
/// struct Node { kind: &'static str, items: Option<Box<Node>>, longest: Option<i64> }
/// impl SchemaView for Node {
///     fn schema_type(&self) -> &str { self.kind }
///     fn items(&self) -> Option<&dyn SchemaView> {
///         self.items.as_deref().map(|items| items as &dyn SchemaView)
///     }
///     fn max_length(&self) -> Option<i64> { self.longest }
///     fn max_items(&self) -> Option<i64> { self.longest }
///     fn format(&self) -> &str { "" }
///     fn nullable(&self) -> bool { false }
///     fn additional_properties(&self) -> Option<&dyn SchemaView> { None }
///     fn each_property<'a>(&'a self, _: &mut dyn FnMut(&'a str, &'a dyn SchemaView)) {}
///     fn requires(&self, _: &str) -> bool { false }
///     fn has_default(&self) -> bool { false }
///     fn enum_values(&self) -> &[Value] { &[] }
///     fn max_properties(&self) -> Option<i64> { None }
///     fn int_or_string(&self) -> bool { false }
///     fn embedded_resource(&self) -> bool { false }
///     fn list_type(&self) -> &str { "" }
///     fn list_map_keys(&self) -> Vec<&str> { Vec::new() }
/// }
///
/// // A character may take four bytes.
/// let text = Node { kind: "string", items: None, longest: Some(10) };
/// let list = Node { kind: "array", items: Some(Box::new(text)), longest: Some(3) };
/// let decl = DeclType::from_schema(&list, false, "").expect("expressions can read it");
/// assert_eq!(decl.max_size(&["self".into()]), Some(3));
/// assert_eq!(decl.max_size(&["self".into(), "@items".into()]), Some(40));
/// ```
pub trait SchemaView {
    /// Returns `type`, empty when absent.
    fn schema_type(&self) -> &str;
    /// Returns `format`, empty when absent.
    fn format(&self) -> &str;
    /// Returns `nullable`.
    fn nullable(&self) -> bool;
    /// Returns `items`.
    fn items(&self) -> Option<&dyn SchemaView>;
    /// Returns the schema under `additionalProperties`.
    fn additional_properties(&self) -> Option<&dyn SchemaView>;
    /// Calls the visitor with each of `properties`.
    fn each_property<'a>(&'a self, visit: &mut dyn FnMut(&'a str, &'a dyn SchemaView));
    /// Returns whether `required` lists the property.
    fn requires(&self, property: &str) -> bool;
    /// Returns whether there is a `default`.
    fn has_default(&self) -> bool;
    /// Returns `enum`.
    fn enum_values(&self) -> &[Value];
    /// Returns `maxLength`.
    fn max_length(&self) -> Option<i64>;
    /// Returns `maxItems`.
    fn max_items(&self) -> Option<i64>;
    /// Returns `maxProperties`.
    fn max_properties(&self) -> Option<i64>;
    /// Returns `x-kubernetes-int-or-string`.
    fn int_or_string(&self) -> bool;
    /// Returns `x-kubernetes-embedded-resource`.
    fn embedded_resource(&self) -> bool;
    /// Returns `x-kubernetes-list-type`, empty when absent.
    fn list_type(&self) -> &str;
    /// Returns `x-kubernetes-list-map-keys`.
    fn list_map_keys(&self) -> Vec<&str>;
    /// Returns `x-kubernetes-preserve-unknown-fields`.
    fn preserves_unknown(&self) -> bool {
        false
    }
}

/// The part of an object that expressions can read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sight {
    /// Declared fields, as for validation rules.
    Declared,
    /// Also preserved undeclared fields, as `dyn`.
    Everything,
}

/// The maximum length of a string that fits a request, without its quotes.
const UNBOUNDED_STRING: u64 = MAX_REQUEST_BYTES - 2;

impl DeclType {
    /// Returns the declared type of a schema, or `None` if expressions cannot read its values.
    ///
    /// `resource` means that the node is the root of a resource, where type and name are visible
    /// even if not declared. Objects are named by `name` and their path.
    pub fn from_schema(
        schema: &dyn SchemaView,
        resource: bool,
        name: &str,
    ) -> Option<Arc<DeclType>> {
        seen(schema, resource, name, Sight::Declared)
    }

    /// Returns the declared type of a whole resource: preserved undeclared fields are visible as
    /// `dyn`, and metadata has more fields than the name.
    pub fn of_resource(schema: &dyn SchemaView, name: &str) -> Arc<DeclType> {
        object(schema, true, name, Sight::Everything)
    }
}

fn seen(
    schema: &dyn SchemaView,
    resource: bool,
    name: &str,
    sight: Sight,
) -> Option<Arc<DeclType>> {
    let mut decl = match declare(schema, resource, name, sight) {
        None if sight == Sight::Everything => DeclType::dynamic(),
        declared => declared?,
    };
    if schema.nullable() {
        // Invariant: `declare` has just created it, so it is not shared.
        if let Some(unshared) = Arc::get_mut(&mut decl) {
            unshared.nullable = true;
        }
    }
    Some(decl)
}

fn declare(
    schema: &dyn SchemaView,
    resource: bool,
    name: &str,
    sight: Sight,
) -> Option<Arc<DeclType>> {
    if schema.int_or_string() {
        let max = schema.max_length().map_or(UNBOUNDED_STRING, in_bytes);
        return Some(DeclType::int_or_string(max));
    }
    match schema.schema_type() {
        "array" => array(schema, name, sight),
        "object" => match schema.additional_properties() {
            Some(values) if !resource => map(schema, values, name, sight),
            // Without declared members it is a map of any values.
            _ if sight == Sight::Everything && !resource && is_bare(schema) => None,
            _ => Some(object(schema, resource, name, sight)),
        },
        "string" => Some(string(schema)),
        "boolean" => Some(DeclType::bool()),
        "number" => Some(DeclType::double()),
        "integer" => Some(DeclType::int()),
        _ => None,
    }
}

fn is_bare(schema: &dyn SchemaView) -> bool {
    let mut bare = schema.preserves_unknown();
    schema.each_property(&mut |_, _| bare = false);
    bare
}

/// The maximum length of a type name that is written in full.
const MAX_NAME: usize = 1024;

/// Returns the name of a type by its path. The name contains the names of all types above, so a
/// name that becomes too long is replaced by a short hash.
fn place(above: &str, step: &str) -> String {
    let name = format!("{above}.{step}");
    if name.len() <= MAX_NAME {
        return name;
    }
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    format!("selfType.@{:016x}", hasher.finish())
}

fn array(schema: &dyn SchemaView, name: &str, sight: Sight) -> Option<Arc<DeclType>> {
    let items = schema.items()?;
    let place = place(name, "@idx");
    let decl = seen(items, items.embedded_resource(), &place, sight)?;
    let max = match schema.max_items() {
        Some(max) => max.max(0) as u64,
        None => (MAX_REQUEST_BYTES - 2) / (decl.min_size + 1),
    };
    let order = match schema.list_type() {
        "set" => ListOrder::Set,
        "map" => ListOrder::Map(schema.list_map_keys().into_iter().map(Str::new).collect()),
        _ => ListOrder::Atomic,
    };
    Some(DeclType::list_in(decl, max, order))
}

fn map(
    schema: &dyn SchemaView,
    values: &dyn SchemaView,
    name: &str,
    sight: Sight,
) -> Option<Arc<DeclType>> {
    let place = place(name, "@elem");
    let decl = seen(values, values.embedded_resource(), &place, sight)?;
    let max = match schema.max_properties() {
        Some(max) => max.max(0) as u64,
        // Two bytes of key, its quotes, colon and comma, and the smallest value.
        None => (MAX_REQUEST_BYTES - 2) / (decl.min_size + 6),
    };
    Some(DeclType::map(decl, max))
}

fn object(schema: &dyn SchemaView, resource: bool, name: &str, sight: Sight) -> Arc<DeclType> {
    let mut fields = Vec::new();
    let mut min_size = 2;
    let complete = resource && sight == Sight::Declared && has_resource_fields(schema);
    schema.each_property(&mut |property, schema_of| {
        if resource && !complete && matches!(property, "kind" | "apiVersion" | "metadata") {
            return;
        }
        let place = match crate::escape(property) {
            Some(escaped) => place(name, &escaped),
            None => place(name, property),
        };
        let Some(decl) = seen(schema_of, schema_of.embedded_resource(), &place, sight) else {
            return;
        };
        if schema.requires(property) && !schema_of.has_default() {
            min_size += property.len() as u64 + decl.min_size + 4;
        }
        fields.extend(Field::new(property, decl));
    });
    if resource && !complete {
        let metadata = metadata(name, sight);
        add_resource_fields(schema, metadata, &mut fields, &mut min_size);
    }
    let open = sight == Sight::Everything && schema.preserves_unknown();
    DeclType::object_of_size(ObjectType::with(name, fields, open), min_size)
}

/// Returns whether a resource declares all fields that expressions can read of any resource.
fn has_resource_fields(schema: &dyn SchemaView) -> bool {
    let (mut found, mut named) = (0, 0);
    schema.each_property(&mut |property, schema| match property {
        "kind" | "apiVersion" if schema.schema_type() == "string" => found += 1,
        "metadata" if schema.schema_type() == "object" => {
            found += 1;
            schema.each_property(&mut |property, schema| {
                if matches!(property, "name" | "generateName") && schema.schema_type() == "string" {
                    named += 1;
                }
            });
        }
        _ => {}
    });
    found == 3 && named == 2
}

fn add_resource_fields(
    schema: &dyn SchemaView,
    metadata: Arc<DeclType>,
    fields: &mut Vec<Field>,
    min_size: &mut u64,
) {
    for (property, decl) in [
        ("kind", any_text()),
        ("apiVersion", any_text()),
        ("metadata", metadata),
    ] {
        if schema.requires(property) {
            *min_size += property.len() as u64 + decl.min_size + 4;
        }
        fields.extend(Field::new(property, decl));
    }
}

fn any_text() -> Arc<DeclType> {
    DeclType::string_up_to(UNBOUNDED_STRING)
}

/// Returns the visible metadata of a resource.
fn metadata(name: &str, sight: Sight) -> Arc<DeclType> {
    let mut visible = vec![("name", any_text()), ("generateName", any_text())];
    if sight == Sight::Everything {
        let texts = || DeclType::map(any_text(), UNBOUNDED_STRING);
        visible.extend([
            ("namespace", any_text()),
            ("uid", any_text()),
            ("labels", texts()),
            ("annotations", texts()),
            ("creationTimestamp", DeclType::timestamp()),
            ("generation", DeclType::int()),
        ]);
    }
    let fields = visible
        .into_iter()
        .filter_map(|(property, decl)| Field::new(property, decl));
    DeclType::object(ObjectType::new(
        &format!("{name}.metadata"),
        fields.collect(),
    ))
}

fn string(schema: &dyn SchemaView) -> Arc<DeclType> {
    match schema.format() {
        "byte" => DeclType::bytes(
            schema
                .max_length()
                .map_or(UNBOUNDED_STRING, |max| max.max(0) as u64),
        ),
        "duration" => DeclType::duration(),
        "date" => DeclType::date(),
        "date-time" => DeclType::timestamp(),
        _ => DeclType::string_up_to(match (schema.max_length(), schema.enum_values()) {
            (Some(max), _) => in_bytes(max),
            (None, []) => UNBOUNDED_STRING,
            (None, values) => {
                let lengths = values.iter().filter_map(Value::as_str).map(str::len);
                lengths.max().unwrap_or(0) as u64
            }
        }),
    }
}

/// Converts `maxLength`, which counts code points, to bytes: four bytes per code point.
fn in_bytes(max_length: i64) -> u64 {
    (max_length.max(0) as u64).saturating_mul(4)
}

impl DeclType {
    /// Returns the object type, if values are objects with declared fields.
    pub fn as_object(&self) -> Option<&ObjectType> {
        match &self.json_type {
            JsonType::Object(object) => Some(object),
            _ => None,
        }
    }
}
