//! Compares decisions, reasons and errors with Kubernetes' own authorizer and escalation check.

use bareboat_api::kind::User;
use bareboat_api::{Str, Value, value};
use bareboat_rbac::{Policy, Request, Rule, Scope};

fn world() -> Option<(Policy, Value)> {
    let folder = bareboat_vectors::folder("rbac")?;
    let bytes = std::fs::read(folder.join("decisions.json")).expect("there are decisions");
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
fn every_decision_and_reason_equals_that_of_kubernetes() {
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
fn every_escalation_error_equals_that_of_kubernetes() {
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
fn rules_with_too_many_single_rights_are_refused() {
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

/// Binds a user many times to a role with a long list of names.
fn crowded(bindings: usize, roles: usize, names: usize) -> Policy {
    let policy = Policy::new();
    let names: Value = (0..names).map(|n| Str::new(format!("n{n}"))).collect();
    for role in 0..roles {
        let rule = value!({
            "verbs": ["get"], "apiGroups": [""], "resources": [(format!("r{role}"))], "resourceNames": (names.clone()),
        });
        let object = value!({"rules": [(rule)]});
        policy.set_role(Scope::Namespace("a"), &format!("r{role}"), Some(&object));
    }
    for binding in 0..bindings {
        let object = value!({
            "roleRef": {"kind": "Role", "name": (format!("r{}", binding % roles))},
            "subjects": [{"kind": "User", "name": "ann"}],
        });
        let name = format!("b{binding}");
        policy.set_binding(Scope::Namespace("a"), &name, Some(&object));
    }
    policy
}

fn ann() -> User {
    User {
        name: Str::new("ann"),
        ..User::default()
    }
}

#[test]
fn ten_thousand_bindings_list_each_role_once() {
    let policy = crowded(10_000, 10, 1_000);
    let held = policy.rules_for(&ann(), "a");
    assert_eq!((held.rules.len(), held.is_cut), (10, false));
}

#[test]
fn the_rules_of_a_user_are_listed_up_to_a_limit() {
    let policy = crowded(1_000, 1_000, 1_000);
    let held = policy.rules_for(&ann(), "a");
    assert!(held.is_cut);
    assert!(held.rules.len() < 200, "{}", held.rules.len());
    // What is not listed still decides.
    let request = Request::Resource {
        verb: "get",
        group: "",
        resource: "r999",
        subresource: "",
        namespace: "a",
        name: "n999",
    };
    assert!(policy.allows(&ann(), &request));
    // A grant of what is not listed is refused, not allowed.
    let rule = Rule::from_value(&value!({
        "verbs": ["get"], "apiGroups": [""], "resources": ["r999"], "resourceNames": ["n1"],
    }));
    let refused = policy.check_grant(&ann(), Scope::Namespace("a"), &[rule]);
    let text = refused.expect_err("it is refused").to_string();
    assert!(text.contains("too many to compare"), "{text}");
}

#[test]
fn a_grant_is_not_compared_for_longer_than_a_moment() {
    let policy = crowded(100, 100, 1_000);
    let many = |name: &str, count: usize| -> Vec<Str> {
        (0..count).map(|n| Str::new(format!("{name}{n}"))).collect()
    };
    let rule = Rule {
        verbs: many("v", 10),
        api_groups: many("g", 10),
        resources: many("x", 100),
        ..Rule::default()
    };
    let begun = std::time::Instant::now();
    let refused = policy.check_grant(&ann(), Scope::Namespace("a"), &[rule]);
    let text = refused.expect_err("it is refused").to_string();
    assert!(text.contains("too many to compare"), "{text}");
    assert!(
        begun.elapsed() < std::time::Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn cost_grows_linearly_with_the_groups_of_a_user_and_the_subjects_of_a_binding() {
    /// Returns how long it takes to decide about a user in many groups that one binding names in the opposite order.
    fn cost(count: usize) -> std::time::Duration {
        let subjects: Value = (0..count)
            .rev()
            .map(|n| value!({"kind": "Group", "name": (format!("g{n}"))}))
            .collect();
        let policy = Policy::new();
        let binding =
            value!({"roleRef": {"kind": "Role", "name": "missing"}, "subjects": subjects});
        policy.set_binding(Scope::Namespace("a"), "b", Some(&binding));
        let user = User {
            name: Str::new("ann"),
            groups: (0..count).map(|n| Str::new(format!("g{n}"))).collect(),
            ..User::default()
        };
        let request = Request::Resource {
            verb: "get",
            group: "",
            resource: "pods",
            subresource: "",
            namespace: "a",
            name: "",
        };
        let begun = std::time::Instant::now();
        assert!(!policy.allows(&user, &request));
        let reason = policy.explain(&user, &request).reason;
        assert!(reason.contains("missing"), "{reason}");
        begun.elapsed()
    }
    // Linear work takes eight times as long for the larger size, quadratic work 64 times.
    let least = std::time::Duration::from_millis(2);
    let mut best = (std::time::Duration::MAX, std::time::Duration::MAX);
    for _ in 0..5 {
        best = (best.0.min(cost(1_000)), best.1.min(cost(8_000)));
        if best.1 < best.0.max(least) * 20 {
            return;
        }
    }
    panic!("1000 take {:?}, 8000 take {:?}", best.0, best.1);
}
