//! Tests of defaulting.

use super::{MAX_DEFAULTS, TooManyDefaults, bytes_of};
use crate::testing::{schema, yaml};

fn check(declared: &str, object: &str, expected: &str) {
    let schema = schema(declared);
    let mut value = yaml(object);
    assert_eq!(
        schema.is_defaulted(&value),
        value == yaml(expected),
        "{declared}"
    );
    schema.default(&mut value).unwrap();
    assert_eq!(value, yaml(expected), "{declared}");
    assert!(schema.is_defaulted(&value));
    schema.default(&mut value).unwrap();
    assert_eq!(value, yaml(expected), "twice: {declared}");
}

#[test]
fn defaults_fill_missing_members_where_the_parent_exists() {
    let declared = "{type: object, properties: {spec: {type: object, properties: \
                    {replicas: {type: integer, default: 1}, deep: {type: object, default: {}, \
                    properties: {x: {type: string, default: y}}}}}}}";
    check(declared, "{}", "{}");
    check(
        declared,
        "{spec: {}}",
        "{spec: {replicas: 1, deep: {x: y}}}",
    );
    check(
        declared,
        "{spec: {replicas: 0, deep: {x: z}}}",
        "{spec: {replicas: 0, deep: {x: z}}}",
    );
}

#[test]
fn null_counts_as_missing_where_null_is_not_allowed() {
    let declared = "{type: object, properties: {a: {type: string, default: x}, \
                    b: {type: string, nullable: true, default: y}}}";
    check(declared, "{a: null, b: null}", "{a: x, b: null}");
}

#[test]
fn defaults_reach_into_lists_and_maps() {
    let item = "{type: object, properties: {v: {type: integer, default: 3}}}";
    check(
        &format!("{{type: object, properties: {{l: {{type: array, items: {item}}}}}}}"),
        "{l: [{}, {v: 1}]}",
        "{l: [{v: 3}, {v: 1}]}",
    );
    check(
        &format!(
            "{{type: object, properties: {{m: {{type: object, additionalProperties: {item}}}}}}}"
        ),
        "{m: {a: {}, b: {v: 1}}}",
        "{m: {a: {v: 3}, b: {v: 1}}}",
    );
}

/// Returns a schema of lists of empty objects whose members default to such lists again.
fn multiplying(levels: usize) -> String {
    let list = format!("[{}]", vec!["{}"; 30].join(","));
    (0..levels).fold("{type: object}".to_owned(), |inner, _| {
        format!(
            "{{type: object, properties: {{l: {{type: array, default: {list}, items: {inner}}}}}}}"
        )
    })
}

#[test]
fn too_many_nested_defaults_are_refused() {
    let mut value = yaml("{}");
    assert_eq!(schema(&multiplying(2)).default(&mut value), Ok(()));
    for levels in [6, 12] {
        let mut value = yaml("{}");
        assert_eq!(
            schema(&multiplying(levels)).default(&mut value),
            Err(TooManyDefaults)
        );
        assert!(bytes_of(&value) <= 2 * MAX_DEFAULTS, "{}", bytes_of(&value));
    }
}
