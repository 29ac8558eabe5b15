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

#[test]
fn passes_the_published_cases() {
    let Some(folder) = crate::test_vectors("json-patch") else {
        return;
    };
    let mut count = 0;
    for file in ["spec_tests.json", "tests.json"] {
        let text = std::fs::read(folder.join(file)).unwrap();
        let cases: Value = serde_json::from_slice(&text).unwrap();
        for case in cases.as_array().unwrap() {
            if case.get("disabled").is_some() {
                continue;
            }
            // Kubernetes counts negative indices from the end where the RFC refuses them.
            if case.get("error") == Some(&value!("Out of bounds (lower)")) {
                continue;
            }
            count += 1;
            let result = apply(case.get("doc").unwrap(), case.get("patch").unwrap().clone());
            match case.get("expected") {
                Some(expected) => assert_eq!(result.as_ref(), Ok(expected), "{case}"),
                None if case.get("error").is_some() => assert!(result.is_err(), "{case}"),
                None => assert!(result.is_ok(), "{case}"),
            }
        }
    }
    assert!(count > 100);
}

#[test]
fn undecodable_patches_are_told_from_inapplicable_ones() {
    let undecodable = |patch: Value| JsonPatch::parse(patch).unwrap_err().to_string();
    assert_eq!(
        undecodable(value!({"op": 1})),
        "a JSON patch must be a list of operations, not object"
    );
    assert_eq!(
        undecodable(value!([1])),
        "operation 0 must be an object, not integer"
    );
    assert_eq!(
        undecodable(value!([{"op": "add", "path": 3}])),
        "path of operation 0 must be a string, not integer"
    );
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
fn copies_cannot_blow_up_memory() {
    let mut document = value!({"a": (Value::string("x".repeat(1000)))});
    let operations: Value = (0..100)
        .map(|index| {
            // Each copy takes everything made so far.
            let path = format!("/a{index}");
            value!({"op": "copy", "from": "", "path": (path)})
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
fn a_value_is_not_moved_into_itself() {
    let error = apply(
        &value!({"a": {"b": 1}}),
        value!([{"op": "move", "from": "/a", "path": "/a/c"}]),
    );
    assert!(error.is_err());
}
