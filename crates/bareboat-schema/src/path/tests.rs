//! Paths lead to the fields that a schema declares.

use super::*;
use crate::Schema;
use bareboat_api::value;

#[test]
fn a_path_leads_to_the_declared_field() {
    let schema = Schema::parse(&value!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "a.b": {"type": "string"},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}}
        }}
    }}))
    .unwrap();
    let check = |text: &str, expected: Result<&str, &str>| {
        let found = field_path(text, &schema.root, true);
        let found = found.as_ref().map(|target| target.path.as_str());
        assert_eq!(found.map_err(String::as_str), expected, "{text}");
    };
    check(".spec", Ok("spec"));
    check(".spec['a.b']", Ok("spec.a.b"));
    check(".spec.labels['x']", Ok("spec.labels[x]"));
    check(".spec.nope", Err("does not refer to a valid field"));
    check("spec", Err("expected [ or . but got: spec"));
    check(".spec[0]", Err("expected single quoted string but got 0"));
    check(".spec.", Err("unexpected end of JSON path"));
    check(".spec['a", Err("expected single quoted string but got 'a"));
    assert_eq!(
        field_path(".spec['a.b']", &schema.root, false)
            .err()
            .unwrap(),
        "array notation is not allowed"
    );
}
