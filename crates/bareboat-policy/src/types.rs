//! Types for the checker: made from the table of facts for built-in kinds, from the schema for custom kinds.

use bareboat_api::Value;
use bareboat_api::facts::{Cardinality, MessageRef, Type};
use bareboat_api::kind::PublishedSchema;
use bareboat_cel::{DeclType, Field, ObjectType};
use std::sync::Arc;

/// The maximum depth of a type; deeper parts, and types that contain themselves, are `dyn`.
const MAX_DEPTH: usize = 24;

/// Returns the type of objects with a schema; `None` if nothing is known about them.
///
/// `metadata` is the message of metadata, which schemas of custom kinds do not contain.
pub fn declared_type(
    kind: &str,
    schema: &PublishedSchema,
    metadata: Option<MessageRef>,
) -> Option<Arc<DeclType>> {
    match schema {
        PublishedSchema::Message(message) => Some(of_message(kind, *message, &mut Vec::new())),
        PublishedSchema::Structural(schema) => Some(custom(kind, schema, metadata)),
        PublishedSchema::Untyped => None,
    }
}

fn of_message(name: &str, message: MessageRef, above: &mut Vec<*const ()>) -> Arc<DeclType> {
    let identity = std::ptr::from_ref(message.get()).cast::<()>();
    if above.contains(&identity) || above.len() >= MAX_DEPTH {
        return DeclType::dynamic();
    }
    above.push(identity);
    let mut fields = Vec::new();
    collect(name, message, above, &mut fields);
    above.pop();
    DeclType::object(ObjectType::new(name, fields))
}

fn collect(name: &str, message: MessageRef, above: &mut Vec<*const ()>, out: &mut Vec<Field>) {
    for field in &message.get().fields {
        // Members of inlined messages are fields of their own as well.
        if field.json.is_empty() {
            continue;
        }
        let place = format!("{name}.{}", field.json);
        let one = of_type(&place, field.ty, above);
        let decl = match field.cardinality {
            Cardinality::One => one,
            Cardinality::List => DeclType::list(one, 0),
            Cardinality::Map => DeclType::map(one, 0),
        };
        out.extend(Field::new(&field.json, decl));
    }
}

fn of_type(name: &str, ty: Type, above: &mut Vec<*const ()>) -> Arc<DeclType> {
    match ty {
        Type::Bool => DeclType::bool(),
        Type::Int32 | Type::Int64 => DeclType::int(),
        Type::Double => DeclType::double(),
        Type::String | Type::Duration => DeclType::string(),
        Type::Bytes => DeclType::bytes(0),
        Type::Time | Type::MicroTime => DeclType::timestamp(),
        Type::Strings => DeclType::list(DeclType::string(), 0),
        Type::IntOrString => DeclType::int_or_string(0),
        Type::Message(message) => of_message(name, message, above),
        Type::Quantity
        | Type::RawExtension
        | Type::Json
        | Type::FieldsV1
        | Type::SchemaUnion(..) => DeclType::dynamic(),
    }
}

/// Returns the type of a custom kind. Every object has a type and metadata.
fn custom(kind: &str, schema: &Value, metadata: Option<MessageRef>) -> Arc<DeclType> {
    let mut fields = properties(kind, schema, 0);
    fields.retain(|field| !matches!(field.property(), "apiVersion" | "kind" | "metadata"));
    for text in ["apiVersion", "kind"] {
        fields.extend(Field::new(text, DeclType::string()));
    }
    let place = format!("{kind}.metadata");
    let metadata = match metadata {
        Some(message) => of_message(&place, message, &mut Vec::new()),
        None => DeclType::dynamic(),
    };
    fields.extend(Field::new("metadata", metadata));
    object(kind, schema, fields)
}

fn object(name: &str, schema: &Value, fields: Vec<Field>) -> Arc<DeclType> {
    DeclType::object(match flag(schema, "x-kubernetes-preserve-unknown-fields") {
        true => ObjectType::open(name, fields),
        false => ObjectType::new(name, fields),
    })
}

fn properties(name: &str, schema: &Value, depth: usize) -> Vec<Field> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let properties = properties.into_iter().flat_map(|members| members.iter());
    properties
        .filter_map(|(property, inner)| {
            let place = format!("{name}.{property}");
            Field::new(property, of_schema(&place, inner, depth + 1))
        })
        .collect()
}

fn flag(schema: &Value, keyword: &str) -> bool {
    schema.get(keyword).and_then(Value::as_bool) == Some(true)
}

fn of_schema(name: &str, schema: &Value, depth: usize) -> Arc<DeclType> {
    if depth > MAX_DEPTH {
        return DeclType::dynamic();
    }
    if flag(schema, "x-kubernetes-int-or-string") {
        return DeclType::int_or_string(0);
    }
    let text = |keyword: &str| schema.get(keyword).and_then(Value::as_str);
    match text("type").unwrap_or_default() {
        "boolean" => DeclType::bool(),
        "integer" => DeclType::int(),
        "number" => DeclType::double(),
        "string" => match text("format").unwrap_or_default() {
            "byte" => DeclType::bytes(0),
            "duration" => DeclType::duration(),
            "date" => DeclType::date(),
            "date-time" => DeclType::timestamp(),
            _ => DeclType::string(),
        },
        "array" => match schema.get("items") {
            Some(items) => DeclType::list(of_schema(&format!("{name}.@idx"), items, depth + 1), 0),
            None => DeclType::dynamic(),
        },
        "object" => match schema.get("additionalProperties") {
            Some(values @ Value::Object(_)) => {
                DeclType::map(of_schema(&format!("{name}.@elem"), values, depth + 1), 0)
            }
            _ if flag(schema, "x-kubernetes-embedded-resource") => DeclType::dynamic(),
            _ => {
                let fields = properties(name, schema, depth);
                match fields.is_empty() {
                    true => DeclType::dynamic(),
                    false => object(name, schema, fields),
                }
            }
        },
        _ => DeclType::dynamic(),
    }
}
