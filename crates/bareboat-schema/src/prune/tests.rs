//! Tests of pruning and nulls.

use crate::testing::{schema, yaml};

fn check(declared: &str, object: &str, expected: &str, unknown: &[&str]) {
    let schema = schema(declared);
    let mut value = yaml(object);
    let mut found = Vec::new();
    schema.prune(&mut value, Some(&mut found));
    assert_eq!(value, yaml(expected), "{declared}");
    assert_eq!(found, unknown, "{declared}");
    // A pruned object has nothing left to prune.
    found.clear();
    schema.prune(&mut value, Some(&mut found));
    assert_eq!(value, yaml(expected));
    assert!(found.is_empty());
}

#[test]
fn undeclared_members_are_dropped_and_reported() {
    check(
        "{type: object, properties: {spec: {type: object, properties: {a: {type: string}}}}}",
        "{apiVersion: v1, kind: K, metadata: {x: 1}, spec: {a: b, c: 1, d: {e: 1}}, other: 1}",
        "{apiVersion: v1, kind: K, metadata: {x: 1}, spec: {a: b}}",
        &["other", "spec.c", "spec.d"],
    );
    check(
        "{type: object, properties: {list: {type: array, items: {type: object, properties: {a: {type: string}}}}}}",
        "{list: [{a: x, b: y}, {a: z}, {c: [1]}]}",
        "{list: [{a: x}, {a: z}, {}]}",
        &["list[0].b", "list[2].c"],
    );
    check(
        "{type: object, properties: {m: {type: object, additionalProperties: {type: object, properties: {a: {type: string}}}}}}",
        "{m: {k: {a: x, b: y}}}",
        "{m: {k: {a: x}}}",
        &["m.k.b"],
    );
}

#[test]
fn preserved_places_keep_unknown_members_and_prune_below_declared_ones() {
    let declared = "{type: object, properties: {free: {type: object, x-kubernetes-preserve-unknown-fields: true, \
                    properties: {known: {type: object, properties: {a: {type: string}}}}}}}";
    check(
        declared,
        "{free: {any: {thing: 1}, known: {a: x, b: y}}}",
        "{free: {any: {thing: 1}, known: {a: x}}}",
        &["free.known.b"],
    );
    check(
        "{type: object, properties: {l: {type: array, x-kubernetes-preserve-unknown-fields: true, \
         items: {type: object, properties: {a: {type: object, properties: {b: {type: string}}}}}}}}",
        "{l: [{x: 1, a: {b: c, d: e}}]}",
        "{l: [{x: 1, a: {b: c}}]}",
        &["l[0].a.d"],
    );
    check(
        "{type: object, x-kubernetes-preserve-unknown-fields: true}",
        "{a: {b: [1, {c: 2}]}}",
        "{a: {b: [1, {c: 2}]}}",
        &[],
    );
}

#[test]
fn embedded_resources_keep_their_type_and_metadata() {
    check(
        "{type: object, properties: {template: {type: object, x-kubernetes-embedded-resource: true, \
         properties: {spec: {type: object, properties: {a: {type: string}}}}}}}",
        "{template: {apiVersion: v1, kind: K, metadata: {name: x}, spec: {a: x, b: y}, status: {}}}",
        "{template: {apiVersion: v1, kind: K, metadata: {name: x}, spec: {a: x}}}",
        &["template.spec.b", "template.status"],
    );
}

#[test]
fn nulls_are_dropped_unless_allowed_or_replaced_by_a_default() {
    let schema = schema(
        "{type: object, properties: {a: {type: string}, b: {type: string, nullable: true}, \
         c: {type: string, default: x}, free: {x-kubernetes-preserve-unknown-fields: true}, \
         l: {type: array, items: {type: object, properties: {d: {type: string}}}}}}",
    );
    let mut value = yaml("{a: null, b: null, c: null, free: {z: null}, l: [null, {d: null}]}");
    schema.drop_nulls(&mut value);
    assert_eq!(
        value,
        yaml("{b: null, c: null, free: {z: null}, l: [null, {}]}")
    );
}
