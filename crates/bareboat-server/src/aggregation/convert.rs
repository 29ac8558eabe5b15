//! Converts the part of an OpenAPI 2 document about one version to OpenAPI 3.

use super::merge::{collect, is_below};
use bareboat_api::{Map, Value, value};
use std::collections::BTreeSet;

const OLD_REFERENCE: &str = "#/definitions/";
const METHODS: [&str; 7] = ["get", "put", "post", "delete", "options", "head", "patch"];
/// Members of a parameter that OpenAPI 3 keeps in its schema.
const IN_SCHEMA: [&str; 8] = [
    "type",
    "format",
    "items",
    "default",
    "enum",
    "uniqueItems",
    "minimum",
    "maximum",
];

/// Returns an OpenAPI 3 document with the paths below a root such as `/apis/metrics.k8s.io/v1beta1`.
pub(super) fn to_v3(document: &Value, root: &str) -> Value {
    let old_paths = document.get("paths").and_then(Value::as_object);
    let offered = document.get("definitions").and_then(Value::as_object);
    let shared = document.get("parameters").and_then(Value::as_object);
    let mut wanted = BTreeSet::new();
    let mut paths = Map::new();
    for (path, item) in old_paths.into_iter().flat_map(Map::iter) {
        if is_below(path, root) {
            collect(item, offered, &mut wanted);
            paths.insert(path, path_item(item, shared));
        }
    }
    let mut schemas = Map::new();
    for name in &wanted {
        if let Some(schema) = offered.and_then(|all| all.get(name)) {
            let mut schema = schema.clone();
            move_references(&mut schema);
            schemas.insert(name.as_str(), schema);
        }
    }
    let info = document.get("info").cloned().unwrap_or(value!({}));
    value!({
        "openapi": "3.0.0",
        "info": info,
        "paths": paths,
        "components": {"schemas": schemas},
    })
}

fn path_item(item: &Value, shared: Option<&Map>) -> Value {
    let mut out = Map::new();
    for (name, member) in item.as_object().into_iter().flat_map(Map::iter) {
        if METHODS.contains(&name) {
            out.insert(name, operation(member, shared));
        } else if name == "parameters" {
            let (parameters, _) = parameters(member, shared);
            out.insert(name, Value::Array(parameters));
        }
    }
    Value::Object(out)
}

fn operation(old: &Value, shared: Option<&Map>) -> Value {
    let media = |name: &str| {
        let list = old.get(name).and_then(Value::as_array).unwrap_or(&[]);
        let list: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
        match list.is_empty() {
            true => vec!["application/json"],
            false => list,
        }
    };
    let content = |media: &[&str], schema: &Value| {
        let mut schema = schema.clone();
        move_references(&mut schema);
        let types = media.iter();
        let types: Map = types
            .map(|media| (*media, value!({"schema": (schema.clone())})))
            .collect();
        Value::Object(types)
    };
    let mut out = Map::new();
    for (name, member) in old.as_object().into_iter().flat_map(Map::iter) {
        match name {
            "parameters" => {
                let (parameters, body) = parameters(member, shared);
                if !parameters.is_empty() {
                    out.insert("parameters", Value::Array(parameters));
                }
                if let Some(body) = body {
                    let schema = body.get("schema").cloned().unwrap_or_default();
                    let mut made = value!({"content": (content(&media("consumes"), &schema))});
                    if body.get("required") == Some(&Value::Bool(true)) {
                        made.make_object().insert("required", value!(true));
                    }
                    out.insert("requestBody", made);
                }
            }
            "responses" => {
                let mut responses = Map::new();
                for (code, response) in member.as_object().into_iter().flat_map(Map::iter) {
                    let text = response.get("description").cloned();
                    let mut made = value!({"description": (text.unwrap_or(value!("")))});
                    if let Some(schema) = response.get("schema") {
                        let body = content(&media("produces"), schema);
                        made.make_object().insert("content", body);
                    }
                    responses.insert(code, made);
                }
                out.insert("responses", Value::Object(responses));
            }
            "consumes" | "produces" | "schemes" => {}
            other => {
                out.insert(other, member.clone());
            }
        }
    }
    Value::Object(out)
}

/// Converts parameters; the one that is the body is returned by itself.
fn parameters(list: &Value, shared: Option<&Map>) -> (Vec<Value>, Option<Value>) {
    let (mut out, mut body) = (Vec::new(), None);
    for old in list.as_array().unwrap_or(&[]) {
        let name = old.get("$ref").and_then(Value::as_str);
        let old = match name.and_then(|name| name.strip_prefix("#/parameters/")) {
            Some(name) => match shared.and_then(|shared| shared.get(name)) {
                Some(found) => found,
                None => continue,
            },
            None => old,
        };
        if old.get("in").and_then(Value::as_str) == Some("body") {
            body = Some(old.clone());
            continue;
        }
        let (mut made, mut schema) = (Map::new(), Map::new());
        for (key, member) in old.as_object().into_iter().flat_map(Map::iter) {
            match IN_SCHEMA.contains(&key) {
                true => schema.insert(key, member.clone()),
                false => made.insert(key, member.clone()),
            };
        }
        made.insert("schema", Value::Object(schema));
        out.push(Value::Object(made));
    }
    (out, body)
}

fn move_references(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(move_references),
        Value::Object(members) => {
            let name = members.get("$ref").and_then(Value::as_str);
            if let Some(name) = name.and_then(|name| name.strip_prefix(OLD_REFERENCE)) {
                let moved = format!("#/components/schemas/{name}");
                members.insert("$ref", Value::string(&moved));
            }
            members
                .iter_mut()
                .for_each(|(_, member)| move_references(member));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_and_schemas_are_converted() {
        let old = value!({
            "swagger": "2.0",
            "info": {"title": "t", "version": "1"},
            "parameters": {"pretty-x": {"name": "pretty", "in": "query", "type": "string", "uniqueItems": true}},
            "paths": {
                "/apis/m.io/v1/things": {
                    "post": {
                        "consumes": ["application/json", "application/yaml"],
                        "produces": ["application/json"],
                        "parameters": [
                            {"$ref": "#/parameters/pretty-x"},
                            {"in": "body", "name": "body", "required": true, "schema": {"$ref": "#/definitions/Thing"}},
                        ],
                        "responses": {"200": {"description": "OK", "schema": {"$ref": "#/definitions/Thing"}}},
                        "x-kubernetes-action": "post",
                    },
                },
                "/apis/m.io/v10/others": {"get": {}},
            },
            "definitions": {
                "Thing": {"properties": {"a": {"$ref": "#/definitions/Part"}}},
                "Part": {"type": "string"},
                "Unused": {},
            },
        });
        let thing = value!({"schema": {"$ref": "#/components/schemas/Thing"}});
        assert_eq!(
            to_v3(&old, "/apis/m.io/v1"),
            value!({
                "openapi": "3.0.0",
                "info": {"title": "t", "version": "1"},
                "paths": {"/apis/m.io/v1/things": {"post": {
                    "parameters": [{"name": "pretty", "in": "query", "schema": {"type": "string", "uniqueItems": true}}],
                    "requestBody": {
                        "required": true,
                        "content": {"application/json": (thing.clone()), "application/yaml": (thing.clone())},
                    },
                    "responses": {"200": {"description": "OK", "content": {"application/json": (thing.clone())}}},
                    "x-kubernetes-action": "post",
                }}},
                "components": {"schemas": {
                    "Thing": {"properties": {"a": {"$ref": "#/components/schemas/Part"}}},
                    "Part": {"type": "string"},
                }},
            })
        );
    }
}
