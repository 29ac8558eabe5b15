//! Writes routes and definitions as OpenAPI 3.0.

use super::message::reference;
use super::parameters::{self, Parameter, ParameterIn};
use super::routes::{Answer, Body, Operation, Route};
use bareboat_api::{Map, Str, Value, value};

/// Returns an OpenAPI 3 document with these paths and schemas.
pub(super) fn document(title: &str, version: &str, paths: Map, schemas: Map) -> Value {
    value!({
        "openapi": "3.0.0",
        "info": {"title": title, "version": version},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "BearerToken": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "authorization",
                    "description": "Bearer Token authentication",
                },
            },
        },
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

fn write(operation: &Operation, used: &mut dyn FnMut(&Str)) -> Value {
    let mut members = Map::new();
    members.insert("operationId", operation.id.as_str().into());
    members.insert("description", operation.description.as_str().into());
    members.insert("tags", value!([(operation.tag.as_str())]));
    members.insert("responses", responses(operation, used));
    if !operation.query.is_empty() {
        let query = operation
            .query
            .iter()
            .map(|name| parameter(&parameters::query(name)))
            .collect();
        members.insert("parameters", query);
    }
    if let Some(body) = &operation.body {
        used(&body.definition);
        members.insert("requestBody", request_body(body));
    }
    if let Some((action, subject)) = &operation.action {
        members.insert("x-kubernetes-action", (*action).into());
        members.insert("x-kubernetes-group-version-kind", subject.clone());
    }
    Value::Object(members)
}

fn parameter(parameter: &Parameter) -> Value {
    let mut members = Map::new();
    members.insert("name", parameter.name.as_str().into());
    members.insert("description", parameter.description.as_str().into());
    members.insert(
        "schema",
        value!({"type": (parameter.ty), "uniqueItems": true}),
    );
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

fn request_body(body: &Body) -> Value {
    let schema = Value::Object(reference(&body.definition));
    let mut members = Map::new();
    members.insert("content", content(body.media, &schema));
    if body.required {
        members.insert("required", value!(true));
    }
    Value::Object(members)
}

fn responses(operation: &Operation, used: &mut dyn FnMut(&Str)) -> Value {
    let schema = match &operation.answer {
        Answer::Definition(name) => {
            used(name);
            Value::Object(reference(name))
        }
        Answer::Text => value!({"type": "string"}),
    };
    let mut members = Map::new();
    for code in operation.codes {
        let answer = value!({
            "description": (meaning(*code)),
            "content": (content(operation.produces, &schema)),
        });
        members.insert(code.to_string(), answer);
    }
    members.insert("401", value!({"description": (meaning(401))}));
    Value::Object(members)
}

fn content(media: &[&str], schema: &Value) -> Value {
    let types: Map = media
        .iter()
        .map(|media| (*media, value!({"schema": (schema.clone())})))
        .collect();
    Value::Object(types)
}

/// Returns the meaning of a status code.
pub(super) fn meaning(code: u16) -> &'static str {
    match code {
        201 => "Created",
        202 => "Accepted",
        401 => "Unauthorized",
        _ => "OK",
    }
}
