//! Parses one line of the table of facts.
//!
//! The table is part of the program and a test reads all of it, so a line that cannot be read is a
//! programming error.

use super::{CORE, META, head, message as find, name_of};
use bareboat_api::facts::{Cardinality, Element, Field, Message, MessageRef, SchemaUnion, Type};
use bareboat_api::typing::{ListKey, ListType};
use bareboat_api::{Str, Value};

/// Parses the message on a line of the table.
pub(super) fn message(line: &'static str) -> Message {
    let name = name_of(line);
    let package = name.rsplit_once('.').map_or("", |(package, _)| package);
    let mut fields = Vec::new();
    for text in line.split(' ').skip(1) {
        let field = field(text, package);
        if field.json.is_empty()
            && let Type::Message(inline) = field.ty
        {
            // JSON spreads the members of an inline message into its parent.
            fields.extend(
                inline
                    .get()
                    .fields
                    .iter()
                    .filter(|member| !member.json.is_empty())
                    .map(json_only),
            );
        }
        fields.push(field);
    }
    fields.sort_by(|a, b| a.json.cmp(&b.json));
    Message {
        by_number: Default::default(),
        name: Str::const_new(name),
        fields,
        atomic: head(line).contains('!'),
    }
}

/// Returns the field without its protobuf number.
fn json_only(field: &Field) -> Field {
    Field {
        json: field.json.clone(),
        number: 0,
        ty: field.ty,
        cardinality: field.cardinality,
        omit_empty: field.omit_empty,
        optional: field.optional,
        list: field.list,
        keys: field.keys.clone(),
        atomic: field.atomic,
        granular: field.granular,
        patch_merge: field.patch_merge,
        retain_keys: field.retain_keys,
        patch_replaces: field.patch_replaces,
        merge_key: field.merge_key.clone(),
        default: field.default.clone(),
        values: field.values.clone(),
        element: field.element,
    }
}

fn field(text: &'static str, package: &str) -> Field {
    let (json, rest) = text.split_once('=').expect("a field has a number");
    let (number, rest) = rest.split_once(':').expect("a field has a type");
    let (ty, attributes) = match rest.split_once(',') {
        Some((ty, attributes)) => (ty, attributes),
        None => (rest, ""),
    };
    let (ty, omit_empty) = match ty.strip_suffix('+') {
        Some(ty) => (ty, false),
        None => (ty, true),
    };
    let (ty, optional) = match ty.strip_suffix('?') {
        Some(ty) => (ty, true),
        None => (ty, false),
    };
    let (ty, cardinality) = if let Some(ty) = ty.strip_prefix("[]") {
        (ty, Cardinality::List)
    } else if let Some(ty) = ty.strip_prefix("{}") {
        (ty, Cardinality::Map)
    } else {
        (ty, Cardinality::One)
    };
    let ty = type_of(ty, package);
    let mut field = Field {
        json: Str::const_new(if json == "~" { "" } else { json }),
        number: number.parse().expect("a field's number is one"),
        ty,
        cardinality,
        omit_empty,
        optional,
        list: ListType::Atomic,
        keys: Vec::new(),
        atomic: false,
        granular: false,
        patch_merge: false,
        retain_keys: false,
        patch_replaces: false,
        merge_key: None,
        default: None,
        values: Vec::new(),
        element: Element(ty),
    };
    for attribute in attributes.split(',').filter(|text| !text.is_empty()) {
        apply(attribute, &mut field);
    }
    field
}

fn apply(attribute: &'static str, field: &mut Field) {
    let (name, argument) = match attribute.split_once(['(', '=']) {
        Some((name, argument)) => (name, argument.trim_end_matches(')')),
        None => (attribute, ""),
    };
    match name {
        "set" => field.list = ListType::Set,
        "replace" => field.patch_replaces = true,
        "map" => {
            field.list = ListType::Map;
            field.keys = argument.split(';').map(list_key).collect();
        }
        "atomic" => field.atomic = true,
        "granular" => field.granular = true,
        "merge" => {
            field.patch_merge = true;
            field.merge_key = (!argument.is_empty()).then(|| Str::const_new(argument));
        }
        "retainKeys" => field.retain_keys = true,
        "default" => field.default = Some(literal(argument)),
        "enum" => {
            field.values = argument
                .split(';')
                .map(|value| value.replace('_', " ").into())
                .collect()
        }
        other => unreachable!("the table has an unknown attribute {other}"),
    }
}

fn list_key(text: &'static str) -> ListKey {
    match text.split_once('=') {
        Some((name, default)) => ListKey {
            name: Str::const_new(name),
            default: Some(literal(default)),
        },
        None => ListKey {
            name: Str::const_new(text),
            default: None,
        },
    }
}

/// Parses a JSON scalar; the table's strings need no escapes.
fn literal(text: &'static str) -> Value {
    if text == "true" {
        return Value::Bool(true);
    }
    match text.parse() {
        Ok(number) => Value::Int(number),
        Err(_) => Value::String(Str::const_new(text.trim_matches('"'))),
    }
}

fn type_of(text: &str, package: &str) -> Type {
    match text {
        "bool" => Type::Bool,
        "int" => Type::Int32,
        "long" => Type::Int64,
        "double" => Type::Double,
        "str" => Type::String,
        "strs" => Type::Strings,
        "bytes" => Type::Bytes,
        "time" => Type::Time,
        "microtime" => Type::MicroTime,
        "duration" => Type::Duration,
        "quantity" => Type::Quantity,
        "intstr" => Type::IntOrString,
        "raw" => Type::RawExtension,
        "json" => Type::Json,
        "fields" => Type::FieldsV1,
        "schemaOrArray" => Type::SchemaUnion(SchemaUnion::OrArray, schema(package)),
        "schemaOrBool" => Type::SchemaUnion(SchemaUnion::OrBool, schema(package)),
        "schemaOrStrings" => Type::SchemaUnion(SchemaUnion::OrStringArray, schema(package)),
        reference => Type::Message(resolve(reference, package)),
    }
}

fn schema(package: &str) -> MessageRef {
    resolve(".JSONSchemaProps", package)
}

fn resolve(reference: &str, package: &str) -> MessageRef {
    let found = if reference.starts_with('.') {
        find(&format!("{package}{reference}"))
    } else if let Some(name) = reference.strip_prefix("meta.") {
        find(&format!("{META}.{name}"))
    } else if let Some(name) = reference.strip_prefix("core.") {
        find(&format!("{CORE}.{name}"))
    } else {
        find(reference)
    };
    found.expect("the table holds every message its messages refer to")
}
