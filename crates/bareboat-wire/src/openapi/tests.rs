//! OpenAPI documents in protobuf.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::proto::raw::{Reader, Wire};
use bareboat_api::value;
use proptest::prelude::*;

/// Prints a message as `number:payload`, where payloads that are messages are in brackets. Payloads
/// that consist of letters are taken for strings.
fn show(bytes: &[u8]) -> String {
    let mut reader = Reader::new(bytes);
    let mut parts = Vec::new();
    while !reader.is_empty() {
        let (number, wire) = reader.tag().unwrap();
        parts.push(match wire {
            Wire::Varint => format!("{number}:{}", reader.varint().unwrap()),
            Wire::Fixed64 => format!("{number}:{}", f64::from_bits(reader.fixed64().unwrap())),
            _ => {
                let bytes = reader.bytes().unwrap();
                match std::str::from_utf8(bytes) {
                    Ok(text)
                        if text.chars().all(|c| !c.is_control() || c == '\n')
                            && !text.is_empty() =>
                    {
                        format!("{number}:{text:?}")
                    }
                    _ => format!("{number}:[{}]", show(bytes)),
                }
            }
        });
    }
    parts.join(" ")
}

#[test]
fn a_v2_document_has_gnostics_field_numbers() {
    let document = value!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": "v1.36"},
        "paths": {"/api/v1/foos": {
            "get": {
                "operationId": "listFoo",
                "parameters": [
                    {"in": "query", "name": "watch", "type": "boolean", "uniqueItems": true},
                    {"in": "body", "name": "body", "schema": {"$ref": "#/definitions/Foo"}},
                    {"$ref": "#/parameters/p"},
                ],
                "responses": {"200": {"description": "OK", "schema": {"type": "string"}}},
                "x-kubernetes-action": "list",
            },
        }},
        "definitions": {"Foo": {
            "type": "object",
            "required": ["a"],
            "properties": {"a": {"type": "array", "items": {"type": "string"}, "default": {}}},
            "additionalProperties": {"type": "integer"},
            "x-kubernetes-group-version-kind": [{"group": "", "kind": "Foo", "version": "v1"}],
        }},
        "security": [{"BearerToken": []}],
        "securityDefinitions": {"BearerToken": {"type": "apiKey", "name": "authorization", "in": "header"}},
    });
    let shown = show(&encode_v2(&document).unwrap());
    for expected in [
        r#"1:"2.0" 2:[1:"Kubernetes" 2:"v1.36"]"#,
        r#"8:[2:[1:"/api/v1/foos" 2:[2:[5:"listFoo""#,
        r#"8:[1:[2:[3:[2:"query" 4:"watch" 6:"boolean" 20:1]]]]"#,
        r##"8:[1:[1:[2:"body" 3:"body" 5:[1:"#/definitions/Foo"]]]]"##,
        r##"8:[2:[1:"#/parameters/p"]]"##,
        r#"9:[1:[1:"200" 2:[1:[1:"OK" 2:[1:[22:[1:"string"]]]]]]]"#,
        r#"13:[1:"x-kubernetes-action" 2:[2:"list\n"]]"#,
        r#"9:[1:[1:"Foo" 2:[19:"a" 21:[1:[22:[1:"integer"]]] 22:[1:"object"]"#,
        r#"25:[1:[1:"a" 2:[5:[2:"{}\n"] 22:[1:"array"] 23:[1:[22:[1:"string"]]]]]]"#,
        r#"31:[1:"x-kubernetes-group-version-kind" 2:[2:"- group: \"\"\n  kind: Foo\n  version: v1\n"]]"#,
        r#"12:[1:[1:"BearerToken" 2:[]]]"#,
        r#"13:[1:[1:"BearerToken" 2:[2:[1:"apiKey" 2:"authorization" 3:"header"]]]]"#,
    ] {
        assert!(shown.contains(expected), "{expected}\nis not in\n{shown}");
    }
}

#[test]
fn a_v3_document_has_gnostics_field_numbers() {
    let document = value!({
        "openapi": "3.0.0",
        "info": {"title": "T", "version": "v1"},
        "paths": {"/foos": {"patch": {
            "parameters": [{"name": "force", "in": "query", "schema": {"type": "boolean"}}],
            "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/c"}}}},
            "responses": {"default": {"description": "no"}, "201": {"description": "yes"}},
        }}},
        "components": {"schemas": {"Foo": {
            "type": "object",
            "properties": {
                "a": {"default": 3, "type": "integer", "minimum": 1.5},
                "b": {"default": "x", "allOf": [{"$ref": "#/d"}]},
                "c": {"items": {"type": "string"}, "nullable": true, "default": {}},
            },
            "additionalProperties": true,
            "x-kubernetes-map-type": "atomic",
        }}},
    });
    let shown = show(&encode_v3(&document).unwrap());
    for expected in [
        r#"1:"3.0.0" 2:[1:"T" 6:"v1"]"#,
        r#"4:[1:[1:"/foos" 2:[10:[6:[1:[1:"force" 2:"query" 10:[1:[25:"boolean"]]]]"#,
        r##"7:[1:[2:[1:[1:"application/json" 2:[1:[2:[1:"#/c"]]]]]]]"##,
        r#"8:[2:[1:"201" 2:[1:[1:"yes"]]] 1:[1:[1:"no"]]]"#,
        r#"5:[1:[1:[1:"Foo" 2:[1:[25:"object" 31:["#,
        r#"1:[1:"a" 2:[1:[13:1.5 25:"integer" 33:[1:3]]]]"#,
        r##"1:[1:"b" 2:[1:[26:[2:[1:"#/d"]] 33:[3:"x"]]]]"##,
        r#"1:[1:"c" 2:[1:[1:1 30:[1:[1:[25:"string"]]] 33:[]]]]"#,
        r#"32:[2:1]"#,
        r#"36:[1:"x-kubernetes-map-type" 2:[2:"atomic\n"]]"#,
    ] {
        assert!(shown.contains(expected), "{expected}\nis not in\n{shown}");
    }
}

proptest! {
    #[test]
    fn documents_of_any_shape_are_encoded(text in r#"[\[\]{}":,a-z0-9]{0,60}"#) {
        if let Ok(parsed) = crate::json::parse(text.as_bytes()) {
            let document = value!({"definitions": {"A": (parsed.value.clone())}, "paths": (parsed.value)});
            prop_assert!(encode_v2(&document).is_ok());
            prop_assert!(encode_v3(&document).is_ok());
        }
    }
}
