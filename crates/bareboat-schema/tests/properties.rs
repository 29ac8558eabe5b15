//! Tests that random schemas and objects do not panic, and that pruning and defaulting are
//! idempotent.

#![allow(clippy::unwrap_used)]

use bareboat_api::{Map, Str, Value};
use bareboat_schema::crd;
use bareboat_schema::{Schema, Source};
use proptest::prelude::*;

fn name() -> impl Strategy<Value = Str> {
    prop::sample::select(vec!["a", "b", "spec", "metadata", "kind", "x-y", "n"]).prop_map(Str::new)
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (-3i64..4).prop_map(Value::Int),
        prop::sample::select(vec![0.5, 2.0, -1.5e20]).prop_map(Value::Float),
        prop::sample::select(vec!["", "a", "abc", "2024-01-01", "v1"]).prop_map(Value::string),
    ]
}

fn object() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(5, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec((name(), inner), 0..4)
                .prop_map(|members| Value::Object(Map::from_unsorted(members))),
        ]
    })
}

/// Returns schemas that are mostly valid, with some keywords that may not be.
fn schema() -> impl Strategy<Value = Value> {
    let leaf = (
        prop::sample::select(vec![
            "string", "integer", "number", "boolean", "object", "array", "",
        ]),
        prop::collection::vec(keyword(), 0..3),
    )
        .prop_map(|(kind, keywords)| {
            let mut map = Map::from_unsorted(keywords);
            map.insert("type", Value::string(kind));
            Value::Object(map)
        });
    leaf.prop_recursive(4, 40, 4, |inner| {
        (
            inner.clone(),
            prop::collection::vec((name(), inner.clone()), 0..4),
            prop::option::of(inner.clone()),
            prop::option::of((
                prop::sample::select(vec!["items", "additionalProperties", "not"]),
                inner.clone(),
            )),
            prop::option::of((
                prop::sample::select(vec!["anyOf", "allOf", "oneOf"]),
                prop::collection::vec(inner, 1..3),
            )),
        )
            .prop_map(|(base, members, items, single, list)| {
                let mut value = base;
                let map = value.make_object();
                if !members.is_empty() {
                    map.insert("type", Value::string("object"));
                    map.insert("properties", Value::Object(Map::from_unsorted(members)));
                } else if let Some(items) = items {
                    map.insert("type", Value::string("array"));
                    map.insert("items", items);
                }
                if let Some((key, schema)) = single {
                    map.insert(key, schema);
                }
                if let Some((key, list)) = list {
                    map.insert(key, Value::Array(list));
                }
                value
            })
    })
}

fn keyword() -> impl Strategy<Value = (Str, Value)> {
    let keys = vec![
        "default",
        "enum",
        "required",
        "pattern",
        "format",
        "minimum",
        "maximum",
        "maxLength",
        "minLength",
        "maxItems",
        "minItems",
        "maxProperties",
        "multipleOf",
        "nullable",
        "x-kubernetes-list-type",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-map-type",
        "x-kubernetes-int-or-string",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-validations",
        "properties",
        "items",
    ];
    let words = vec!["set", "map", "atomic", "date-time", "^a(", "[a-z]+", "uri"];
    let value = prop_oneof![
        object(),
        prop::sample::select(words).prop_map(Value::string),
        Just(Value::Bool(true)),
        Just(bareboat_api::value!(["a", "b"])),
        Just(bareboat_api::value!([{"rule": "self == oldSelf"}, {"rule": "has(self.a)"}])),
    ];
    (prop::sample::select(keys).prop_map(Str::new), value)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn pruning_and_defaulting_are_idempotent_and_do_not_panic(
        declared in schema(),
        object in object(),
        old in object(),
    ) {
        let schema = Schema::parse(&declared).unwrap();
        let mut value = object.clone();
        schema.prune(&mut value, None);
        let once = value.clone();
        let mut unknown = Vec::new();
        schema.prune(&mut value, Some(&mut unknown));
        prop_assert_eq!(&value, &once);
        prop_assert!(unknown.is_empty());

        schema.default(&mut value).unwrap();
        let once = value.clone();
        schema.default(&mut value).unwrap();
        prop_assert_eq!(&value, &once);

        schema.drop_nulls(&mut value);
        let _ = schema.coerce(&mut value, Source::Request, None);
        let mut stored = object.clone();
        let _ = schema.coerce(&mut stored, Source::Stored, None);
        let _ = schema.validate(&object, None, Vec::new());
        let _ = schema.validate(&object, Some(&old), Vec::new());
        let _ = schema.validate_status(&object, &old, Vec::new());
    }

    #[test]
    fn any_text_in_place_of_a_definition_is_validated_without_panic(
        spec in object(),
        declared in schema(),
        other in schema(),
    ) {
        let mut crd = Value::object();
        let map = crd.make_object();
        map.insert("spec", spec);
        let _ = crd::validate_create(&crd);
        let versions = bareboat_api::value!([
            {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": declared}},
            {"name": "v2", "served": true, "schema": {"openAPIV3Schema": other}}
        ]);
        let spec = crd.make_object().object_mut("spec");
        spec.insert("versions", versions);
        crd::default(&mut crd);
        crd::prepare(&mut crd, None);
        let _ = crd::validate_create(&crd);
        let _ = crd::validate_update(&crd, &crd);
        let _ = crd::warnings(&crd, None);
        let _ = crd::Definition::parse(&crd);
        if let Some(status) = crd::reconcile(&crd, &crd::Taken::default(), "now") {
            crd.make_object().insert("status", status);
        }
        prop_assert_eq!(crd::reconcile(&crd, &crd::Taken::default(), "later"), None);
    }
}
