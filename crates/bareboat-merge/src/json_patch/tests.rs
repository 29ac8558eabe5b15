//! JSON patches: every operation, and error texts.

#![allow(clippy::unwrap_used)]
use super::*;
use bareboat_api::value;

fn apply(document: &Value, patch: Value) -> Result<Value, String> {
    let mut document = document.clone();
    let patch = JsonPatch::parse(patch).map_err(|error| error.to_string())?;
    patch
        .apply(&mut document)
        .map_err(|error| error.to_string())?;
    Ok(document)
}

/// Patches for which the RFC requires another result: on the whole document, without a value, with
/// indices that are not canonical numbers, and on a missing member.
const LENIENT: &str = r#"[{"op":"add","path":"","value":[]}]
[{"op":"add","path":"","value":{}}]
[{"op":"add","path":"","value":{"baz":"qux"}}]
[{"op":"add","path":"/-"}]
[{"op":"replace","path":"/0"}]
[{"op":"test","path":"/0"}]
[{"from":"/bar","op":"copy","path":"/foo"}]
[{"op":"test","path":"/00","value":"foo"}]
[{"op":"test","path":"/01","value":"bar"}]"#;

#[test]
fn the_published_cases_pass() {
    let Some(folder) = bareboat_vectors::folder("json-patch") else {
        return;
    };
    let (mut count, mut others) = (0, Vec::new());
    for file in ["spec_tests.json", "tests.json"] {
        let text = std::fs::read(folder.join(file)).unwrap();
        let cases: Value = serde_json::from_slice(&text).unwrap();
        for case in cases.as_array().unwrap() {
            if case.get("disabled").is_some() {
                continue;
            }
            // Kubernetes counts negative indices from the end where the RFC rejects them.
            if case.get("error") == Some(&value!("Out of bounds (lower)")) {
                continue;
            }
            count += 1;
            let patch = case.get("patch").unwrap().to_string();
            let result = apply(case.get("doc").unwrap(), case.get("patch").unwrap().clone());
            let as_published = match case.get("expected") {
                Some(expected) => result.as_ref() == Ok(expected),
                None => result.is_err() == case.get("error").is_some(),
            };
            if !as_published {
                others.push(patch);
            }
        }
    }
    assert!(count > 100);
    let known: Vec<&str> = LENIENT.lines().collect();
    assert_eq!(others, known);
}

#[test]
fn undecodable_patches_and_inapplicable_ones_have_different_errors() {
    let undecodable = |patch: Value| JsonPatch::parse(patch).unwrap_err().to_string();
    assert_eq!(
        undecodable(value!({"op": 1})),
        "a JSON patch must be a list of operations, not object"
    );
    assert_eq!(
        undecodable(value!([1])),
        "operation 0 must be an object, not integer"
    );
    let mistyped = JsonPatch::parse(value!([{"op": "add", "path": 3}])).unwrap();
    assert_eq!(
        mistyped.check_types().unwrap_err().to_string(),
        "path of operation 0 must be a string, not integer"
    );
    let vain = JsonPatch::parse(value!([{"op": "test"}, {"op": "test", "form": 1}])).unwrap();
    assert_eq!(vain.unknown(), ["unknown field \"[1].form\""]);
    vain.check_types().unwrap();
    let many: Value = (0..10_001).map(|_| value!({"op": "test"})).collect();
    assert_eq!(
        undecodable(many),
        "The allowed maximum operations in a JSON patch is 10000, got 10001"
    );
    let inapplicable = |patch: Value| apply(&value!({"a": [1, 2]}), patch).unwrap_err();
    assert_eq!(
        inapplicable(value!([{"op": "remove", "path": "/b"}])),
        "remove operation does not apply: doc is missing path: /b"
    );
    assert_eq!(
        inapplicable(value!([{"op": "test", "path": "/a", "value": 1}])),
        "testing value /a failed"
    );
    assert_eq!(
        inapplicable(value!([{"op": "x"}])),
        "unexpected kind: \"x\""
    );
}

#[test]
fn negative_indices_count_from_the_end() {
    let list = value!({"a": [1, 2, 3]});
    let check = |patch: Value, expected: Value| assert_eq!(apply(&list, patch).unwrap(), expected);
    check(
        value!([{"op": "remove", "path": "/a/-1"}]),
        value!({"a": [1, 2]}),
    );
    check(
        value!([{"op": "add", "path": "/a/-1", "value": 4}]),
        value!({"a": [1, 2, 3, 4]}),
    );
    check(
        value!([{"op": "replace", "path": "/a/-3", "value": 4}]),
        value!({"a": [4, 2, 3]}),
    );
    assert!(apply(&list, value!([{"op": "remove", "path": "/a/-4"}])).is_err());
}

#[test]
fn a_missing_member_is_replaced_and_equals_null() {
    let document = value!({"a": {}});
    assert_eq!(
        apply(
            &document,
            value!([{"op": "replace", "path": "/a/b", "value": 1}])
        )
        .unwrap(),
        value!({"a": {"b": 1}})
    );
    assert!(
        apply(
            &document,
            value!([{"op": "test", "path": "/a/b", "value": null}])
        )
        .is_ok()
    );
    assert!(
        apply(
            &document,
            value!([{"op": "test", "path": "/b/c", "value": null}])
        )
        .is_err()
    );
}

#[test]
fn copies_are_limited_in_memory() {
    let mut document = value!({"all": {"a": (Value::string("x".repeat(1000)))}});
    let operations: Value = (0..100)
        .map(|index| {
            // Each copy contains all earlier ones.
            let path = format!("/a{index}");
            value!({"op": "copy", "from": "/all", "path": (format!("/all{path}"))})
        })
        .collect();
    let patch = JsonPatch::parse(operations).unwrap();
    assert!(matches!(
        patch.apply(&mut document),
        Err(ApplyError::CopiesTooMuch(_))
    ));
}

#[test]
fn nesting_stays_within_the_depth_limit() {
    let operations: Value = (0..300)
        .map(|depth| {
            let path = "/a".repeat(depth + 1);
            value!({"op": "add", "path": (path), "value": {}})
        })
        .collect();
    let error = apply(&value!({}), operations).unwrap_err();
    assert!(
        error.starts_with("add operation nests deeper than 200 levels"),
        "{error}"
    );
}

#[test]
fn omitted_values_and_missing_members_are_null() {
    let document = value!({"a": {"b": 1}, "list": [{"x": 1}, {"y": 2}], "none": null});
    let refused = "refused";
    // As kube-apiserver answers.
    for (patch, wanted) in [
        (
            value!([{"op": "copy", "from": "/a/c", "path": "/a/d"}]),
            value!({"b": 1, "d": null}),
        ),
        (
            value!([{"op": "copy", "from": "/c", "path": "/a"}]),
            value!(null),
        ),
        (
            value!([{"op": "copy", "from": "/none", "path": "/a"}]),
            value!(null),
        ),
        (
            value!([{"op": "copy", "from": "/c/d", "path": "/a"}]),
            value!(refused),
        ),
        (
            value!([{"op": "copy", "from": "/none/d", "path": "/a"}]),
            value!(refused),
        ),
        (
            value!([{"op": "copy", "from": "/list/2", "path": "/a"}]),
            value!(refused),
        ),
        (
            value!([{"op": "copy", "from": "/list/-", "path": "/a"}]),
            value!(refused),
        ),
        (
            value!([{"op": "copy", "from": "", "path": "/a"}]),
            value!(refused),
        ),
        (value!([{"op": "copy", "path": "/a"}]), value!(refused)),
        (
            value!([{"op": "move", "from": "/a/c", "path": "/a/d"}]),
            value!(refused),
        ),
        (
            value!([{"op": "move", "from": "/none", "path": "/a"}]),
            value!(null),
        ),
        (
            value!([{"op": "move", "from": "/a", "path": "/a/c"}]),
            value!(refused),
        ),
        (
            value!([{"op": "move", "from": "/a", "path": "/a"}]),
            value!({"b": 1}),
        ),
        (value!([{"op": "add", "path": "/a"}]), value!(null)),
        (
            value!([{"op": "replace", "path": "/a/c"}]),
            value!({"b": 1, "c": null}),
        ),
        (value!([{"op": "test", "path": "/a/c"}]), value!({"b": 1})),
        (value!([{"op": "test", "path": "/none"}]), value!({"b": 1})),
        (value!([{"op": "test", "path": "/a/b"}]), value!(refused)),
        (value!([{"op": "test", "path": "/list/2"}]), value!(refused)),
        (value!([{"op": "test", "path": ""}]), value!(refused)),
        (
            value!([{"op": "add", "path": "", "value": {"a": 2}}]),
            value!(refused),
        ),
        (
            value!([{"op": "replace", "path": "", "value": {"a": 2}}]),
            value!(2),
        ),
        (
            value!([{"op": "replace", "path": "", "value": 2}]),
            value!(refused),
        ),
        (value!([{"op": "replace", "path": ""}]), value!(refused)),
        (
            value!([{"op": "add", "path": "x/a", "value": 2}]),
            value!(2),
        ),
        (
            value!([{"op": "add", "path": "a", "value": 2}]),
            value!(refused),
        ),
        (value!([null]), value!(refused)),
        (value!(null), value!({"b": 1})),
    ] {
        let shown = patch.to_string();
        let result = match apply(&document, patch) {
            Ok(result) => result.get("a").cloned().unwrap_or(value!("gone")),
            Err(_) => value!(refused),
        };
        assert_eq!(result, wanted, "{shown}");
    }
}

#[test]
fn a_move_removes_its_source_before_it_finds_its_target() {
    let moved = apply(
        &value!({"list": [{"x": 1}, {"y": 2}]}),
        value!([{"op": "move", "from": "/list/0", "path": "/list/0/z"}]),
    );
    assert_eq!(moved.unwrap(), value!({"list": [{"y": 2, "z": {"x": 1}}]}));
}

#[test]
fn indices_may_be_written_as_any_number() {
    for (index, left) in [("+1", 0), ("01", 0), ("-0", 1), ("-01", 0), ("00", 1)] {
        let path = format!("/{index}");
        let result = apply(&value!([0, 1]), value!([{"op": "remove", "path": (path)}]));
        assert_eq!(result.unwrap(), value!([left]), "{index}");
    }
    for index in [
        "",
        "+",
        "-",
        "+-1",
        "1.0",
        "1e0",
        " 1",
        "2",
        "-3",
        "99999999999999999999",
    ] {
        let path = format!("/{index}");
        let result = apply(&value!([0, 1]), value!([{"op": "remove", "path": (path)}]));
        assert!(result.is_err(), "{index}");
    }
}
