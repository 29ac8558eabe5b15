//! What is refused, with which words.

use super::{binding, denied, policy, verdict};
use crate::{Decision, Enforcement, ErrorType, Evaluation, MAX_FAILURES, Verdict};
use bareboat_api::{Value, value};

#[test]
fn messages_are_those_of_kubernetes() {
    let long = format!("'{}'", "x".repeat(5 * 1024 + 1));
    for (spec, wanted) in [
        (
            value!({"validations": [{"expression": "object.spec.replicas > 5"}]}),
            "",
        ),
        (
            value!({"validations": [{"expression": " object.spec.replicas < 5 "}]}),
            "failed expression: object.spec.replicas < 5",
        ),
        (
            value!({"validations": [{"expression": "false", "message": " too many "}]}),
            "too many",
        ),
        (
            value!({"validations": [
                {"expression": "false", "message": "text", "messageExpression": "'got ' + string(object.spec.replicas) + ' '"},
            ]}),
            "got 6",
        ),
        // Unusable results of message expressions.
        (
            value!({"validations": [{"expression": "false", "message": "text", "messageExpression": "' '"}]}),
            "text",
        ),
        (
            value!({"validations": [{"expression": "false", "message": "text", "messageExpression": "'a\\nb'"}]}),
            "text",
        ),
        (
            value!({"validations": [{"expression": "false", "messageExpression": "object.nothing"}]}),
            "failed expression: false",
        ),
        (
            value!({"validations": [{"expression": "false", "message": "text", "messageExpression": (long)}]}),
            "text",
        ),
        // Errors.
        (
            value!({"validations": [{"expression": "object.spec.nothing == 1"}]}),
            "expression 'object.spec.nothing == 1' resulted in error: no such key: nothing",
        ),
        (
            value!({"failurePolicy": "Ignore", "validations": [{"expression": "object.spec.nothing == 1"}]}),
            "",
        ),
        // The first of several.
        (
            value!({"validations": [
                {"expression": "true"}, {"expression": "false", "message": "one"}, {"expression": "false", "message": "two"},
            ]}),
            "one",
        ),
        // What expressions read.
        (
            value!({
                "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
                "validations": [{"expression": "params.max == 5 && namespaceObject.metadata.labels.env == 'prod' && oldObject.spec.replicas == 1 && request.userInfo.username == 'ann' && request.operation == 'UPDATE'"}],
            }),
            "",
        ),
        (
            value!({"validations": [{"expression": "request.name == ''"}]}),
            "expression 'request.name == ''' resulted in error: no such key: name",
        ),
    ] {
        assert_eq!(denied(spec.clone()), wanted, "{spec}");
    }
}

#[test]
fn variables_are_computed_when_they_are_read() {
    let spec = |validation: &str| {
        value!({
            "variables": [
                {"name": "fails", "expression": "object.nothing"},
                {"name": "replicas", "expression": "object.spec.replicas"},
                {"name": "twice", "expression": "variables.replicas * 2"},
                {"name": "loop", "expression": "1"},
                {"name": "loop", "expression": "variables.loop + 1"},
            ],
            "validations": [{"expression": (validation)}],
        })
    };
    for (validation, wanted) in [
        ("variables.twice == 12", ""),
        ("variables.twice == 12 || variables.fails", ""),
        ("has(variables.twice)", ""),
        (
            "variables.fails == 1",
            "expression 'variables.fails == 1' resulted in error: composited variable \"fails\" fails to evaluate: no such key: nothing",
        ),
        (
            "variables.loop == 2",
            "expression 'variables.loop == 2' resulted in error: composited variable \"loop\" fails to evaluate: composited variable \"loop\" refers to itself",
        ),
    ] {
        assert_eq!(denied(spec(validation)), wanted, "{validation}");
    }
}

#[test]
fn match_conditions_decide_first() {
    let spec = |conditions: &[&str], failure: &str| {
        let conditions: Value = conditions
            .iter()
            .map(|text| value!({"name": "c", "expression": (*text)}))
            .collect();
        value!({
            "failurePolicy": (failure),
            "matchConditions": (conditions),
            "validations": [{"expression": "false", "message": "applied"}],
        })
    };
    let error = "expression 'object.nothing == 1' resulted in error: no such key: nothing";
    let both =
        format!("[{error}, expression 'object.less == 1' resulted in error: no such key: less]");
    for (conditions, failure, wanted) in [
        (&["true"][..], "Fail", "applied"),
        (&["true", "object.spec.replicas == 5"], "Fail", ""),
        (&["object.nothing == 1", "false"], "Fail", ""),
        (&["object.nothing == 1", "true"], "Fail", error),
        (
            &["object.nothing == 1", "object.nothing == 1"],
            "Fail",
            error,
        ),
        (&["object.nothing == 1", "object.less == 1"], "Fail", &both),
        (&["object.nothing == 1", "true"], "Ignore", ""),
        // Conditions do not see the namespace.
        (&["namespaceObject == null"], "Fail", "applied"),
    ] {
        assert_eq!(denied(spec(conditions, failure)), wanted, "{conditions:?}");
    }
}

#[test]
fn reasons_have_codes() {
    for (reason, code) in [
        ("Unauthorized", 401),
        ("Forbidden", 403),
        ("RequestEntityTooLarge", 413),
        ("Invalid", 422),
        ("", 422),
    ] {
        let spec = value!({"validations": [{"expression": "false", "reason": (reason)}]});
        let verdict = verdict(&policy(spec), value!(["Deny"]));
        let denial = verdict.denial().expect("it is refused");
        assert_eq!(denial.code(), code);
        let what = bareboat_api::status::GroupResource {
            group: "apps",
            resource: "deployments",
        };
        let status = denial.status(what, "d");
        assert_eq!(status.code, code);
        assert_eq!(
            status.reason,
            if reason.is_empty() { "Invalid" } else { reason }
        );
        let text = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: failed expression: false";
        assert_eq!(
            status.message,
            format!("deployments.apps \"d\" is forbidden: {text}")
        );
        let details = status.details.expect("details");
        assert_eq!(details.causes[0].message, text);
    }
}

#[test]
fn warn_and_audit_do_not_refuse() {
    let spec = value!({
        "validations": [{"expression": "true"}, {"expression": "object.spec.replicas < 5"}],
        "auditAnnotations": [
            {"key": "team", "valueExpression": "' ' + object.metadata.labels.team"},
            {"key": "none", "valueExpression": "null"},
            {"key": "empty", "valueExpression": "''"},
        ],
    });
    let policy = policy(spec);
    let verdict = verdict(&policy, value!(["Warn", "Audit"]));
    assert_eq!(verdict.denial(), None);
    assert_eq!(
        verdict.warnings(),
        [
            "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': failed expression: object.spec.replicas < 5"
        ]
    );
    assert_eq!(
        verdict.audit_annotations(),
        [
            ("p/team".to_owned(), "blue".to_owned()),
            (
                "validation.policy.admission.k8s.io/validation_failure".to_owned(),
                r#"[{"message":"failed expression: object.spec.replicas \u003c 5","policy":"p","binding":"b","expressionIndex":1,"validationActions":["Warn","Audit"]}]"#
                    .to_owned()
            ),
        ]
    );
    let failed = crate::Validated {
        decisions: vec![decision("failed")],
        audits: Vec::new(),
    };
    let checks = Verdict::default().add(&policy, &binding(value!(["Warn", "Audit"])), failed);
    let done = checks.iter().map(|check| (check.enforcement, check.error));
    assert_eq!(
        done.collect::<Vec<_>>(),
        [
            (Enforcement::Warn, ErrorType::Invalid),
            (Enforcement::Audit, ErrorType::Invalid)
        ]
    );
}

/// A validation that failed with this message.
fn decision(message: &str) -> Decision {
    Decision {
        index: 0,
        admitted: false,
        evaluation: Evaluation::Denied,
        message: message.to_owned(),
        reason: "Invalid",
    }
}

#[test]
fn what_many_parameter_objects_say_is_cut() {
    let policy = policy(value!({"validations": [{"expression": "false"}]}));
    let binding = binding(value!(["Warn", "Audit"]));
    let mut verdict = Verdict::default();
    for number in 0..MAX_FAILURES + 3 {
        let text = format!("object {number}");
        let validated = crate::Validated {
            decisions: vec![decision(&text)],
            audits: vec![crate::AuditAnnotation {
                key: "k".to_owned(),
                value: Ok(text),
            }],
        };
        assert_eq!(verdict.add(&policy, &binding, validated).len(), 2);
    }
    let warnings = verdict.warnings();
    assert_eq!(warnings.len(), MAX_FAILURES + 1);
    assert_eq!(
        warnings[MAX_FAILURES],
        "3 more failed validations were left out"
    );
    let annotations = verdict.audit_annotations();
    let (key, values) = &annotations[0];
    assert_eq!(key, "p/k");
    assert_eq!(values.split(", ").count(), MAX_FAILURES + 1);
    assert!(values.ends_with("object 49, 3 more values were left out"));
    let (_, failures) = &annotations[1];
    assert_eq!(failures.matches("{\"message\":").count(), MAX_FAILURES + 1);
    assert!(failures.ends_with(
        r#",{"message":"3 more failed validations were left out","policy":"","binding":"","expressionIndex":0,"validationActions":[]}]"#
    ));
}

#[test]
fn values_of_audit_annotations_are_joined_and_cut() {
    let policy = policy(value!({"auditAnnotations": [{"key": "k", "valueExpression": "'x'"}]}));
    let binding = binding(value!(["Deny"]));
    let mut verdict = Verdict::default();
    let annotated = |value: &str| crate::Validated {
        decisions: Vec::new(),
        audits: vec![crate::AuditAnnotation {
            key: "k".to_owned(),
            value: Ok(value.to_owned()),
        }],
    };
    for value in ["a", "b", "a"] {
        verdict.add(&policy, &binding, annotated(value));
    }
    verdict.add(&policy, &binding, annotated(&"é".repeat(6000)));
    let annotations = verdict.audit_annotations();
    let (key, value) = &annotations[0];
    assert_eq!(key, "p/k");
    assert!(value.starts_with("a, b, é"), "{}", &value[..20]);
    assert_eq!(value.len(), "a, b, ".len() + 10 * 1024);
}

#[test]
fn an_audit_annotation_that_fails_refuses_the_request() {
    let spec = |failure: &str| {
        value!({
            "failurePolicy": (failure),
            "auditAnnotations": [{"key": "k", "valueExpression": "string(object.nothing)"}],
        })
    };
    assert_eq!(
        denied(spec("Fail")),
        "expression 'string(object.nothing)' resulted in error: no such key: nothing"
    );
    assert_eq!(denied(spec("Ignore")), "");
}

#[test]
fn misconfigured_policies_and_bindings_refuse_unless_failures_are_ignored() {
    let binding = binding(value!(["Warn"]));
    for (failure, bound, wanted) in [
        (
            "Fail",
            true,
            Some(
                "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: failed to configure binding: why",
            ),
        ),
        (
            "Fail",
            false,
            Some("ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: why"),
        ),
        ("Ignore", true, None),
    ] {
        let policy = policy(value!({"failurePolicy": (failure)}));
        let mut verdict = Verdict::default();
        verdict.misconfigured(&policy, bound.then_some(&binding), "why");
        let message = verdict.denial().map(|denial| denial.message.as_str());
        assert_eq!(message, wanted);
    }
}
