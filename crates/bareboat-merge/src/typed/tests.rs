//! Objects read under a schema: lists by key, sets, and atomic parts.

#![allow(clippy::unwrap_used)]
use super::*;
use crate::testing::{atomic_list, keyed, map, open_struct, scalar, set_list, structure};
use bareboat_api::value;

fn node() -> crate::testing::Node {
    structure(&[
        (
            "metadata",
            structure(&[("labels", map(scalar())), ("name", scalar())]),
        ),
        (
            "spec",
            structure(&[
                ("replicas", scalar()),
                ("set", set_list(scalar())),
                ("list", atomic_list(scalar())),
                (
                    "ports",
                    keyed(
                        &[("port", None), ("protocol", Some(value!("TCP")))],
                        structure(&[
                            ("port", scalar()),
                            ("protocol", scalar()),
                            ("name", scalar()),
                            ("rule", structure(&[("x", scalar())])),
                        ]),
                    ),
                ),
                ("selector", map(scalar()).atomic()),
                ("free", open_struct(&[])),
            ]),
        ),
    ])
}

fn fields_of(value: Value, expected: Value) {
    assert_eq!(to_set(&value, &node()).into_value(), expected, "{value}");
}

#[test]
fn fields_are_leaves_elements_and_entries() {
    fields_of(
        value!({"metadata": {"labels": {"a": "b"}}, "spec": {"replicas": 1}}),
        value!({"f:metadata": {"f:labels": {"f:a": {}}}, "f:spec": {"f:replicas": {}}}),
    );
    fields_of(
        value!({"spec": {"set": ["x"], "list": [1, 2], "selector": {"a": "b"}}}),
        value!({"f:spec": {"f:set": {"v:\"x\"": {}}, "f:list": {}, "f:selector": {}}}),
    );
    fields_of(
        value!({"spec": {"ports": [{"port": 80, "rule": {"x": 1}}, {"port": 80, "protocol": "UDP"}]}}),
        value!({"f:spec": {"f:ports": {
            "k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}, "f:rule": {"f:x": {}}},
            "k:{\"port\":80,\"protocol\":\"UDP\"}": {".": {}, "f:port": {}, "f:protocol": {}}
        }}}),
    );
    fields_of(
        value!({"spec": {"free": {"z": {"q": [1]}, "e": {}}, "replicas": null, "set": [], "ports": null}}),
        value!({"f:spec": {
            "f:free": {"f:z": {".": {}, "f:q": {}}, "f:e": {}},
            "f:replicas": {}, "f:ports": {}
        }}),
    );
    fields_of(
        value!({"spec": {"set": ["x", "x", "y"]}}),
        value!({"f:spec": {"f:set": {"v:\"x\"": {}, "v:\"y\"": {}}}}),
    );
}

fn differ(old: Value, new: Value, changed: Value, removed: Value) {
    let found = changes(&old, &new, &node());
    assert_eq!(
        found.changed.into_value(),
        changed,
        "changed {old} -> {new}"
    );
    assert_eq!(
        found.removed.into_value(),
        removed,
        "removed {old} -> {new}"
    );
}

#[test]
fn changes_contain_new_modified_and_removed_fields() {
    differ(
        value!({"spec": {"replicas": 1, "list": [1]}}),
        value!({"spec": {"replicas": 2, "set": ["a"]}}),
        value!({"f:spec": {"f:replicas": {}, "f:set": {".": {}, "v:\"a\"": {}}}}),
        value!({"f:spec": {"f:list": {}}}),
    );
    differ(
        value!({"spec": {"ports": [{"port": 1, "name": "a"}, {"port": 2}]}}),
        value!({"spec": {"ports": [{"port": 2, "protocol": "TCP"}, {"port": 1, "name": "b"}]}}),
        value!({"f:spec": {"f:ports": {
            "k:{\"port\":1,\"protocol\":\"TCP\"}": {"f:name": {}},
            "k:{\"port\":2,\"protocol\":\"TCP\"}": {"f:protocol": {}}
        }}}),
        value!({}),
    );
    differ(
        value!({"spec": {"ports": null, "free": {"a": {"b": 1}}}}),
        value!({"spec": {"ports": [{"port": 1}], "free": {"a": 3}}}),
        value!({"f:spec": {
            "f:free": {"f:a": {}},
            "f:ports": {"k:{\"port\":1,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}}
        }}),
        value!({"f:spec": {"f:free": {"f:a": {"f:b": {}}}}}),
    );
    differ(
        value!({}),
        value!({"kind": "K", "metadata": {"name": "x", "labels": {}}, "spec": {}}),
        value!({"f:metadata": {"f:labels": {}}, "f:spec": {}}),
        value!({}),
    );
    differ(
        value!({"spec": {"set": ["a", "a"]}}),
        value!({"spec": {"set": ["a"]}}),
        value!({"f:spec": {"f:set": {"v:\"a\"": {}}}}),
        value!({"f:spec": {"f:set": {"v:\"a\"": {}}}}),
    );
}

fn merged(mut old: Value, config: Value, expected: Value) {
    let shown = format!("{old} + {config}");
    merge(&mut old, &config, &node());
    assert_eq!(old, expected, "{shown}");
}

fn merged_sets(old: Value, config: Value, expected: Value) {
    merged(
        value!({"spec": {"set": (old)}}),
        value!({"spec": {"set": (config)}}),
        value!({"spec": {"set": (expected)}}),
    );
}

#[test]
fn merging_keeps_fields_outside_of_the_configuration() {
    merged(
        value!({"metadata": {"labels": {"a": "1"}}, "spec": {"list": [1, 2], "selector": {"a": "b"}}}),
        value!({"metadata": {"labels": {"b": "2"}}, "spec": {"list": [3], "selector": {"c": "d"}}}),
        value!({"metadata": {"labels": {"a": "1", "b": "2"}}, "spec": {"list": [3], "selector": {"c": "d"}}}),
    );
    merged(
        value!({"spec": {"ports": [{"port": 1, "protocol": "TCP", "name": "a"}]}}),
        value!({"spec": {"ports": [{"port": 1, "name": "b"}, {"port": 1, "protocol": "UDP"}]}}),
        value!({"spec": {"ports": [{"port": 1, "protocol": "TCP", "name": "b"}, {"port": 1, "protocol": "UDP"}]}}),
    );
    merged(
        value!({"spec": {"replicas": 3, "ports": [{"port": 1}]}}),
        value!({"spec": {"replicas": null, "ports": null}}),
        value!({"spec": {"replicas": null, "ports": [{"port": 1}]}}),
    );
}

#[test]
fn merged_lists_follow_the_order_of_the_configuration() {
    merged_sets(value!([1, 2, 3]), value!([3]), value!([1, 2, 3]));
    merged_sets(value!([1, 2, 3]), value!([3, 1]), value!([2, 3, 1]));
    merged_sets(value!([1, 2, 3]), value!([4]), value!([1, 2, 3, 4]));
    merged_sets(value!([1, 2, 3]), value!([0, 2]), value!([1, 0, 2, 3]));
    merged_sets(value!([1, 2]), value!([2, 1]), value!([2, 1]));
    merged_sets(
        value!([1, 2, 3, 4]),
        value!([4, 5, 1]),
        value!([2, 3, 4, 5, 1]),
    );
    merged_sets(value!([1, 1, 2]), value!([3]), value!([1, 1, 2, 3]));
    merged_sets(value!([1, 1, 2]), value!([1]), value!([1, 2]));
    merged_sets(value!([]), value!([1]), value!([1]));
}

fn invalid(config: Value, expected: &str) {
    assert_eq!(
        validate(&config, &node()).unwrap_err().to_string(),
        expected
    );
}

#[test]
fn configurations_that_do_not_fit_are_refused() {
    invalid(value!({"bogus": 1}), ".bogus: field not declared in schema");
    invalid(
        value!({"spec": {"foo": 1}}),
        ".spec.foo: field not declared in schema",
    );
    invalid(
        value!({"spec": {"ports": [{"port": 1}, {"port": 1, "protocol": "TCP"}]}}),
        ".spec.ports: duplicate entries for key [port=1,protocol=\"TCP\"]",
    );
    invalid(
        value!({"spec": {"set": ["a", "a"]}}),
        ".spec.set: duplicate entries for key [=\"a\"]",
    );
    invalid(value!({"spec": 1}), ".spec: expected map, got 1");
    invalid(
        value!({"spec": {"list": {}}}),
        ".spec.list: expected list, got {}",
    );
    invalid(
        value!({"spec": {"set": [{}]}}),
        ".spec.set: element 0: associative list without keys has an element that's a map type",
    );
    invalid(
        value!({"spec": {"ports": [{"port": 1, "no": 1}, {"port": 2, "nope": 1}]}}),
        "errors:\n  .spec.ports[port=1,protocol=\"TCP\"].no: field not declared in schema\n  .spec.ports[port=2,protocol=\"TCP\"].nope: field not declared in schema",
    );
    assert!(validate(&value!({"spec": {"free": {"any": [1]}}}), &node()).is_ok());
}

#[test]
fn leaves_accept_values_of_their_type() {
    use bareboat_api::typing::Scalar;
    let node = crate::testing::structure(&[
        ("text", crate::testing::scalar().taking(Scalar::String)),
        ("number", crate::testing::scalar().taking(Scalar::Number)),
        ("truth", crate::testing::scalar().taking(Scalar::Boolean)),
        ("time", crate::testing::scalar().taking(Scalar::Any)),
        ("open", crate::testing::scalar()),
    ]);
    let problem = |config: Value| match validate(&config, &node) {
        Ok(()) => String::new(),
        Err(error) => error.to_string(),
    };
    let fits = value!({"text": "a", "number": 1.5, "truth": true, "time": 1, "open": {"a": []}});
    assert_eq!(problem(fits), "");
    assert_eq!(
        problem(value!({"text": null, "number": null, "time": null})),
        ""
    );
    assert_eq!(
        problem(value!({"text": 1})),
        ".text: expected string, got 1"
    );
    assert_eq!(
        problem(value!({"number": "1"})),
        ".number: expected numeric (int or float), got string"
    );
    assert_eq!(
        problem(value!({"truth": 0})),
        ".truth: expected boolean, got 0"
    );
    assert_eq!(
        problem(value!({"time": []})),
        ".time: expected any scalar, got []"
    );
}

#[test]
fn an_element_without_any_key_is_refused() {
    let node = structure(&[("l", keyed(&[("a", None), ("b", None)], structure(&[])))]);
    assert_eq!(
        validate(&value!({"l": [{}]}), &node)
            .unwrap_err()
            .to_string(),
        ".l: element 0: associative list with keys has an element that omits all key fields [\"a\" \"b\"] (and doesn't have default values for any key fields)"
    );
}

#[test]
fn removing_a_field_removes_everything_below_and_emptied_containers() {
    let mut object = value!({"metadata": {"labels": {"a": "1"}, "name": "n"}, "spec": {"set": ["x", "y"], "ports": [{"port": 1, "name": "n"}]}});
    let fields = crate::fields::FieldSet::parse(&value!({
        "f:metadata": {"f:labels": {"f:a": {}}},
        "f:spec": {"f:set": {"v:\"x\"": {}}, "f:ports": {"k:{\"port\":1,\"protocol\":\"TCP\"}": {"f:name": {}}}}
    }));
    remove_fields(&mut object, &fields.unwrap(), &node());
    assert_eq!(
        object,
        value!({"metadata": {"name": "n"}, "spec": {"set": ["y"], "ports": [{"port": 1}]}})
    );
}

#[test]
fn fields_below_a_new_atomic_container_become_the_whole() {
    let mut fields = crate::fields::FieldSet::parse(&value!({
        "f:spec": {"f:list": {"v:1": {}}, "f:selector": {".": {}, "f:a": {}}, "f:set": {"v:1": {}}}
    }))
    .unwrap();
    settle_with_type(&mut fields, &node());
    assert_eq!(
        fields.into_value(),
        value!({"f:spec": {"f:list": {}, "f:selector": {}, "f:set": {"v:1": {}}}})
    );
}
