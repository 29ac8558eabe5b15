//! Writes routes and definitions as OpenAPI 2.0, also called Swagger.

use super::names::COMPONENTS;
use super::parameters::{self, Parameter, ParameterIn};
use super::routes::{Answer, Operation, Route};
use super::v3::meaning;
use super::walk;
use bareboat_api::{Map, Str, Value, value};

const DEFINITIONS: &str = "#/definitions/";

/// Parameters that clients expect inside operations rather than behind a reference.
const INLINE: [&str; 2] = ["dryRun", "fieldValidation"];

/// Returns an OpenAPI 2 document with these paths and definitions.
pub(super) fn document(title: &str, version: &str, paths: Map, definitions: Map) -> Value {
    value!({
        "swagger": "2.0",
        "info": {"title": title, "version": version},
        "paths": paths,
        "definitions": definitions,
        "parameters": (shared_parameters()),
        "securityDefinitions": {
            "BearerToken": {
                "type": "apiKey",
                "in": "header",
                "name": "authorization",
                "description": "Bearer Token authentication",
            },
        },
        "security": [{"BearerToken": []}],
    })
}

/// Returns a path item; calls `used` with each definition it refers to.
pub(super) fn path_item(route: &Route, used: &mut dyn FnMut(&Str)) -> Value {
    let mut members = Map::new();
    if !route.parameters.is_empty() {
        let shared = route.parameters.iter().map(parameter).collect();
        members.insert("parameters", shared);
    }
    for (method, operation) in &route.operations {
        members.insert(*method, write(operation, used));
    }
    Value::Object(members)
}

/// Converts an OpenAPI 3 schema to OpenAPI 2.
pub(super) fn convert(schema: &mut Value) {
    let Some(members) = schema.as_object_mut() else {
        return;
    };
    // Upstream's OpenAPI 2 documents have no defaults, and some clients would apply them.
    members.remove("default");
    if let Some(Value::Array(all)) = members.get("allOf")
        && let [only] = all.as_slice()
        && let Some(reference) = only.get("$ref").cloned()
    {
        members.remove("allOf");
        members.insert("$ref", reference);
    }
    // IntOrString and Quantity are strings here.
    if members.remove("oneOf").is_some() {
        members.insert("type", value!("string"));
    }
    if let Some(name) = members
        .get_str("$ref")
        .and_then(|reference| reference.strip_prefix(COMPONENTS))
    {
        let reference = format!("{DEFINITIONS}{name}");
        members.insert("$ref", reference.into());
    }
    walk::each_inner(members, &mut convert);
}

fn write(operation: &Operation, used: &mut dyn FnMut(&Str)) -> Value {
    let mut inputs = Vec::new();
    let mut consumes = vec![value!("*/*")];
    if let Some(body) = &operation.body {
        used(&body.definition);
        consumes = body.media.iter().map(|media| Value::from(*media)).collect();
        let mut input =
            value!({"in": "body", "name": "body", "schema": (schema(&body.definition))});
        if body.required {
            input.make_object().insert("required", value!(true));
        }
        inputs.push(input);
    }
    inputs.extend(
        operation
            .query
            .iter()
            .map(|name| parameter(&parameters::query(name))),
    );
    let mut members = Map::new();
    members.insert("operationId", operation.id.as_str().into());
    members.insert("description", operation.description.as_str().into());
    members.insert("tags", value!([(operation.tag.as_str())]));
    members.insert("schemes", value!(["https"]));
    members.insert("consumes", consumes.into());
    members.insert("produces", operation.produces.iter().copied().collect());
    members.insert("responses", responses(operation, used));
    if !inputs.is_empty() {
        members.insert("parameters", inputs.into());
    }
    if let Some((action, subject)) = &operation.action {
        members.insert("x-kubernetes-action", (*action).into());
        members.insert("x-kubernetes-group-version-kind", subject.clone());
    }
    Value::Object(members)
}

fn responses(operation: &Operation, used: &mut dyn FnMut(&Str)) -> Value {
    let schema = match &operation.answer {
        Answer::Definition(name) => {
            used(name);
            schema(name)
        }
        Answer::Text => value!({"type": "string"}),
    };
    let mut members = Map::new();
    for code in operation.codes {
        let answer = value!({"description": (meaning(*code)), "schema": (schema.clone())});
        members.insert(code.to_string(), answer);
    }
    members.insert("401", value!({"description": (meaning(401))}));
    Value::Object(members)
}

fn schema(definition: &str) -> Value {
    value!({"$ref": (format!("{DEFINITIONS}{definition}"))})
}

/// Returns a parameter, or a reference to it if it is the same in all operations.
fn parameter(parameter: &Parameter) -> Value {
    let shared = !parameter.is_option
        && parameter.name != "name"
        && !INLINE.contains(&parameter.name.as_str());
    if shared {
        return value!({"$ref": (format!("#/parameters/{}", parameter.name))});
    }
    spelled_out(parameter)
}

fn spelled_out(parameter: &Parameter) -> Value {
    let mut members = Map::new();
    members.insert("name", parameter.name.as_str().into());
    members.insert("description", parameter.description.as_str().into());
    members.insert("type", parameter.ty.into());
    members.insert("uniqueItems", value!(true));
    match parameter.location {
        ParameterIn::Path => {
            members.insert("in", value!("path"));
            members.insert("required", value!(true));
        }
        ParameterIn::Query => {
            members.insert("in", value!("query"));
        }
    }
    Value::Object(members)
}

fn shared_parameters() -> Value {
    let mut shared = Map::new();
    shared.insert("namespace", spelled_out(&Parameter::namespace()));
    shared.insert("path", spelled_out(&Parameter::path()));
    let names = [
        &[parameters::PRETTY],
        parameters::LIST,
        parameters::DELETE_COLLECTION,
        parameters::PATCH,
    ];
    for name in names.into_iter().flatten() {
        if !INLINE.contains(name) {
            shared.insert(*name, spelled_out(&parameters::query(name)));
        }
    }
    Value::Object(shared)
}
