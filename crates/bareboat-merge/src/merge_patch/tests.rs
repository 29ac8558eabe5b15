//! JSON merge patches.

use super::*;
use bareboat_api::value;

fn check(mut target: Value, patch: Value, expected: Value) {
    let shown = format!("{target} + {patch}");
    merge_patch(&mut target, patch);
    assert_eq!(target, expected, "{shown}");
}

#[test]
fn the_examples_of_rfc_7396_pass() {
    check(value!({"a": "b"}), value!({"a": "c"}), value!({"a": "c"}));
    check(
        value!({"a": "b"}),
        value!({"b": "c"}),
        value!({"a": "b", "b": "c"}),
    );
    check(value!({"a": "b"}), value!({"a": null}), value!({}));
    check(
        value!({"a": "b", "b": "c"}),
        value!({"a": null}),
        value!({"b": "c"}),
    );
    check(value!({"a": ["b"]}), value!({"a": "c"}), value!({"a": "c"}));
    check(
        value!({"a": "c"}),
        value!({"a": ["b"]}),
        value!({"a": ["b"]}),
    );
    check(
        value!({"a": {"b": "c"}}),
        value!({"a": {"b": "d", "c": null}}),
        value!({"a": {"b": "d"}}),
    );
    check(
        value!({"a": [{"b": "c"}]}),
        value!({"a": [1]}),
        value!({"a": [1]}),
    );
    check(value!(["a", "b"]), value!(["c", "d"]), value!(["c", "d"]));
    check(value!({"a": "b"}), value!(["c"]), value!(["c"]));
    check(value!({"a": "foo"}), Value::Null, Value::Null);
    check(value!({"a": "foo"}), value!("bar"), value!("bar"));
    check(
        value!({"e": null}),
        value!({"a": 1}),
        value!({"e": null, "a": 1}),
    );
    check(
        value!([1, 2]),
        value!({"a": "b", "c": null}),
        value!({"a": "b"}),
    );
    check(
        value!({}),
        value!({"a": {"bb": {"ccc": null}}}),
        value!({"a": {"bb": {}}}),
    );
}

#[test]
fn nulls_inside_lists_that_replace_no_object_are_dropped() {
    let list = value!([1, null, {"a": null, "b": [{"c": null, "d": 1}]}]);
    let clean = value!([1, null, {"b": [{"d": 1}]}]);
    check(
        value!({}),
        value!({"l": (list.clone())}),
        value!({"l": (clean.clone())}),
    );
    check(
        value!({"l": [7]}),
        value!({"l": (list.clone())}),
        value!({"l": (clean)}),
    );
    check(
        value!({"l": {}}),
        value!({"l": (list.clone())}),
        value!({"l": (list)}),
    );
}

#[test]
fn many_members_merge_in_linear_time() {
    let members = |range: std::ops::Range<i64>| -> Value {
        let members = range.map(|index| (format!("k{index:06}"), Value::Int(index)));
        Value::Object(members.collect())
    };
    let start = std::time::Instant::now();
    check(
        members(0..50_000),
        members(10_000..90_000),
        members(0..90_000),
    );
    let mut nulls = members(0..90_000);
    nulls.make_object().retain(|_, value| {
        *value = Value::Null;
        true
    });
    check(members(0..90_000), nulls, value!({}));
    assert!(
        start.elapsed().as_secs() < 120,
        "quadratic merging would take minutes"
    );
}
