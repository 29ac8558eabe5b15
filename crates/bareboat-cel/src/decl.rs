//! Declared types: the types, sizes and formats of the data that an expression reads.
//!
//! A [`DeclType`] is a type plus the facts that evaluation (formats, list types) and estimation
//! (sizes) need. [`DeclType::from_schema`] builds one from a structural schema.

mod schema;

pub use schema::SchemaView;

use std::sync::{Arc, LazyLock};

use bareboat_api::Str;

use crate::types::Type;

/// A type with the sizes and formats of its values.
#[derive(Debug)]
pub struct DeclType {
    pub(crate) json_type: JsonType,
    pub(crate) ty: Type,
    /// The maximum `size()` of a value; 0 for types without a size.
    pub(crate) max_elements: u64,
    /// The minimum size of a value as JSON, in bytes.
    pub(crate) min_size: u64,
    pub(crate) nullable: bool,
}

/// How JSON is converted to values of the type.
#[derive(Debug)]
pub(crate) enum JsonType {
    /// As the JSON says.
    Dyn,
    IntOrString,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Duration,
    Date,
    Timestamp,
    List {
        items: Arc<DeclType>,
        order: ListOrder,
    },
    Map {
        values: Arc<DeclType>,
    },
    Object(Arc<ObjectType>),
    /// Values that never come from JSON, such as an authorizer.
    Host,
}

/// How lists are compared and joined: `x-kubernetes-list-type`.
#[derive(Debug, PartialEq)]
pub(crate) enum ListOrder {
    Atomic,
    Set,
    Map(Box<[Str]>),
}

/// An object with declared fields.
#[derive(Debug)]
pub struct ObjectType {
    name: Str,
    /// Sorted by name.
    fields: Box<[Field]>,
    /// Whether undeclared fields may be set and read, as `dyn`.
    open: bool,
}

/// A field of an object.
#[derive(Debug)]
pub struct Field {
    /// The name in expressions.
    pub(crate) name: Str,
    /// The name in JSON, where it differs.
    property: Option<Str>,
    pub(crate) decl: Arc<DeclType>,
}

impl Field {
    /// Returns a field named by the escaped name of its property; `None` if the property has no
    /// such name.
    pub fn new(property: &str, decl: Arc<DeclType>) -> Option<Field> {
        let name = crate::escape(property)?;
        let property = (name != property).then(|| property.into());
        Some(Field {
            name,
            property,
            decl,
        })
    }

    /// Returns a field with the same name in expressions and in data, without escaping.
    pub fn exact(name: &str, decl: Arc<DeclType>) -> Field {
        Field {
            name: name.into(),
            property: None,
            decl,
        }
    }

    /// Returns the name of the JSON property.
    pub fn property(&self) -> &str {
        self.property.as_ref().unwrap_or(&self.name)
    }

    /// Returns the type of the field.
    pub fn decl(&self) -> &DeclType {
        &self.decl
    }
}

impl ObjectType {
    /// Returns an object type with these fields.
    pub fn new(name: &str, fields: Vec<Field>) -> ObjectType {
        ObjectType::with(name, fields, false)
    }

    /// Returns an object type whose values may have any field.
    pub fn open(name: &str, fields: Vec<Field>) -> ObjectType {
        ObjectType::with(name, fields, true)
    }

    fn with(name: &str, mut fields: Vec<Field>, open: bool) -> ObjectType {
        fields.sort_by(|a, b| a.name.cmp(&b.name));
        fields.dedup_by(|a, b| a.name == b.name);
        ObjectType {
            name: name.into(),
            fields: fields.into(),
            open,
        }
    }

    /// Returns the full name of the type.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether values may have fields that are not declared.
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// Returns the field with that name in expressions.
    pub fn field(&self, name: &str) -> Option<&Field> {
        let found = self
            .fields
            .binary_search_by(|field| field.name.as_str().cmp(name));
        found.ok().map(|index| &self.fields[index])
    }

    /// Returns the field with that JSON name.
    pub(crate) fn property(&self, property: &str) -> Option<&Field> {
        self.field(property)
            .filter(|field| field.property.is_none())
            .or_else(|| {
                self.fields
                    .iter()
                    .find(|field| field.property.as_deref() == Some(property))
            })
    }
}

static KEYS: LazyLock<Arc<DeclType>> = LazyLock::new(DeclType::string);

/// The size of a request that cost estimates assume as the maximum; it bounds strings, lists and
/// maps whose schema sets no limit.
pub(crate) const MAX_REQUEST_BYTES: u64 = 3 * 1024 * 1024;

impl DeclType {
    fn simple(json_type: JsonType, ty: Type, max_elements: u64, min_size: u64) -> Arc<DeclType> {
        Arc::new(DeclType {
            json_type,
            ty,
            max_elements,
            min_size,
            nullable: false,
        })
    }

    /// Returns the type of any value, converted by its JSON type.
    pub fn dynamic() -> Arc<DeclType> {
        DeclType::simple(JsonType::Dyn, Type::Dyn, 0, 1)
    }

    /// Returns the type of any value with at most that `size()`, as `google.protobuf.Any`.
    pub fn any_up_to(max_elements: u64) -> Arc<DeclType> {
        DeclType::simple(JsonType::Dyn, Type::Any, max_elements, 1)
    }

    /// Returns `bool`.
    pub fn bool() -> Arc<DeclType> {
        DeclType::simple(JsonType::Bool, Type::Bool, 0, 4)
    }

    /// Returns `int`.
    pub fn int() -> Arc<DeclType> {
        DeclType::simple(JsonType::Int, Type::Int, 0, 1)
    }

    /// Returns `uint`.
    pub fn uint() -> Arc<DeclType> {
        DeclType::simple(JsonType::Uint, Type::Uint, 0, 1)
    }

    /// Returns `double`.
    pub fn double() -> Arc<DeclType> {
        DeclType::simple(JsonType::Double, Type::Double, 0, 1)
    }

    /// Returns `string` of any length.
    pub fn string() -> Arc<DeclType> {
        DeclType::string_up_to(0)
    }

    /// Returns `string` with at most this many bytes.
    pub fn string_up_to(max_elements: u64) -> Arc<DeclType> {
        DeclType::simple(JsonType::String, Type::String, max_elements, 2)
    }

    /// Returns `bytes`, base64 in JSON.
    pub fn bytes(max_elements: u64) -> Arc<DeclType> {
        DeclType::simple(JsonType::Bytes, Type::Bytes, max_elements, 2)
    }

    /// Returns the type of durations.
    pub fn duration() -> Arc<DeclType> {
        DeclType::simple(JsonType::Duration, Type::Duration, 32, 3)
    }

    /// Returns the type of timestamps that are written as dates.
    pub fn date() -> Arc<DeclType> {
        DeclType::simple(JsonType::Date, Type::Timestamp, 12, 12)
    }

    /// Returns the type of timestamps.
    pub fn timestamp() -> Arc<DeclType> {
        DeclType::simple(JsonType::Timestamp, Type::Timestamp, 32, 21)
    }

    /// Returns the type of integers or strings.
    pub fn int_or_string(max_elements: u64) -> Arc<DeclType> {
        DeclType::simple(JsonType::IntOrString, Type::Dyn, max_elements, 1)
    }

    /// Returns an ordered list with at most this many items.
    pub fn list(items: Arc<DeclType>, max_elements: u64) -> Arc<DeclType> {
        DeclType::list_in(items, max_elements, ListOrder::Atomic)
    }

    pub(crate) fn list_in(
        items: Arc<DeclType>,
        max_elements: u64,
        order: ListOrder,
    ) -> Arc<DeclType> {
        let ty = Type::list(items.ty.clone());
        DeclType::simple(JsonType::List { items, order }, ty, max_elements, 2)
    }

    /// Returns a map with string keys and at most this many entries.
    pub fn map(values: Arc<DeclType>, max_elements: u64) -> Arc<DeclType> {
        let ty = Type::map(Type::String, values.ty.clone());
        DeclType::simple(JsonType::Map { values }, ty, max_elements, 2)
    }

    /// Returns an object type.
    pub fn object(object: ObjectType) -> Arc<DeclType> {
        DeclType::object_of_size(object, 2)
    }

    fn object_of_size(object: ObjectType, min_size: u64) -> Arc<DeclType> {
        let object = Arc::new(object);
        let ty = Type::Object(object.clone());
        DeclType::simple(JsonType::Object(object), ty, 0, min_size)
    }

    /// Returns a type whose values only the host creates.
    pub fn host(ty: Type) -> Arc<DeclType> {
        DeclType::simple(JsonType::Host, ty, 0, 1)
    }

    /// Returns the type for the checker.
    pub fn ty(&self) -> &Type {
        &self.ty
    }

    /// Returns the maximum `size()` of a value.
    pub(crate) fn max_elements(&self) -> u64 {
        self.max_elements
    }

    /// Returns how many values of this type fit into the largest request: the worst-case
    /// cardinality of a rule on it.
    pub fn max_cardinality(&self) -> u64 {
        MAX_REQUEST_BYTES / (self.min_size + 1)
    }

    /// Returns the type at a path of fields, `@items`, `@keys` and `@values`.
    pub fn at(&self, path: &[Str]) -> Option<&DeclType> {
        let mut node = self;
        for step in path {
            node = match (step.as_str(), &node.json_type) {
                ("@items" | "@values", JsonType::List { items, .. }) => items,
                ("@items" | "@values", JsonType::Map { values }) => values,
                ("@items" | "@values", _) => return None,
                // Nobody can bound keys; like upstream, estimates take them as empty.
                ("@keys", JsonType::Map { .. }) => &KEYS,
                ("@keys" | "@indices", _) => return None,
                (name, JsonType::Object(object)) => &object.field(name)?.decl,
                _ => return None,
            };
        }
        Some(node)
    }
}
