//! Declared types: what the caller knows about the data an expression reads.
//!
//! A [`DeclType`] is a type plus what evaluating (formats, list types) and estimating (sizes) need
//! to know. [`DeclType::from_schema`] builds one from anything that looks like a structural schema.

mod schema;

pub use schema::SchemaView;

use std::sync::{Arc, LazyLock};

use bareboat_api::Str;

use crate::types::Type;

/// A type with the sizes and formats of its values.
#[derive(Debug)]
pub struct DeclType {
    pub(crate) shape: Shape,
    pub(crate) ty: Type,
    /// The greatest `size()` a value can have; 0 where size means nothing.
    pub(crate) max_elements: u64,
    /// The fewest bytes a value takes as JSON.
    pub(crate) min_size: u64,
    pub(crate) nullable: bool,
}

/// How JSON becomes values of the type.
#[derive(Debug)]
pub(crate) enum Shape {
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

/// What makes two lists equal and how they are joined: `x-kubernetes-list-type`.
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
    /// As expressions write it.
    pub(crate) name: Str,
    /// As JSON writes it, where that differs.
    property: Option<Str>,
    pub(crate) decl: Arc<DeclType>,
}

impl Field {
    /// A field under the name its property has in expressions; nothing if it cannot have one.
    pub fn new(property: &str, decl: Arc<DeclType>) -> Option<Field> {
        let name = crate::escape(property)?;
        let property = (name != property).then(|| property.into());
        Some(Field {
            name,
            property,
            decl,
        })
    }

    /// A field that has the same name in expressions and in data, whatever it is.
    pub fn exact(name: &str, decl: Arc<DeclType>) -> Field {
        Field {
            name: name.into(),
            property: None,
            decl,
        }
    }

    /// The name of the JSON property.
    pub fn property(&self) -> &str {
        self.property.as_ref().unwrap_or(&self.name)
    }

    /// The type of the field.
    pub fn decl(&self) -> &DeclType {
        &self.decl
    }
}

impl ObjectType {
    /// An object type with those fields.
    pub fn new(name: &str, fields: Vec<Field>) -> ObjectType {
        ObjectType::with(name, fields, false)
    }

    /// An object type whose values may have any field.
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

    /// The full name of the type.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether values may have fields that are not declared.
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// The field that expressions know by that name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        let found = self
            .fields
            .binary_search_by(|field| field.name.as_str().cmp(name));
        found.ok().map(|index| &self.fields[index])
    }

    /// The field with that JSON name.
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

/// The largest request the server reads; sizes nobody bounded are bounded by it.
pub(crate) const MAX_REQUEST_BYTES: u64 = 3 * 1024 * 1024;

impl DeclType {
    fn simple(shape: Shape, ty: Type, max_elements: u64, min_size: u64) -> Arc<DeclType> {
        Arc::new(DeclType {
            shape,
            ty,
            max_elements,
            min_size,
            nullable: false,
        })
    }

    /// Anything, read as the JSON says.
    pub fn dynamic() -> Arc<DeclType> {
        DeclType::simple(Shape::Dyn, Type::Dyn, 0, 1)
    }

    /// Anything of at most that `size()`, as `google.protobuf.Any`.
    pub fn any_up_to(max_elements: u64) -> Arc<DeclType> {
        DeclType::simple(Shape::Dyn, Type::Any, max_elements, 1)
    }

    /// `bool`.
    pub fn bool() -> Arc<DeclType> {
        DeclType::simple(Shape::Bool, Type::Bool, 0, 4)
    }

    /// `int`.
    pub fn int() -> Arc<DeclType> {
        DeclType::simple(Shape::Int, Type::Int, 0, 1)
    }

    /// `uint`.
    pub fn uint() -> Arc<DeclType> {
        DeclType::simple(Shape::Uint, Type::Uint, 0, 1)
    }

    /// `double`.
    pub fn double() -> Arc<DeclType> {
        DeclType::simple(Shape::Double, Type::Double, 0, 1)
    }

    /// `string` of any length.
    pub fn string() -> Arc<DeclType> {
        DeclType::string_up_to(0)
    }

    /// `string` of at most so many bytes.
    pub fn string_up_to(max_elements: u64) -> Arc<DeclType> {
        DeclType::simple(Shape::String, Type::String, max_elements, 2)
    }

    /// `bytes`, base64 in JSON.
    pub fn bytes(max_elements: u64) -> Arc<DeclType> {
        DeclType::simple(Shape::Bytes, Type::Bytes, max_elements, 2)
    }

    /// A duration.
    pub fn duration() -> Arc<DeclType> {
        DeclType::simple(Shape::Duration, Type::Duration, 32, 3)
    }

    /// A point in time, written as a date.
    pub fn date() -> Arc<DeclType> {
        DeclType::simple(Shape::Date, Type::Timestamp, 12, 12)
    }

    /// A point in time.
    pub fn timestamp() -> Arc<DeclType> {
        DeclType::simple(Shape::Timestamp, Type::Timestamp, 32, 21)
    }

    /// An integer or a string.
    pub fn int_or_string(max_elements: u64) -> Arc<DeclType> {
        DeclType::simple(Shape::IntOrString, Type::Dyn, max_elements, 1)
    }

    /// A list of at most so many items, in an order that matters.
    pub fn list(items: Arc<DeclType>, max_elements: u64) -> Arc<DeclType> {
        DeclType::list_in(items, max_elements, ListOrder::Atomic)
    }

    pub(crate) fn list_in(
        items: Arc<DeclType>,
        max_elements: u64,
        order: ListOrder,
    ) -> Arc<DeclType> {
        let ty = Type::list(items.ty.clone());
        DeclType::simple(Shape::List { items, order }, ty, max_elements, 2)
    }

    /// A map from strings of at most so many entries.
    pub fn map(values: Arc<DeclType>, max_elements: u64) -> Arc<DeclType> {
        let ty = Type::map(Type::String, values.ty.clone());
        DeclType::simple(Shape::Map { values }, ty, max_elements, 2)
    }

    /// An object.
    pub fn object(object: ObjectType) -> Arc<DeclType> {
        DeclType::object_of_size(object, 2)
    }

    fn object_of_size(object: ObjectType, min_size: u64) -> Arc<DeclType> {
        let object = Arc::new(object);
        let ty = Type::Object(object.clone());
        DeclType::simple(Shape::Object(object), ty, 0, min_size)
    }

    /// A type whose values the host makes itself.
    pub fn host(ty: Type) -> Arc<DeclType> {
        DeclType::simple(Shape::Host, ty, 0, 1)
    }

    /// The type as the checker sees it.
    pub fn ty(&self) -> &Type {
        &self.ty
    }

    /// The greatest `size()` a value can have.
    pub(crate) fn max_elements(&self) -> u64 {
        self.max_elements
    }

    /// The fewest bytes a value takes as JSON.
    pub fn min_serialized_size(&self) -> u64 {
        self.min_size
    }

    /// How many values of this type fit into the largest request: the worst-case cardinality of a
    /// rule on it.
    pub fn max_cardinality(&self) -> u64 {
        MAX_REQUEST_BYTES / (self.min_size + 1)
    }

    /// What is found by following a path of fields, `@items`, `@keys` and `@values`.
    pub fn at(&self, path: &[Str]) -> Option<&DeclType> {
        let mut node = self;
        for step in path {
            node = match (step.as_str(), &node.shape) {
                ("@items" | "@values", Shape::List { items, .. }) => items,
                ("@items" | "@values", Shape::Map { values }) => values,
                ("@items" | "@values", _) => return None,
                // Nobody can bound keys; like upstream, estimates take them as empty.
                ("@keys", Shape::Map { .. }) => &KEYS,
                ("@keys" | "@indices", _) => return None,
                (name, Shape::Object(object)) => &object.field(name)?.decl,
                _ => return None,
            };
        }
        Some(node)
    }
}
