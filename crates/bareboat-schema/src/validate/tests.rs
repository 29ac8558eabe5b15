//! Tests of error texts, compositions, ratcheting, lists and embedded resources.

use crate::testing::{lines, schema, yaml};

/// Checks the errors of a member `x` with that schema and value.
fn check(declared: &str, value: &str, expected: &[&str]) {
    let schema = schema(&format!("{{type: object, properties: {{x: {declared}}}}}"));
    let object = yaml(&format!("{{x: {value}}}"));
    let found = schema.validate(&object, None, Vec::new());
    assert_eq!(lines(&found.errors), expected, "{declared} on {value}");
}

#[test]
fn wrong_types_are_reported() {
    check(
        "{type: integer}",
        "abc",
        &[r#"x: Invalid value: "string": x in body must be of type integer: "string""#],
    );
    check(
        "{type: string}",
        "null",
        &[r#"x: Invalid value: "null": x in body must be of type string: "null""#],
    );
    check("{type: string, nullable: true}", "null", &[]);
    check(
        "{x-kubernetes-int-or-string: true}",
        "1.5",
        &[r#"x: Invalid value: "number": x in body must be of type integer,string: "number""#],
    );
    check("{type: integer}", "1.0", &[]);
    check("{type: number}", "3", &[]);
    check(
        "{type: integer, format: int32}",
        "true",
        &[r#"x: Invalid value: "": x in body must be of type int32: """#],
    );
    check(
        "{type: string, format: date-time}",
        "5",
        &[r#"x: Invalid value: "int64": x in body must be of type date-time: "int64""#],
    );
    check(
        "{type: string, format: date-time}",
        "[]",
        &[r#"x: Invalid value: "array": x in body must be of type string: "array""#],
    );
}

#[test]
fn exceeded_bounds_are_reported() {
    check(
        "{type: integer, minimum: 1}",
        "0",
        &["x: Invalid value: 0: x in body should be greater than or equal to 1"],
    );
    check(
        "{type: integer, minimum: 1, exclusiveMinimum: true}",
        "1",
        &["x: Invalid value: 1: x in body should be greater than 1"],
    );
    check(
        "{type: number, maximum: 1.5}",
        "2.5",
        &["x: Invalid value: 2.5: x in body should be less than or equal to 1.5"],
    );
    check(
        "{type: number, maximum: 1000000, exclusiveMaximum: true}",
        "1000000.5",
        &["x: Invalid value: 1.0000005e+06: x in body should be less than 1e+06"],
    );
    check(
        "{type: integer, multipleOf: 5}",
        "7",
        &["x: Invalid value: 7: x in body should be a multiple of 5"],
    );
    check("{type: number, multipleOf: 0.1}", "0.3", &[]);
    check(
        "{type: integer, maximum: 9223372036854775807}",
        "9223372036854775807",
        &[],
    );
    check(
        "{type: integer, format: int32}",
        "3000000000",
        &[
            r#"<nil>: Invalid value: "": Checked value must be of type integer with format int32 in x"#,
        ],
    );
    check(
        "{type: string, maxLength: 2}",
        "äöü",
        &["x: Too long: may not be more than 2 bytes"],
    );
    check("{type: string, maxLength: 3, minLength: 3}", "äöü", &[]);
    check(
        "{type: string, minLength: 2}",
        "a",
        &[r#"x: Invalid value: "a": x in body should be at least 2 chars long"#],
    );
    check(
        "{type: string, pattern: ^a$}",
        "b",
        &[r#"x: Invalid value: "b": x in body should match '^a$'"#],
    );
    check(
        "{type: array, items: {type: integer}, maxItems: 2}",
        "[1, 2, 3]",
        &["x: Too many: 3: must have at most 2 items"],
    );
    check(
        "{type: array, items: {type: integer}, minItems: 1}",
        "[]",
        &["x: Invalid value: 0: x in body should have at least 1 items"],
    );
    check(
        "{type: object, additionalProperties: {type: string}, minProperties: 2}",
        "{a: b}",
        &["x: Invalid value: 1: x in body should have at least 2 properties"],
    );
    check(
        "{type: object, additionalProperties: {type: string}, maxProperties: 0}",
        "{a: b}",
        &["x: Too many: 1: must have at most 0 items"],
    );
    check(
        "{type: object, additionalProperties: {type: string}}",
        "{a: 1}",
        &[r#"x.a: Invalid value: "integer": x.a in body must be of type string: "integer""#],
    );
    check(
        "{type: object, required: [a], properties: {a: {type: string}}}",
        "{}",
        &["x.a: Required value"],
    );
    check(
        "{type: string, enum: [a, b]}",
        "c",
        &[r#"x: Unsupported value: "c": supported values: "a", "b""#],
    );
    check("{type: integer, enum: [1, 2]}", "2.0", &[]);
    check(
        "{type: string, format: ipv4}",
        "x",
        &[r#"x: Invalid value: "x": x in body must be of type ipv4: "x""#],
    );
    check("{type: string, format: unheard-of}", "x", &[]);
}

#[test]
fn compositions_report_the_object_and_the_best_failure() {
    let object = "{type: object, properties: {a: {type: string}, b: {type: string}}";
    check(
        &format!("{object}, oneOf: [{{required: [a]}}, {{required: [b]}}]}}"),
        "{}",
        &[
            r#"<nil>: Invalid value: "": "x" must validate one and only one schema (oneOf). Found none valid"#,
            "x.a: Required value",
        ],
    );
    check(
        &format!("{object}, oneOf: [{{required: [a]}}, {{required: [b]}}]}}"),
        "{a: x, b: z}",
        &[
            r#"<nil>: Invalid value: "": "x" must validate one and only one schema (oneOf). Found 2 valid alternatives"#,
        ],
    );
    check(
        &format!("{object}, anyOf: [{{required: [a]}}, {{required: [b]}}]}}"),
        "{}",
        &[
            r#"<nil>: Invalid value: "": "x" must validate at least one schema (anyOf)"#,
            "x.a: Required value",
        ],
    );
    check(
        &format!("{object}, allOf: [{{required: [a]}}, {{required: [b]}}]}}"),
        "{a: x}",
        &[
            r#"<nil>: Invalid value: "": "x" must validate all the schemas (allOf)"#,
            "x.b: Required value",
        ],
    );
    check(
        &format!("{object}, allOf: [{{required: [a]}}, {{required: [a]}}]}}"),
        "{}",
        &[
            r#"<nil>: Invalid value: "": "x" must validate all the schemas (allOf). None validated"#,
            "x.a: Required value",
        ],
    );
    check(
        &format!("{object}, not: {{required: [a]}}}}"),
        "{a: x}",
        &[r#"<nil>: Invalid value: "": "x" must not validate the schema (not)"#],
    );
    check(
        "{x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}",
        "5",
        &[],
    );
}

#[test]
fn duplicates_in_sets_and_map_lists_are_reported() {
    check(
        "{type: array, x-kubernetes-list-type: set, items: {type: string}}",
        "[a, b, a, a]",
        &[r#"x[2]: Duplicate value: "a""#],
    );
    let map = "{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: \
               {type: object, properties: {k: {type: string}, v: {type: integer}}}}";
    check(
        map,
        "[{k: a, v: 1}, {k: a, v: 2}]",
        &[r#"x[1]: Duplicate value: {"k":"a"}"#],
    );
    check(map, "[{v: 1}, {v: 2}]", &["x[1]: Duplicate value: {}"]);
    check(map, "[{k: a}, {k: b}]", &[]);
}

#[test]
fn embedded_resources_need_a_type_and_valid_metadata() {
    let embedded = "{type: object, x-kubernetes-embedded-resource: true, \
                    x-kubernetes-preserve-unknown-fields: true}";
    check(
        embedded,
        "{}",
        &["x.apiVersion: Required value", "x.kind: Required value"],
    );
    check(
        embedded,
        "{apiVersion: v1, kind: Pod, metadata: {labels: {a: b}}}",
        &[],
    );
    check(
        embedded,
        "{apiVersion: a/b/c, kind: Pod}",
        &[r#"x.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c"#],
    );
    check(
        embedded,
        "{apiVersion: v1, kind: Pod, metadata: {name: a/b}}",
        &[r#"x.metadata.name: Invalid value: "a/b": may not contain '/'"#],
    );
}

#[test]
fn unchanged_values_cause_no_errors() {
    let schema = schema(
        r#"
type: object
properties:
  kind: {type: string, enum: [Never]}
  a: {type: string, maxLength: 2}
  b: {type: string, maxLength: 2}
  map:
    type: array
    x-kubernetes-list-type: map
    x-kubernetes-list-map-keys: [k]
    items: {type: object, properties: {k: {type: string}, v: {type: string, maxLength: 1}}}
  atomic:
    type: array
    items: {type: object, properties: {v: {type: string, maxLength: 1}}}
  one:
    type: object
    properties: {p: {type: string}, q: {type: string}}
    oneOf: [{required: [p]}, {required: [q]}]
"#,
    );
    let check = |old: &str, new: &str, expected: &[&str]| {
        let found = schema.validate(&yaml(new), Some(&yaml(old)), Vec::new());
        assert_eq!(lines(&found.errors), expected, "{old} -> {new}");
    };
    let too_long = "a: Too long: may not be more than 2 bytes";
    check("{a: long}", "{a: long, b: ok}", &[]);
    check("{a: long}", "{a: longer}", &[too_long]);
    check("{}", "{a: long}", &[too_long]);
    // Elements of a map list correspond by key, in any order.
    check(
        "{map: [{k: a, v: long}, {k: b, v: x}]}",
        "{map: [{k: b, v: z}, {k: a, v: long}]}",
        &[],
    );
    check(
        "{map: [{k: a, v: long}]}",
        "{map: [{k: c, v: long}]}",
        &["map[0].v: Too long: may not be more than 1 bytes"],
    );
    // Other lists only as a whole.
    check("{atomic: [{v: long}]}", "{atomic: [{v: long}], a: x}", &[]);
    check(
        "{atomic: [{v: long}]}",
        "{atomic: [{v: long}, {v: x}]}",
        &["atomic[0].v: Too long: may not be more than 1 bytes"],
    );
    check("{one: {}}", "{one: {}, a: x}", &[]);
    // The type of an object never counts as unchanged.
    check("{kind: K}", "{kind: K}", &[]);
    check(
        "{kind: K}",
        "{kind: K, a: x}",
        &[r#"kind: Unsupported value: "K": supported values: "Never""#],
    );
}

#[test]
fn duplicates_in_the_old_object_excuse_new_ones() {
    let schema = schema(
        "{type: object, properties: {s: {type: array, x-kubernetes-list-type: set, items: {type: string}}}}",
    );
    let findings = |old: &str, new: &str| {
        let found = schema.validate(&yaml(new), Some(&yaml(old)), Vec::new());
        lines(&found.errors).len()
    };
    assert_eq!(findings("{s: [a, a]}", "{s: [b, b]}"), 0);
    assert_eq!(findings("{s: [a]}", "{s: [b, b]}"), 1);
}

#[test]
fn a_status_is_validated_alone_with_its_own_paths() {
    let schema = schema(
        "{type: object, properties: {spec: {type: string}, status: {type: object, required: [num], \
         properties: {num: {type: integer}}}}}",
    );
    let old = yaml("{spec: x}");
    let errors = |new: &str| {
        let found = schema.validate_status(&yaml(new), &old, Vec::new());
        lines(&found.errors)
    };
    assert_eq!(errors("{spec: 5, status: {num: 1}}"), [""; 0]);
    assert_eq!(
        errors("{status: {num: x}}"),
        [r#"status.num: Invalid value: "string": num in body must be of type integer: "string""#]
    );
    assert_eq!(errors("{status: {}}"), ["status.num: Required value"]);
}

#[test]
fn rules_do_not_run_on_an_object_with_wrong_types() {
    let schema = schema(
        "{type: object, required: [a], properties: {a: {type: string}}, \
         x-kubernetes-validations: [{rule: 'false'}]}",
    );
    let found = schema.validate(&yaml("{}"), None, Vec::new());
    assert_eq!(
        lines(&found.errors),
        [
            "<nil>: Invalid value: null: some validation rules were not checked because the object \
             was invalid; correct the existing errors to complete validation",
            "a: Required value"
        ]
    );
    let found = schema.validate(&yaml("{a: x}"), None, Vec::new());
    assert_eq!(
        lines(&found.errors),
        ["<nil>: Invalid value: failed rule: false"]
    );
}

#[test]
fn elements_of_long_map_lists_are_found_by_their_keys() {
    let declared = schema(
        "{type: object, properties: {l: {type: array, x-kubernetes-list-type: map, \
         x-kubernetes-list-map-keys: [k], items: {type: object, required: [k], properties: \
         {k: {type: string}, v: {type: integer, minimum: 1000000}}}}}}",
    );
    let element = |n: usize| yaml(&format!("{{k: key{n}, v: {n}}}"));
    let whole = |list: &[bareboat_api::Value]| {
        let list = bareboat_api::Value::Array(list.to_vec());
        bareboat_api::value!({"l": list})
    };
    let mut list: Vec<_> = (0..3000).map(element).collect();
    let old = whole(&list);
    list.reverse();
    let found = declared.validate(&whole(&list), Some(&old), Vec::new());
    assert!(found.errors.is_empty(), "nothing changed but the order");
    list[7] = element(7000);
    let found = declared
        .validate(&whole(&list), Some(&old), Vec::new())
        .errors;
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].to_string().starts_with("l[7].v"), "{}", found[0]);
}

#[test]
fn long_enums_accept_the_same_values_as_short_ones() {
    let choices: Vec<String> = (0..100).map(|n| format!("v{n}, {n}")).collect();
    let declared = schema(&format!(
        "{{type: object, properties: {{x: {{enum: [{}]}}}}}}",
        choices.join(", ")
    ));
    for (value, fits) in [
        ("v7", true),
        ("7", true),
        ("'7'", false),
        ("v700", false),
        ("{}", false),
    ] {
        let found = declared.validate(&yaml(&format!("{{x: {value}}}")), None, Vec::new());
        assert_eq!(found.errors.is_empty(), fits, "{value}");
    }
}

#[test]
fn many_or_large_errors_are_cut_off() {
    let choices: Vec<String> = (0..5000).map(|n| format!("choice{n}")).collect();
    let declared = schema(&format!(
        "{{type: object, properties: {{l: {{type: array, items: {{type: string, enum: [{}]}}}}}}}}",
        choices.join(", ")
    ));
    let measure = |count: usize| {
        let list = vec!["x"; count].join(", ");
        let found = declared.validate(&yaml(&format!("{{l: [{list}]}}")), None, Vec::new());
        assert!(!found.errors.is_empty() && found.errors.len() <= count);
        found
            .errors
            .iter()
            .map(|error| error.detail.len())
            .sum::<usize>()
    };
    let (once, twice) = (measure(500), measure(1000));
    assert!(once > 1 << 20, "{once}");
    assert!(twice < 5 << 20, "{twice}");
}
