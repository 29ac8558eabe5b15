//! Tests of rules: messages, reasons, transitions, ratcheting and budgets.

use crate::testing::{lines, schema, yaml};

fn check(declared: &str, old: Option<&str>, new: &str, errors: &[&str], warnings: &[&str]) {
    let schema = schema(declared);
    let old = old.map(yaml);
    let found = schema.validate(&yaml(new), old.as_ref(), Vec::new());
    assert_eq!(lines(&found.errors), errors, "{declared} on {new}");
    assert_eq!(found.warnings, warnings, "{declared} on {new}");
}

#[test]
fn a_failed_rule_reports_its_message() {
    let with = |rest: &str| {
        format!(
            "{{type: object, properties: {{spec: {{type: object, properties: {{num: {{type: integer}}, \
             m: {{type: object, additionalProperties: {{type: string}}}}}}, \
             x-kubernetes-validations: [{{rule: 'self.num > 1'{rest}}}]}}}}}}"
        )
    };
    for (rest, expected) in [
        ("", "spec: Invalid value: failed rule: self.num > 1"),
        (", message: ' too small '", "spec: Invalid value: too small"),
        (
            r#", messageExpression: "'n is ' + string(self.num)""#,
            "spec: Invalid value: n is 1",
        ),
        (
            r#", message: else, messageExpression: "''""#,
            "spec: Invalid value: else",
        ),
        (
            r#", message: else, messageExpression: "self.m['x']""#,
            "spec: Invalid value: else",
        ),
        (
            ", message: denied, reason: FieldValueForbidden, fieldPath: .num",
            "spec.num: Forbidden: denied",
        ),
        (
            ", message: denied, reason: FieldValueRequired, fieldPath: \".m['a.b']\"",
            "spec.m[a.b]: Required value: denied",
        ),
        (", reason: FieldValueDuplicate", "spec: Duplicate value"),
    ] {
        check(&with(rest), None, "{spec: {num: 1}}", &[expected], &[]);
    }
    check(
        "{type: object, properties: {num: {type: integer, x-kubernetes-validations: [{rule: self > 1}]}}}",
        None,
        "{num: 1}",
        &["num: Invalid value: 1: failed rule: self > 1"],
        &[],
    );
}

#[test]
fn paths_have_keys_members_and_indexes() {
    let text = "{type: string, x-kubernetes-validations: [{rule: self == 'x'}]}";
    let declared = format!(
        "{{type: object, properties: {{m: {{type: object, additionalProperties: {text}}}, \
         l: {{type: array, items: {text}}}}}}}"
    );
    check(
        &declared,
        None,
        "{m: {k: v, o: x}, l: [x, z]}",
        &[
            "l[1]: Invalid value: \"z\": failed rule: self == 'x'",
            "m[k]: Invalid value: \"v\": failed rule: self == 'x'",
        ],
        &[],
    );
}

#[test]
fn transition_rules_run_only_with_an_old_value() {
    let declared = "{type: object, properties: {num: {type: integer, x-kubernetes-validations: \
                    [{rule: self >= oldSelf, message: must not shrink}]}}}";
    check(declared, None, "{num: 1}", &[], &[]);
    check(declared, Some("{}"), "{num: 1}", &[], &[]);
    check(declared, Some("{num: 1}"), "{num: 2}", &[], &[]);
    check(
        declared,
        Some("{num: 2}"),
        "{num: 1}",
        &["num: Invalid value: 1: must not shrink"],
        &[],
    );
    let optional = "{type: object, properties: {num: {type: integer, x-kubernetes-validations: \
                    [{rule: '!oldSelf.hasValue() || oldSelf.value() == self', optionalOldSelf: true, message: fixed}]}}}";
    check(optional, None, "{num: 1}", &[], &[]);
    check(
        optional,
        Some("{num: 1}"),
        "{num: 2}",
        &["num: Invalid value: 2: fixed"],
        &[],
    );
    let map = "{type: object, properties: {l: {type: array, x-kubernetes-list-type: map, \
               x-kubernetes-list-map-keys: [k], items: {type: object, required: [k], properties: \
               {k: {type: string}, v: {type: integer}}, x-kubernetes-validations: \
               [{rule: self.v >= oldSelf.v, message: shrank}]}}}}";
    check(
        map,
        Some("{l: [{k: a, v: 1}, {k: b, v: 5}]}"),
        "{l: [{k: b, v: 4}, {k: c, v: 0}, {k: a, v: 1}]}",
        &["l[0]: Invalid value: shrank"],
        &[],
    );
}

#[test]
fn rules_violated_by_unchanged_values_only_warn() {
    let declared = "{type: object, properties: {a: {type: object, properties: {num: {type: integer}}, \
                    x-kubernetes-validations: [{rule: self.num > 1, message: small}]}, \
                    l: {type: array, items: {type: integer, x-kubernetes-validations: \
                    [{rule: self > 1, message: tiny}]}}, z: {type: string}}}";
    let small = "a: Invalid value: small";
    check(
        declared,
        Some("{a: {num: 1}}"),
        "{a: {num: 1}, z: x}",
        &[],
        &[small],
    );
    check(
        declared,
        Some("{a: {num: 0}}"),
        "{a: {num: 1}}",
        &[small],
        &[],
    );
    check(
        declared,
        Some("{l: [1]}"),
        "{l: [1], z: x}",
        &[],
        &["l[0]: Invalid value: 1: tiny"],
    );
    check(
        declared,
        Some("{l: [1]}"),
        "{l: [1, 2]}",
        &["l[0]: Invalid value: 1: tiny"],
        &[],
    );
}

#[test]
fn runtime_errors_are_reported() {
    check(
        "{type: object, properties: {num: {type: integer}}, x-kubernetes-validations: [{rule: 1 / self.num == 1}]}",
        None,
        "{num: 0}",
        &[r#"<nil>: Invalid value: "object": division by zero evaluating rule: 1 / self.num == 1"#],
        &[],
    );
    check(
        "{type: object, properties: {num: {type: integer}}, x-kubernetes-validations: [{rule: self.nope == 1}]}",
        None,
        "{num: 0}",
        &[
            "<nil>: Invalid value: \"object\": rule compile error: compilation failed: ERROR: \
           <input>:1:5: undefined field 'nope'\n | self.nope == 1\n | ....^",
        ],
        &[],
    );
}

#[test]
fn rules_that_run_too_long_are_stopped() {
    let declared = "{type: object, properties: {l: {type: array, items: {type: integer}}}, \
                    x-kubernetes-validations: [{rule: 'self.l.all(x, self.l.all(y, x == y))', message: unequal}]}";
    let items = vec!["1"; 2_000].join(", ");
    check(
        declared,
        None,
        &format!("{{l: [{items}]}}"),
        &[
            r#"<nil>: Invalid value: "object": 'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: unequal"#,
        ],
        &[],
    );
}

#[test]
fn the_root_has_its_type_and_name_but_no_other_metadata() {
    let declared = "{type: object, x-kubernetes-validations: [{rule: self.metadata.name == 'good', message: bad name}]}";
    check(
        declared,
        None,
        "{apiVersion: a/v1, kind: K, metadata: {name: good}}",
        &[],
        &[],
    );
    check(
        declared,
        None,
        "{apiVersion: a/v1, kind: K, metadata: {name: evil}}",
        &["<nil>: Invalid value: bad name"],
        &[],
    );
}

#[test]
fn an_interrupt_ends_rules_early_and_keeps_compiled_programs_intact() {
    let schema = schema(
        "{type: object, properties: {n: {type: array, items: {type: integer}, \
         x-kubernetes-validations: [{rule: '[1, 2].all(x, x > 0) && self.all(x, x > 0)'}]}}}",
    );
    let object = yaml("{n: [1, 0]}");
    let interrupt = bareboat_api::interrupt::Interrupt::default();
    interrupt.request();
    // An interrupted check discards its findings; later checks must not see them.
    interrupt.watch(|| schema.validate(&object, None, Vec::new()));
    let found = schema.validate(&object, None, Vec::new());
    assert_eq!(found.errors.len(), 1, "{:?}", lines(&found.errors));
    let rules = interrupt.watch(|| schema.validate(&object, None, Vec::new()));
    assert!(rules.errors.is_empty(), "no rule was run");
}

#[test]
fn long_lists_in_another_order_are_compared_by_their_keys() {
    let declared = "{type: object, properties: {\
                    l: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, \
                    properties: {k: {type: string}, v: {type: integer}}}, x-kubernetes-validations: [{rule: self == oldSelf}]}, \
                    s: {type: array, x-kubernetes-list-type: set, items: {type: string}, \
                    x-kubernetes-validations: [{rule: self == oldSelf}]}}}";
    let object = |numbers: &mut dyn Iterator<Item = usize>| {
        let (mut list, mut set) = (Vec::new(), Vec::new());
        for n in numbers {
            list.push(format!("{{k: key{n}, v: {n}}}"));
            set.push(format!("text{n}"));
        }
        format!("{{l: [{}], s: [{}]}}", list.join(", "), set.join(", "))
    };
    let old = object(&mut (0..12_000));
    check(
        declared,
        Some(&old),
        &object(&mut (0..12_000).rev()),
        &[],
        &[],
    );
    check(
        declared,
        Some(&old),
        &object(&mut (1..12_001).rev()),
        &[
            "l: Invalid value: failed rule: self == oldSelf",
            "s: Invalid value: failed rule: self == oldSelf",
        ],
        &[],
    );
}
