//! Custom objects.

use super::*;
use bareboat_schema::Source;

/// Returns the work that the server does when a custom object replaces another one; both have `value` in `spec.a`.
fn custom(schema: Value, value: Value) -> impl FnOnce() {
    let schema = definition(
        whole(object(vec![
            ("type", value!("object")),
            ("properties", value!({"a": schema})),
        ])),
        vec![],
    );
    move || {
        let schema = crd::compile(&schema, "v1", &SchemaCache::new());
        let mut object = value!({"apiVersion": "example.com/v1", "kind": "Thing",
            "metadata": {"name": "a"}, "spec": {"a": value}});
        let old = object.clone();
        let mut unknown = Vec::new();
        let _ = schema.coerce(&mut object, Source::Request, Some(&mut unknown));
        let _ = schema.default(&mut object);
        let _ = schema.validate(&object, None, Vec::new());
        let _ = schema.validate(&object, Some(&old), Vec::new());
        // Every value has changed.
        object.make_object().remove("metadata");
        let _ = schema.validate(&object, Some(&old), Vec::new());
    }
}

#[test]
fn cost_grows_linearly_with_each_list_of_a_custom_object() {
    let keyed = || {
        value!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
        "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"},
            "v": {"type": "string", "maxLength": 1, "default": "d"}}}})
    };
    let element = |n: usize| value!({"k": (format!("k{n}"))});
    check("a map list", FEW, |count| {
        custom(keyed(), list(count, element))
    });
    check("a map list with repeated keys", FEW, |count| {
        custom(keyed(), list(count, |n| element(n / 2)))
    });
    check("a map list with wrong values", FEW, |count| {
        custom(
            keyed(),
            list(count, |n| value!({"k": (format!("k{n}")), "v": "long"})),
        )
    });
    let unique =
        || value!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}});
    check("a set", FEW, |count| custom(unique(), names(count, "e")));
    check("a set with repeated values", FEW, |count| {
        custom(unique(), list(count, |n| value!(format!("e{}", n / 2))))
    });
    check("an atomic list", FEW, |count| {
        custom(
            value!({"type": "array", "items": {"type": "string"}}),
            names(count, "e"),
        )
    });
    check("declared properties", FEW, |count| {
        custom(
            value!({"type": "object", "properties": (map(count, |_| text()))}),
            map(count, |_| value!("v")),
        )
    });
    check("unknown properties", FEW, |count| {
        custom(
            value!({"type": "object", "properties": {"a": {"type": "string"}}}),
            map(count, |_| value!("v")),
        )
    });
    check("a map", FEW, |count| {
        custom(
            value!({"type": "object", "additionalProperties": {"type": "string"}}),
            map(count, |_| value!("v")),
        )
    });
    check("required properties that are missing", FEW, |count| {
        custom(
            value!({"type": "object", "required": (names(count, "e")), "properties": (map(count, |_| text()))}),
            value!({}),
        )
    });
    check("values outside of an enum", FEW, |count| {
        let items = value!({"type": "string", "enum": (names(count, "e"))});
        custom(value!({"type": "array", "items": items}), names(count, "f"))
    });
    check("values that fit no alternative", FEW, |count| {
        let items = value!({"type": "string", "anyOf": [{"maxLength": 1}, {"minLength": 9}]});
        custom(value!({"type": "array", "items": items}), names(count, "e"))
    });
    check("embedded resources", FEW, |count| {
        let items = value!({"type": "object", "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true});
        let one = |n: usize| value!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": (format!("e{n}")), "x": 1}});
        custom(value!({"type": "array", "items": items}), list(count, one))
    });
    check("defaults", FEW, |count| {
        let properties = map(count, |_| value!({"type": "string", "default": "a"}));
        custom(
            value!({"type": "object", "properties": properties}),
            value!({}),
        )
    });
    check("rules of elements", FEW, |count| {
        let items = value!({"type": "string", "maxLength": 8, "x-kubernetes-validations": [{"rule": "self == oldSelf"}, {"rule": "self != 'x'"}]});
        custom(
            value!({"type": "array", "maxItems": 100000, "x-kubernetes-list-type": "atomic", "items": items}),
            names(count, "e"),
        )
    });
}
