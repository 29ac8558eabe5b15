//! The types of the table of facts about built-in messages: fields, protobuf numbers, merge keys,
//! defaults.
//!
//! The table itself is data of `bareboat-builtin`; the protobuf codec, strict decoding, strategic
//! merge and server-side apply all read it through these types.

use crate::typing::{ListKey, ListType, NodeType, PatchStrategy, Scalar, TypeNode};
use crate::{Str, Value};
use std::fmt;
use std::sync::OnceLock;

/// The type of a field, or of the elements of a repeated one.
#[derive(Clone, Copy, Debug)]
pub enum Type {
    /// A boolean.
    Bool,
    /// A 32-bit integer.
    Int32,
    /// A 64-bit integer.
    Int64,
    /// A float.
    Double,
    /// A string.
    String,
    /// Bytes: base64 in JSON.
    Bytes,
    /// A time with seconds: RFC 3339 in JSON, `{seconds=1, nanos=2}` in protobuf.
    Time,
    /// A time with microseconds.
    MicroTime,
    /// A Go duration: text in JSON, `{duration=1}` nanoseconds in protobuf.
    Duration,
    /// A quantity: text in JSON, `{string=1}` in protobuf.
    Quantity,
    /// An integer or a string: `{type=1, intVal=2, strVal=3}` in protobuf.
    IntOrString,
    /// Any JSON object: `{raw=1}` holding JSON bytes in protobuf.
    RawExtension,
    /// Any JSON value: `{raw=1}` holding JSON bytes in protobuf (`apiextensions` JSON).
    Json,
    /// Managed fields: `{Raw=1}` holding JSON bytes in protobuf.
    FieldsV1,
    /// A schema or an array of schemas, a schema or a boolean, a schema or strings: the three
    /// unions of `JSONSchemaProps`; the message is the schema's.
    SchemaUnion(SchemaUnion, MessageRef),
    /// A list of strings that protobuf spells as a message of its own: `{items=1}` (extra values
    /// of users, the verbs of a resource).
    Strings,
    /// Another message.
    Message(MessageRef),
}

/// A reference to a message that is parsed from the table at its first use.
///
/// A server uses a few dozen of more than a thousand messages; the others stay text.
#[derive(Clone, Copy)]
pub struct MessageRef(&'static LazyMessage);

/// An entry of the table: the source text of a message, and the parsed message after its first use.
pub struct LazyMessage {
    source: &'static str,
    parse: fn(&'static str) -> Message,
    parsed: OnceLock<Message>,
}

crate::opaque_debug!(LazyMessage);

impl LazyMessage {
    /// Returns an entry whose message `parse` reads from `source`.
    pub const fn new(source: &'static str, parse: fn(&'static str) -> Message) -> LazyMessage {
        LazyMessage {
            source,
            parse,
            parsed: OnceLock::new(),
        }
    }
}

impl MessageRef {
    /// Returns a reference to an entry of the table.
    pub const fn new(lazy: &'static LazyMessage) -> MessageRef {
        MessageRef(lazy)
    }

    /// Returns the message, and parses it first if necessary.
    pub fn get(self) -> &'static Message {
        self.0.parsed.get_or_init(|| (self.0.parse)(self.0.source))
    }
}

impl std::ops::Deref for MessageRef {
    type Target = Message;
    fn deref(&self) -> &Message {
        self.get()
    }
}

/// Prints the name only, because messages refer to each other in circles.
impl fmt::Debug for MessageRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.get().name)
    }
}

/// The unions inside a JSON schema that are separate messages in protobuf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaUnion {
    /// `items`: a schema or a list of schemas.
    OrArray,
    /// `additionalProperties`, `additionalItems`: a schema or a boolean.
    OrBool,
    /// `dependencies`: a schema or a list of strings.
    OrStringArray,
}

/// Whether a field is single, a list or a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cardinality {
    /// A single value.
    One,
    /// A list.
    List,
    /// A map with string keys.
    Map,
}

/// One field of a message.
#[derive(Debug)]
pub struct Field {
    /// The name in JSON; empty for a field whose members are inlined into the parent.
    pub json: Str,
    /// The number in protobuf; 0 for a field that only exists in JSON.
    pub number: u32,
    /// The type of the field, or of its elements if it is repeated.
    pub ty: Type,
    /// Whether the field is single, a list or a map.
    pub cardinality: Cardinality,
    /// Whether JSON omits the field when it is empty; otherwise a zero value is printed.
    ///
    /// This is Go's `omitempty`, except for structs that are not pointers: Go never omits those, so
    /// they have `false` here regardless of the tag (`status: {}`, `lastTransitionTime: null`).
    pub omit_empty: bool,
    /// Whether the field is a pointer in Go: absent and zero differ, and protobuf writes it only
    /// when present.
    pub optional: bool,
    /// How a list merges in server-side apply.
    pub list: ListType,
    /// The keys of a map list.
    pub keys: Vec<ListKey>,
    /// Owned and replaced as one value in server-side apply (atomic struct or map).
    pub atomic: bool,
    /// Merges member by member although its message is atomic elsewhere.
    pub granular: bool,
    /// Strategic merge: the list merges instead of replacing.
    pub patch_merge: bool,
    /// Strategic merge: members that the patch does not retain are removed.
    pub retain_keys: bool,
    /// A strategic merge patch replaces the object as a whole.
    pub patch_replaces: bool,
    /// Strategic merge: the key that matches elements.
    pub merge_key: Option<Str>,
    /// The default the published schema declares.
    pub default: Option<Value>,
    /// The enum values that the published schema lists, for the elements if repeated; empty if any
    /// value is allowed.
    pub values: Vec<Str>,
    /// The type node of the field's elements.
    pub element: Element,
}

/// The type of one element of a list or map field (or of the field itself when it occurs once).
#[derive(Clone, Copy, Debug)]
pub struct Element(pub Type);

/// A message: a struct in Go.
#[derive(Debug)]
pub struct Message {
    /// The full name, such as `k8s.io.api.core.v1.ConfigMap`.
    pub name: Str,
    /// The fields, sorted by JSON name.
    ///
    /// A member that Go embeds inline has two kinds of entries here: one without a name, with its
    /// protobuf number and message (protobuf nests it, and always writes it), and one for each of
    /// its own fields, with number 0 (JSON spreads them into the parent).
    pub fields: Vec<Field>,
    /// Whether the whole message is one value in server-side apply.
    pub atomic: bool,
    /// Positions of the numbered fields in the order of their numbers, computed at first use.
    pub by_number: OnceLock<Box<[u16]>>,
}

impl Message {
    /// Returns the field with that JSON name.
    pub fn field(&self, json: &str) -> Option<&Field> {
        self.fields
            .binary_search_by(|field| field.json.as_str().cmp(json))
            .ok()
            .map(|index| &self.fields[index])
    }

    /// Returns the fields that protobuf has, in the order of their numbers.
    pub fn numbered_fields(&self) -> impl Iterator<Item = &Field> {
        self.order()
            .iter()
            .map(|place| &self.fields[usize::from(*place)])
    }

    /// Returns the field with that protobuf number.
    pub fn numbered(&self, number: u32) -> Option<&Field> {
        let order = self.order();
        let field = |place: &u16| &self.fields[usize::from(*place)];
        let found = order.binary_search_by_key(&number, |place| field(place).number);
        found.ok().map(|at| field(&order[at]))
    }

    fn order(&self) -> &[u16] {
        self.by_number.get_or_init(|| {
            let mut order: Vec<u16> = (0..self.fields.len() as u16)
                .filter(|place| self.fields[usize::from(*place)].number > 0)
                .collect();
            let number = |place: &u16| self.fields[usize::from(*place)].number;
            crate::sort_by(&mut order, |a, b| number(a).cmp(&number(b)));
            order.into()
        })
    }
}

impl TypeNode for Message {
    fn node_type(&self) -> NodeType {
        NodeType::Struct
    }
    fn field(&self, name: &str) -> Option<&dyn TypeNode> {
        Message::field(self, name).map(|field| field as &dyn TypeNode)
    }
    fn items(&self) -> Option<&dyn TypeNode> {
        None
    }
    fn is_atomic(&self) -> bool {
        self.atomic
    }
}

impl TypeNode for Element {
    fn node_type(&self) -> NodeType {
        match self.0 {
            Type::Message(_) => NodeType::Struct,
            Type::RawExtension | Type::Json => NodeType::Untyped,
            // Upstream publishes the unions of JSON schemas without a type.
            Type::SchemaUnion(..) => NodeType::Untyped,
            Type::Strings => NodeType::List(ListType::Atomic),
            _ => NodeType::Scalar,
        }
    }
    fn scalar(&self) -> Scalar {
        match self.0 {
            Type::String | Type::Bytes | Type::Duration => Scalar::String,
            Type::Int32 | Type::Int64 | Type::Double => Scalar::Number,
            Type::Bool => Scalar::Boolean,
            Type::Time | Type::MicroTime => Scalar::Any,
            // Upstream publishes quantities and the like as one of several types.
            _ => Scalar::Open,
        }
    }
    fn field(&self, name: &str) -> Option<&dyn TypeNode> {
        match self.0 {
            Type::Message(message) => TypeNode::field(message.get(), name),
            _ => None,
        }
    }
    fn items(&self) -> Option<&dyn TypeNode> {
        None
    }
    fn is_atomic(&self) -> bool {
        match self.0 {
            Type::Message(message) => message.atomic,
            // The content belongs to another type.
            Type::RawExtension => true,
            _ => false,
        }
    }
}

impl TypeNode for Field {
    fn node_type(&self) -> NodeType {
        match self.cardinality {
            Cardinality::One => self.element.node_type(),
            Cardinality::List => NodeType::List(self.list),
            Cardinality::Map => NodeType::Map,
        }
    }
    fn scalar(&self) -> Scalar {
        self.element.scalar()
    }
    fn field(&self, name: &str) -> Option<&dyn TypeNode> {
        match self.cardinality {
            Cardinality::One => TypeNode::field(&self.element, name),
            Cardinality::List => None,
            Cardinality::Map => Some(&self.element),
        }
    }
    fn items(&self) -> Option<&dyn TypeNode> {
        (self.cardinality == Cardinality::List).then_some(&self.element as &dyn TypeNode)
    }
    fn list_keys(&self) -> &[ListKey] {
        &self.keys
    }
    fn is_atomic(&self) -> bool {
        self.atomic
            || (!self.granular && self.cardinality == Cardinality::One && self.element.is_atomic())
    }
    fn patch_strategy(&self) -> PatchStrategy<'_> {
        PatchStrategy {
            merge: self.patch_merge,
            retain_keys: self.retain_keys,
            merge_key: self.merge_key.as_deref(),
        }
    }
    fn patch_replaces(&self) -> bool {
        self.patch_replaces
    }
}
