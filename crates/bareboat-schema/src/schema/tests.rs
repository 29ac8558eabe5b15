//! Tests of parsing, sharing and typing.

use super::*;
use crate::testing::{schema, yaml};
use bareboat_api::typing::{NodeType, TypeNode};

#[test]
fn descriptions_do_not_change_the_hash_and_everything_else_does() {
    let plain = schema("{type: object, properties: {a: {type: string}}}");
    let described = schema(
        "{type: object, description: x, properties: {a: {type: string, title: t, example: e}}}",
    );
    assert_eq!(plain.hash(), described.hash());
    for other in [
        "{type: object, properties: {b: {type: string}}}",
        "{type: object, properties: {a: {type: integer}}}",
        "{type: object, properties: {a: {type: string, default: x}}}",
        "{type: object, properties: {a: {type: string, maxLength: 3}}}",
        "{type: object, additionalProperties: {type: string}}",
        "{type: object, properties: {a: {type: string}}, anyOf: [{required: [a]}]}",
        "{type: object, properties: {a: {type: string}}, allOf: [{required: [a]}]}",
        "{type: object, properties: {a: {type: string}}, x-kubernetes-validations: [{rule: x}]}",
    ] {
        assert_ne!(plain.hash(), schema(other).hash(), "{other}");
    }
}

#[test]
fn equal_parts_are_stored_once_and_freed_with_their_last_user() {
    let cache = SchemaCache::new();
    let text = "{type: object, properties: {a: {type: object, properties: {x: {type: string}}}, \
                b: {type: object, properties: {x: {type: string}}}}}";
    let one = cache.parse(&yaml(text)).unwrap();
    let two = cache.parse(&yaml(text)).unwrap();
    let part = |schema: &Schema, name: &str| schema.root.property_arc(name).cloned().unwrap();
    assert!(Arc::ptr_eq(&one.root, &two.root));
    assert!(Arc::ptr_eq(&part(&one, "a"), &part(&one, "b")));
    let weak = Arc::downgrade(&one.root);
    drop((one, two));
    assert!(weak.upgrade().is_none());
}

#[test]
fn a_schema_deeper_than_any_object_is_refused() {
    let mut value = yaml("{type: string}");
    for _ in 0..5_000 {
        let mut map = bareboat_api::Map::new();
        map.insert("items", value);
        value = Value::Object(map);
    }
    assert_eq!(Schema::parse(&value).unwrap_err(), SchemaError::TooDeep);
    // Dropping a value that deep would overflow the stack.
    std::mem::forget(value);
    assert_eq!(
        Schema::parse(&Value::Null).unwrap_err(),
        SchemaError::NotAnObject
    );
}

#[test]
fn merging_gets_lists_maps_and_keys_from_the_schema() {
    let schema = schema(
        r#"
type: object
properties:
  spec:
    type: object
    properties:
      set: {type: array, x-kubernetes-list-type: set, items: {type: string}}
      atomic: {type: array, items: {type: string}}
      map:
        type: array
        x-kubernetes-list-type: map
        x-kubernetes-list-map-keys: [name, port]
        items:
          type: object
          properties: {name: {type: string}, port: {type: integer, default: 80}}
      labels: {type: object, additionalProperties: {type: string}}
      whole: {type: object, x-kubernetes-map-type: atomic, properties: {a: {type: string}}}
      free: {type: object, x-kubernetes-preserve-unknown-fields: true}
      half: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: string}}}
      port: {x-kubernetes-int-or-string: true}
      child: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
"#,
    );
    let spec = schema.field("spec").unwrap();
    let form = |name: &str| spec.field(name).unwrap().node_type();
    assert_eq!(schema.node_type(), NodeType::Struct);
    assert_eq!(form("set"), NodeType::List(ListType::Set));
    assert_eq!(form("atomic"), NodeType::List(ListType::Atomic));
    assert_eq!(form("map"), NodeType::List(ListType::Map));
    assert_eq!(form("labels"), NodeType::Map);
    assert_eq!(form("free"), NodeType::Untyped);
    assert_eq!(form("port"), NodeType::Scalar);
    assert!(spec.field("whole").unwrap().is_atomic());
    assert!(spec.field("half").unwrap().preserves_unknown());
    assert!(spec.field("nope").is_none());
    let keys = spec.field("map").unwrap().list_keys();
    assert_eq!(keys[0].name, "name");
    assert_eq!(keys[1].default, Some(Value::Int(80)));
    for metadata in [
        schema.field("metadata").unwrap(),
        spec.field("child").unwrap().field("metadata").unwrap(),
    ] {
        let owners = metadata.field("ownerReferences").unwrap();
        assert_eq!(owners.node_type(), NodeType::List(ListType::Map));
        assert_eq!(owners.list_keys()[0].name, "uid");
        assert!(owners.items().unwrap().is_atomic());
        let finalizers = metadata.field("finalizers").unwrap();
        assert_eq!(finalizers.node_type(), NodeType::List(ListType::Set));
    }
    assert_eq!(
        schema.field("apiVersion").unwrap().node_type(),
        NodeType::Scalar
    );
}

#[test]
fn members_in_order_are_found_whatever_is_left_out() {
    let names: Vec<String> = (0..12).map(|at| format!("m{at:02}")).collect();
    let properties: Vec<String> = names
        .iter()
        .map(|name| format!("{name}: {{type: string}}"))
        .collect();
    let schema = schema(&format!(
        "{{type: object, properties: {{{}}}}}",
        properties.join(", ")
    ));
    for chosen in 0_u32..1 << names.len() {
        let mut declared = schema.root.in_order();
        for (at, name) in names.iter().enumerate() {
            let undeclared = format!("{name}x");
            if chosen & 1 << at != 0 {
                assert!(declared.property(name).is_some(), "{name} of {chosen:b}");
            } else if at % 3 == 0 {
                assert!(declared.property(&undeclared).is_none());
            }
        }
    }
}
