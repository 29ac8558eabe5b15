//! Aggregated cluster roles.

use crate::fixture::Fixture;
use bareboat_api::{Object, Value, value};

const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";

fn role(name: &str, labels: Value, rules: Value) -> Value {
    value!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": name, "labels": labels}, "rules": rules,
    })
}

fn rule(resource: &str) -> Value {
    value!({"apiGroups": [""], "resources": [resource], "verbs": ["get"]})
}

fn rules(role: &Object) -> Vec<Value> {
    let rules = role.get("rules").and_then(Value::as_array);
    rules.unwrap_or(&[]).to_vec()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_aggregated_role_has_the_rules_of_the_roles_it_selects() {
    let fixture = Fixture::new().await;
    let mut all = role("all", value!({"to": "more"}), value!([]));
    all.make_object().insert(
        "aggregationRule",
        value!({"clusterRoleSelectors": [{"matchLabels": {"to": "all"}}, {"matchLabels": {"to": "both"}}]}),
    );
    fixture.create(ROLES, all).await;
    // A role that aggregates an aggregated role.
    let mut more = role("more", value!({}), value!([]));
    let selector = value!({"clusterRoleSelectors": [{"matchLabels": {"to": "more"}}]});
    more.make_object().insert("aggregationRule", selector);
    fixture.create(ROLES, more).await;

    fixture
        .create(
            ROLES,
            role(
                "system:b",
                value!({"to": "all"}),
                value!([(rule("pods")), (rule("secrets"))]),
            ),
        )
        .await;
    fixture
        .create(
            ROLES,
            role(
                "a",
                value!({"to": "all"}),
                value!([(rule("pods")), (rule("nodes"))]),
            ),
        )
        .await;
    fixture
        .create(
            ROLES,
            role("c", value!({"to": "both"}), value!([(rule("events"))])),
        )
        .await;
    fixture
        .create(
            ROLES,
            role("other", value!({}), value!([(rule("services"))])),
        )
        .await;
    let expected = vec![rule("pods"), rule("nodes"), rule("secrets"), rule("events")];
    for name in ["all", "more"] {
        let path = format!("{ROLES}/{name}");
        fixture
            .until_it(&path, |role| rules(role) == expected)
            .await;
    }
    let all = fixture
        .get(&format!("{ROLES}/all"))
        .await
        .expect("it is there");
    let managers = all
        .meta("managedFields")
        .and_then(Value::as_array)
        .unwrap_or(&[]);
    let applied = managers.iter().any(|manager| {
        manager.get("manager").and_then(Value::as_str) == Some("clusterrole-aggregation-controller")
            && manager.get("operation").and_then(Value::as_str) == Some("Apply")
    });
    assert!(applied, "{managers:?}");

    // The rules go with the roles.
    for name in ["a", "c", "system:b"] {
        fixture
            .delete(&format!("{ROLES}/{name}"), "Background")
            .await;
    }
    for name in ["all", "more"] {
        let path = format!("{ROLES}/{name}");
        fixture.until_it(&path, |role| rules(role).is_empty()).await;
    }
}
