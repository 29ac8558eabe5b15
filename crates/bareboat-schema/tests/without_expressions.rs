//! Schemas in a build without the feature `expressions` (`scripts/features.sh` runs this).
#![cfg(not(feature = "expressions"))]
#![allow(clippy::unwrap_used)]

use bareboat_api::{Value, value};
use bareboat_schema::{Schema, SchemaError};

fn below(property: Value) -> Value {
    value!({"type": "object", "properties": {"list": {"type": "array", "items": (property)}}})
}

#[test]
fn rules_and_patterns_are_refused_and_named() {
    let pattern = below(value!({"type": "string", "pattern": "^a+$"}));
    let error = Schema::parse(&pattern).unwrap_err();
    assert!(matches!(error, SchemaError::NeedsExpressions(_)));
    assert_eq!(
        error.to_string(),
        "schema has a `pattern`, which needs the feature `expressions` of bareboat"
    );
    let rule = below(value!({"type": "string", "x-kubernetes-validations": [{"rule": "true"}]}));
    let error = Schema::parse(&rule).unwrap_err().to_string();
    assert!(error.contains("x-kubernetes-validations"), "{error}");
}

#[test]
fn everything_else_is_checked() {
    let schema = Schema::parse(&below(value!({
        "type": "string", "pattern": "", "format": "date-time", "x-kubernetes-validations": [],
    })));
    let schema = schema.unwrap();
    let check = |item: Value| {
        let findings = schema.validate(&value!({"list": [(item)]}), None, Vec::new());
        let errors = findings.errors.iter().map(ToString::to_string);
        errors.collect::<Vec<_>>().join("\n")
    };
    assert_eq!(check(value!("2026-11-18T03:00:00Z")), "");
    assert!(check(value!("noon")).contains("must be of type date-time"));
    let number = check(value!(7));
    assert!(number.contains("must be of type"), "{number}");
}
