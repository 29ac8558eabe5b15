//! The decisions, reasons and refusals of Kubernetes' own authorizer and escalation check.

use bareboat_api::kind::User;
use bareboat_api::{Str, Value};
use bareboat_rbac::{Policy, Request, Rule, Scope};

fn world() -> Option<(Policy, Value)> {
    let folder = std::env::var("BAREBOAT_VECTORS")
        .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/vectors").into());
    let Ok(bytes) = std::fs::read(format!("{folder}/rbac/decisions.json")) else {
        assert!(
            std::env::var("CI").is_err(),
            "the vectors are missing: set BAREBOAT_VECTORS"
        );
        return None;
    };
    let world = bareboat_wire::json::parse(&bytes)
        .expect("vectors parse")
        .value;
    let policy = Policy::new();
    for (list, is_role) in [
        ("clusterRoles", true),
        ("roles", true),
        ("clusterRoleBindings", false),
        ("roleBindings", false),
    ] {
        for object in items(&world, list) {
            let name = text(object.get("metadata"), "name");
            let scope = match text(object.get("metadata"), "namespace") {
                "" => Scope::Cluster,
                namespace => Scope::Namespace(namespace),
            };
            if is_role {
                policy.set_role(scope, name, Some(object));
            } else {
                policy.set_binding(scope, name, Some(object));
            }
        }
    }
    Some((policy, world))
}

fn items<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).unwrap_or(&[])
}

fn text<'a>(value: Option<&'a Value>, key: &str) -> &'a str {
    value
        .and_then(|value| value.get(key))
        .and_then(Value::as_str)
        .unwrap_or("")
}

fn user(case: &Value) -> User {
    User {
        name: Str::new(text(Some(case), "user")),
        groups: items(case, "groups")
            .iter()
            .filter_map(Value::as_str)
            .map(Str::new)
            .collect(),
        ..User::default()
    }
}

#[test]
fn every_decision_and_reason_is_that_of_kubernetes() {
    let Some((policy, world)) = world() else {
        return;
    };
    let cases = items(&world, "requests");
    assert_eq!(cases.len(), 3000);
    for case in cases {
        let field = |key| text(Some(case), key);
        let request = match field("path") {
            "" => Request::Resource {
                verb: field("verb"),
                group: field("group"),
                resource: field("resource"),
                subresource: field("subresource"),
                namespace: field("namespace"),
                name: field("name"),
            },
            path => Request::Url {
                verb: field("verb"),
                path,
            },
        };
        let allowed = case.get("allowed") == Some(&Value::Bool(true));
        let user = user(case);
        let explained = policy.explain(&user, &request);
        assert_eq!(explained.allowed, allowed, "{case}");
        assert_eq!(explained.reason, field("reason"), "{case}");
        assert_eq!(policy.allows(&user, &request), allowed, "{case}");
    }
}

#[test]
fn every_refusal_to_grant_is_that_of_kubernetes() {
    let Some((policy, world)) = world() else {
        return;
    };
    let cases = items(&world, "escalations");
    assert_eq!(cases.len(), 600);
    for case in cases {
        let scope = match text(Some(case), "namespace") {
            "" => Scope::Cluster,
            namespace => Scope::Namespace(namespace),
        };
        let rules: Vec<Rule> = items(case, "rules").iter().map(Rule::from_value).collect();
        let refused = policy
            .check_grant(&user(case), scope, &rules)
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default();
        assert_eq!(refused, text(Some(case), "refused"), "{case}");
    }
}

#[test]
fn rules_that_multiply_are_refused_before_they_are_compared() {
    let many =
        |name: &str| -> Vec<Str> { (0..60).map(|n| Str::new(format!("{name}{n}"))).collect() };
    let rule = Rule {
        verbs: many("v"),
        api_groups: many("g"),
        resources: many("r"),
        ..Rule::default()
    };
    let refused = Policy::new().check_grant(&User::default(), Scope::Cluster, &[rule]);
    let text = refused.expect_err("it is refused").to_string();
    assert!(text.contains("too many to check"), "{text}");
}
