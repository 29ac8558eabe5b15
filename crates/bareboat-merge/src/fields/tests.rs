//! Sets of fields: read, written, united and compared.

#![allow(clippy::unwrap_used)]
use super::*;
use bareboat_api::value;
use proptest::prelude::*;

fn set(value: Value) -> FieldSet {
    FieldSet::parse(&value).unwrap()
}

fn check(result: FieldSet, expected: Value) {
    assert_eq!(result.into_value(), expected);
}

#[test]
fn keys_are_brought_into_canonical_form() {
    check(
        set(
            value!({"k:{ \"b\": 1, \"a\":\"\\u0061\"}": {"f:x": {}, ".": {}}, "v: 1.0": {}, "z:what": {}}),
        ),
        value!({"k:{\"a\":\"a\",\"b\":1}": {".": {}, "f:x": {}}, "v:1": {}}),
    );
    check(set(value!({"f:a": {".": {}}})), value!({"f:a": {}}));
    for bad in [
        value!({"f": {}}),
        value!({"k:[]": {}}),
        value!({"v:{": {}}),
        value!({"i:x": {}}),
        value!({"f:a": 1}),
        value!("f:a"),
    ] {
        assert!(FieldSet::parse(&bad).is_err(), "{bad}");
    }
}

#[test]
fn set_operations_distinguish_a_place_from_the_fields_below() {
    let a = || set(value!({"f:a": {".": {}, "f:b": {}}, "f:c": {}}));
    let mut union = a();
    union.unite(&set(value!({"f:c": {"f:d": {}}, "f:e": {}})));
    check(
        union,
        value!({"f:a": {".": {}, "f:b": {}}, "f:c": {".": {}, "f:d": {}}, "f:e": {}}),
    );

    let mut difference = a();
    difference.subtract(&set(value!({"f:a": {}})));
    check(difference, value!({"f:a": {"f:b": {}}, "f:c": {}}));

    let mut difference = a();
    difference.subtract(&set(value!({"f:a": {"f:b": {}}})));
    check(difference, value!({"f:a": {}, "f:c": {}}));

    let mut difference = a();
    difference.subtract_trees(&set(value!({"f:a": {}})));
    check(difference, value!({"f:c": {}}));

    let mut difference = a();
    difference.subtract_trees(&set(value!({"f:a": {"f:b": {}}, "f:c": {"f:x": {}}})));
    check(difference, value!({"f:a": {}, "f:c": {}}));

    check(
        a().intersection(&set(value!({"f:a": {"f:b": {}}}))),
        value!({"f:a": {"f:b": {}}}),
    );
    check(a().leaves(), value!({"f:a": {"f:b": {}}, "f:c": {}}));
    assert_eq!(a().len(), 3);
    assert!(set(value!({"f:a": {"f:b": {}}})).is_subset(&a()));
    assert!(!set(value!({"f:c": {"f:b": {}}})).is_subset(&a()));
}

#[test]
fn paths_print_as_in_kubernetes() {
    let fields = set(value!({
        "f:spec": {
            "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:name": {}}},
            "f:replicas": {}
        },
        "f:metadata": {"f:finalizers": {"v:\"x\"": {}, "i:2": {}}}
    }));
    assert_eq!(
        fields.paths(),
        [
            ".metadata.finalizers[=\"x\"]",
            ".metadata.finalizers[2]",
            ".spec.replicas",
            ".spec.ports[containerPort=80,protocol=\"TCP\"]",
            ".spec.ports[containerPort=80,protocol=\"TCP\"].name",
        ]
    );
}

#[test]
fn json_has_the_element_order_of_structured_merge_diff() {
    let fields = set(
        value!({"v:\"b\"": {}, "v:10": {}, "v:9": {}, "i:1": {}, "f:z": {".": {}, "f:a": {}}, "k:{\"p\":443}": {}, "k:{\"p\":80}": {}}),
    );
    assert_eq!(
        String::from_utf8(fields.to_json()).unwrap(),
        r#"{"f:z":{".":{},"f:a":{}},"k:{\"p\":80}":{},"k:{\"p\":443}":{},"v:9":{},"v:10":{},"v:\"b\"":{},"i:1":{}}"#
    );
}

/// Returns any set of a few levels.
pub(crate) fn any_set() -> impl Strategy<Value = FieldSet> {
    let key = prop_oneof![
        "f:[a-e]",
        "[kv]".prop_flat_map(
            |kind| (Just(kind), 0..4).prop_map(|(kind, number)| match &*kind {
                "k" => format!("k:{{\"n\":{number}}}"),
                _ => format!("v:{number}"),
            })
        ),
    ];
    let leaf = Just(Value::object());
    let node = leaf.prop_recursive(4, 40, 8, move |inner| {
        proptest::collection::vec((key.clone(), inner, any::<bool>()), 0..8).prop_map(|children| {
            let mut map = Map::new();
            for (key, child, own) in children {
                let mut child = child;
                if own
                    && let Value::Object(node) = &mut child
                    && !node.is_empty()
                {
                    node.insert(ITSELF, Value::object());
                }
                map.insert(key, child);
            }
            Value::Object(map)
        })
    });
    node.prop_map(|value| FieldSet::parse(&value).unwrap())
}

fn united(a: &FieldSet, b: &FieldSet) -> FieldSet {
    let mut union = a.clone();
    union.unite(b);
    union
}

fn without(a: &FieldSet, b: &FieldSet) -> FieldSet {
    let mut difference = a.clone();
    difference.subtract(b);
    difference
}

proptest! {
    #[test]
    fn sets_survive_printing(a in any_set()) {
        let printed: Value = serde_json::from_slice(&a.to_json()).unwrap();
        prop_assert_eq!(&FieldSet::parse(&printed).unwrap(), &a);
        prop_assert_eq!(a.paths().len(), a.len());
    }

    #[test]
    fn the_laws_of_sets_hold(a in any_set(), b in any_set(), c in any_set()) {
        prop_assert_eq!(united(&a, &b), united(&b, &a));
        prop_assert_eq!(united(&a, &united(&b, &c)), united(&united(&a, &b), &c));
        prop_assert_eq!(united(&a, &a), a.clone());
        prop_assert_eq!(a.intersection(&b), b.intersection(&a));
        prop_assert!(without(&a, &a).is_empty());
        prop_assert_eq!(united(&without(&a, &b), &a.intersection(&b)), a.clone());
        prop_assert_eq!(without(&united(&a, &b), &b), without(&a, &b));
        prop_assert!(without(&a, &b).intersection(&b).is_empty());
        prop_assert!(a.is_subset(&united(&a, &b)));
        prop_assert_eq!(a.is_subset(&b), without(&a, &b).is_empty());
        prop_assert_eq!(united(&a, &b).len() + a.intersection(&b).len(), a.len() + b.len());
        let mut trees = a.clone();
        trees.subtract_trees(&b);
        prop_assert!(trees.is_subset(&without(&a, &b)));
    }
}
