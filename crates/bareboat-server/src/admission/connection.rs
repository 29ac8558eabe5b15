//! Connections in admission: the options object that hooks see in place of an object.
//!
//! Built-in kinds have a type for it, such as PodExecOptions, whose fields are parameters of the query. Subresources of
//! other kinds have a ConnectOptions with method, path and parameters.

mod changed;

use crate::protobuf::MetaMessages;
use crate::request::ask::Ask;
use crate::request::options::is_true;
use crate::request::query::Query;
use bareboat_api::facts::{Cardinality, Field, MessageRef, Type};
use bareboat_api::kind::{Kind, Origin, Subresource};
use bareboat_api::{Map, Object, Value};

/// The apiVersion of options of subresources that have no type for them.
const GENERIC: &str = "connect.bareboat.dev/v1";
/// Members of options that are not parameters of the query.
const FIXED: [&str; 3] = ["apiVersion", "kind", "path"];

/// The options of a connection.
pub(crate) struct ConnectionOptions {
    /// The options as hooks see and change them.
    pub(crate) object: Object,
    /// The options as the client sent them.
    sent: Object,
    /// The type of the options; none if it is unknown, so that hooks cannot change them.
    message: Option<MessageRef>,
}

impl ConnectionOptions {
    fn new(object: Object, message: Option<MessageRef>) -> ConnectionOptions {
        ConnectionOptions {
            sent: object.clone(),
            object,
            message,
        }
    }

    fn fields(&self) -> &[Field] {
        let message = self.message.as_ref();
        message.map_or(&[][..], |message| &message.fields)
    }
}

/// Returns the options of a connection; `None` if the subresource is read rather than connected to, such as `log`.
pub(crate) fn options_of_connection(
    kind: &Kind,
    part: &Subresource,
    ask: &Ask,
    messages: &MetaMessages,
) -> Option<ConnectionOptions> {
    let typed = part.response.as_ref();
    let Some((group, version, kind)) = typed.filter(|(_, _, kind)| kind.ends_with("Options"))
    else {
        let is_read = kind.origin == Origin::BuiltIn && typed.is_some();
        return (!is_read).then(|| ConnectionOptions::new(generic(ask), None));
    };
    let api_version = match group.as_str() {
        "" => version.to_string(),
        group => format!("{group}/{version}"),
    };
    let mut object = Object::default();
    object.set_type(&api_version, kind);
    let package = match group.as_str() {
        "" => "core",
        group => group.split('.').next().unwrap_or(group),
    };
    let message = messages.named(&format!("k8s.io.api.{package}.{version}.{kind}"));
    let fields = message.as_ref().map_or(&[][..], |message| &message.fields);
    read(fields, &ask.query, object.map_mut());
    // The path below a proxy is a part of the URL.
    if fields.iter().any(|field| field.json == "path") {
        object.map_mut().insert("path", path(ask));
    }
    Some(ConnectionOptions::new(object, message))
}

/// Reads the options in a query.
fn read(fields: &[Field], query: &Query, options: &mut Map) {
    for field in fields {
        let name = field.json.as_str();
        if FIXED.contains(&name) {
            continue;
        }
        let mut given = query.all(name);
        let found: Option<Value> = match (field.cardinality, &field.ty) {
            // Handlers also accept numbers with commas between them.
            (Cardinality::List, Type::Int32 | Type::Int64) => {
                let numbers = given.flat_map(|text| text.split(',')).map(str::trim);
                Some(numbers.filter_map(|text| value(&field.ty, text)).collect())
            }
            (Cardinality::List, ty) => Some(given.filter_map(|text| value(ty, text)).collect()),
            (_, ty) => given.find_map(|text| value(ty, text)),
        };
        if let Some(found) = found.filter(|found| !is_empty(found)) {
            options.insert(name, found);
        }
    }
}

/// Returns whether options omit a value.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

fn value(ty: &Type, text: &str) -> Option<Value> {
    match ty {
        Type::Bool => Some(Value::Bool(is_true(text))),
        Type::Int32 | Type::Int64 => text.parse().ok().map(Value::Int),
        _ => Some(Value::string(text)),
    }
}

fn path(ask: &Ask) -> Value {
    let rest: Vec<&str> = ask.info.rest.iter().map(|part| part.as_str()).collect();
    Value::from(format!("/{}", rest.join("/")))
}

fn generic(ask: &Ask) -> Object {
    let mut object = Object::default();
    object.set_type(GENERIC, "ConnectOptions");
    let map = object.map_mut();
    map.insert("method", Value::string(ask.method.as_str()));
    map.insert("path", path(ask));
    let mut query = Map::new();
    for (name, text) in ask.query.iter() {
        let values = query.entry_or_insert_with(name, || Value::Array(Vec::new()));
        if let Some(values) = values.as_array_mut() {
            values.push(Value::string(text));
        }
    }
    map.insert("query", Value::Object(query));
    object
}
