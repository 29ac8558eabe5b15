//! Strategic merge patches: lists by key, and directives.

#![allow(clippy::unwrap_used)]
use super::*;
use crate::testing::{Node, atomic_list, keyed, map, object, scalar, structure};
use bareboat_api::value;

fn node() -> Node {
    let port = structure(&[("containerPort", scalar()), ("name", scalar())]);
    let container = structure(&[
        ("name", scalar()),
        ("image", scalar()),
        ("args", atomic_list(scalar())),
        (
            "ports",
            keyed(&[("containerPort", None)], port).merging("containerPort"),
        ),
    ]);
    let spec = structure(&[
        (
            "containers",
            keyed(&[("name", None)], container).merging("name"),
        ),
        ("nodeSelector", map(scalar())),
        (
            "selector",
            structure(&[("matchLabels", map(scalar()))]).replacing(),
        ),
        ("unkeyed", atomic_list(structure(&[])).merging("")),
        (
            "strategy",
            structure(&[("type", scalar()), ("rollingUpdate", structure(&[]))]),
        ),
        ("replicas", scalar()),
    ]);
    object(&[("spec", spec)])
}

fn patched(target: &Value, patch: Value) -> Result<Value, StrategicError> {
    let mut target = target.clone();
    strategic_merge(&mut target, patch, &node())?;
    Ok(target)
}

fn check(target: Value, patch: Value, expected: Value) {
    let shown = format!("{target} + {patch}");
    assert_eq!(patched(&target, patch), Ok(expected), "{shown}");
}

fn spec(target: Value, patch: Value, expected: Value) {
    check(
        value!({"spec": (target)}),
        value!({"spec": (patch)}),
        value!({"spec": (expected)}),
    );
}

fn containers(target: Value, patch: Value, expected: Value) {
    spec(
        value!({"containers": (target)}),
        value!({"containers": (patch)}),
        value!({"containers": (expected)}),
    );
}

fn finalizers(target: Value, mut patch: Value, expected: Value) {
    patch.make_object();
    check(
        value!({"metadata": {"finalizers": (target)}}),
        value!({"metadata": (patch)}),
        value!({"metadata": {"finalizers": (expected)}}),
    );
}

#[test]
fn members_merge_and_null_deletes() {
    spec(
        value!({"replicas": 1, "nodeSelector": {"a": "b"}}),
        value!({"replicas": 2, "nodeSelector": {"c": "d", "a": null}, "absent": null}),
        value!({"replicas": 2, "nodeSelector": {"c": "d"}}),
    );
    check(
        value!({}),
        value!({"spec": {"nodeSelector": {"a": null, "b": "c"}}}),
        value!({"spec": {"nodeSelector": {"b": "c"}}}),
    );
}

#[test]
fn lists_merge_by_their_key_and_others_are_replaced() {
    containers(
        value!([{"name": "a", "image": "1", "args": ["x"]}, {"name": "b"}]),
        value!([{"name": "a", "args": ["y"]}, {"name": "c"}]),
        value!([{"name": "a", "image": "1", "args": ["y"]}, {"name": "c"}, {"name": "b"}]),
    );
    containers(
        value!([{"name": "a", "ports": [{"containerPort": 1}]}]),
        value!([{"name": "a", "ports": [{"containerPort": 1, "name": "p"}, {"containerPort": 2}]}]),
        value!([{"name": "a", "ports": [{"containerPort": 1, "name": "p"}, {"containerPort": 2}]}]),
    );
}

#[test]
fn elements_are_deleted_and_lists_replaced_by_directive() {
    containers(
        value!([{"name": "a"}, {"name": "b"}, {"name": "c"}]),
        value!([{"name": "b", "$patch": "delete"}, {"name": "c", "image": "i"}]),
        value!([{"name": "a"}, {"name": "c", "image": "i"}]),
    );
    containers(
        value!([{"name": "a"}, {"name": "b"}]),
        value!([{"$patch": "replace"}, {"name": "z"}]),
        value!([{"name": "z"}]),
    );
    spec(
        value!({"nodeSelector": {"a": "b"}, "replicas": 1}),
        value!({"nodeSelector": {"$patch": "replace", "c": "d"}}),
        value!({"nodeSelector": {"c": "d"}, "replicas": 1}),
    );
    spec(
        value!({"nodeSelector": {"a": "b"}}),
        value!({"nodeSelector": {"$patch": "delete"}}),
        value!({"nodeSelector": {}}),
    );
}

#[test]
fn a_struct_whose_strategy_is_replace_is_replaced() {
    spec(
        value!({"selector": {"matchLabels": {"a": "b"}}}),
        value!({"selector": {"matchLabels": {"c": "d"}}}),
        value!({"selector": {"matchLabels": {"c": "d"}}}),
    );
}

#[test]
fn retain_keys_removes_members_it_does_not_name() {
    spec(
        value!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"x": 1}}}),
        value!({"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}),
        value!({"strategy": {"type": "Recreate"}}),
    );
    let bad = |directive: Value| {
        let patch = value!({"spec": {"strategy": {"$retainKeys": (directive), "type": "x"}}});
        patched(&value!({"spec": {"strategy": {}}}), patch).unwrap_err()
    };
    assert_eq!(bad(value!(["other"])), BAD_RETAIN_KEYS);
    assert_eq!(bad(value!("type")), BAD_RETAIN_KEYS);
}

#[test]
fn primitives_merge_and_are_deleted_by_value() {
    finalizers(
        value!(["a", "b"]),
        value!({"finalizers": ["c", "a"]}),
        value!(["c", "a", "b"]),
    );
    finalizers(
        value!(["a", "b", "c"]),
        value!({"$deleteFromPrimitiveList/finalizers": ["b", "x"]}),
        value!(["a", "c"]),
    );
    finalizers(
        value!(["a", "b"]),
        value!({"$deleteFromPrimitiveList/finalizers": ["a"], "finalizers": ["d"], "$setElementOrder/finalizers": ["d", "b"]}),
        value!(["d", "b"]),
    );
    let error = patched(
        &value!({"metadata": {"finalizers": ["a"]}}),
        value!({"metadata": {"$deleteFromPrimitiveListfinalizers": ["a"]}}),
    );
    assert_eq!(error, Err(BAD_DELETE_LIST));
}

#[test]
fn the_element_order_directive_orders_the_whole_list() {
    let order = |target: Value, order: Value, patch: Value, expected: Value| {
        spec(
            value!({"containers": (target)}),
            value!({"$setElementOrder/containers": (order), "containers": (patch)}),
            value!({"containers": (expected)}),
        );
    };
    order(
        value!([{"name": "a"}, {"name": "b"}]),
        value!([{"name": "b"}, {"name": "a"}]),
        value!([{"name": "a", "image": "i"}]),
        value!([{"name": "b"}, {"name": "a", "image": "i"}]),
    );
    order(
        value!([{"name": "a"}, {"name": "s"}, {"name": "b"}]),
        value!([{"name": "b"}, {"name": "n"}, {"name": "a"}]),
        value!([{"name": "n"}]),
        value!([{"name": "s"}, {"name": "b"}, {"name": "n"}, {"name": "a"}]),
    );
    order(
        value!([{"name": "a"}, {"name": "b"}]),
        value!([{"name": "b"}]),
        value!([{"name": "a", "$patch": "delete"}]),
        value!([{"name": "b"}]),
    );
    spec(
        value!({"containers": [{"name": "a"}, {"name": "b"}]}),
        value!({"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}),
        value!({"containers": [{"name": "b"}, {"name": "a"}]}),
    );
    let mismatch = patched(
        &value!({"spec": {"containers": [{"name": "a"}]}}),
        value!({"spec": {"$setElementOrder/containers": [{"name": "a"}], "containers": [{"name": "z"}]}}),
    );
    assert!(
        matches!(mismatch, Err(StrategicError::Inapplicable(text)) if text.starts_with("The order in patch list:"))
    );
}

#[test]
fn directives_with_nothing_to_merge_are_left_to_decoding() {
    check(
        value!({"spec": {}}),
        value!({"spec": {
            "strategy": {"$retainKeys": ["type"], "type": "x"},
            "nodeSelector": {"$patch": "delete"},
            "containers": [{"name": "a"}, {"name": "b", "$patch": "delete"}]
        }}),
        value!({"spec": {
            "strategy": {"$retainKeys": ["type"], "type": "x"},
            "containers": [{"name": "a"}]
        }}),
    );
    containers(
        value!([{"name": "a"}]),
        value!([{"name": "n", "$setElementOrder/ports": [], "image": "i"}]),
        value!([{"name": "n", "$setElementOrder/ports": [], "image": "i"}, {"name": "a"}]),
    );
    spec(
        value!({"containers": [{"name": "a"}]}),
        value!({"$patch": "replace", "containers": [{"name": "b", "$patch": "delete"}]}),
        value!({"containers": [{"name": "b", "$patch": "delete"}]}),
    );
}

#[test]
fn malformed_patches_have_a_reason() {
    let target = value!({"spec": {"containers": [{"name": "a"}], "unkeyed": [{"a": 1}], "nodeSelector": {}}});
    let error = |patch: Value| patched(&target, patch).unwrap_err().to_string();
    assert_eq!(error(value!([])), "invalid JSON document");
    assert_eq!(
        error(value!({"spec": {"containers": [{"image": "x"}]}})),
        "map: map[image:x] does not contain declared merge key: name"
    );
    assert_eq!(
        error(value!({"spec": {"containers": ["x"]}})),
        "list element types are not identical: object and string"
    );
    assert_eq!(
        error(value!({"spec": {"containers": [[]]}})),
        "lists of lists are not supported"
    );
    assert_eq!(
        error(value!({"spec": {"unkeyed": [{"a": 2}]}})),
        "cannot merge lists without merge key for unkeyed"
    );
    assert_eq!(
        error(value!({"spec": {"nodeSelector": {"$patch": "frob", "a": 1}}})),
        "unknown patch type: frob in map: {\"a\":1}"
    );
    assert_eq!(
        error(value!({"spec": {"containers": [{"$patch": "merge"}]}})),
        "merging lists cannot yet be specified in the patch"
    );
    assert_eq!(
        error(value!({"spec": {"nodeSelector": {"$patch": "merge", "a": 1}}})),
        "unknown patch type: merge in map: {\"a\":1}"
    );
    assert_eq!(
        error(value!({"spec": {"$setElementOrder/containers": 1}})),
        "expected a list in $setElementOrder/containers"
    );
    assert_eq!(
        error(value!({"spec": {"$setElementOrder/containers": [], "containers": null}})),
        "expected a list in containers"
    );
    assert_eq!(
        error(value!({"spec": {"$setElementOrdercontainers": []}})),
        "invalid patch format of setElementOrder list"
    );
    assert_eq!(
        error(value!({"spec": {"$setElementOrder/nowhere": []}})),
        "unable to find api field for the json field \"nowhere\""
    );
}

#[test]
fn long_lists_merge_in_linear_time() {
    let list = |count: i64| -> Value {
        (0..count)
            .map(|index| value!({"name": (format!("c{index}"))}))
            .collect()
    };
    let start = std::time::Instant::now();
    containers(list(20_000), list(20_000), list(20_000));
    assert!(
        start.elapsed().as_secs() < 120,
        "quadratic merging would take minutes"
    );
}
