//! Roles made of other roles.

use crate::world::World;
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
async fn a_role_has_the_rules_of_those_it_selects() {
    let world = World::new().await;
    let mut all = role("all", value!({"to": "more"}), value!([]));
    all.make_object().insert(
        "aggregationRule",
        value!({"clusterRoleSelectors": [{"matchLabels": {"to": "all"}}, {"matchLabels": {"to": "both"}}]}),
    );
    world.create(ROLES, all).await;
    // One that is made of one that is made of others.
    let mut more = role("more", value!({}), value!([]));
    let selector = value!({"clusterRoleSelectors": [{"matchLabels": {"to": "more"}}]});
    more.make_object().insert("aggregationRule", selector);
    world.create(ROLES, more).await;

    world
        .create(
            ROLES,
            role(
                "system:b",
                value!({"to": "all"}),
                value!([(rule("pods")), (rule("secrets"))]),
            ),
        )
        .await;
    world
        .create(
            ROLES,
            role(
                "a",
                value!({"to": "all"}),
                value!([(rule("pods")), (rule("nodes"))]),
            ),
        )
        .await;
    world
        .create(
            ROLES,
            role("c", value!({"to": "both"}), value!([(rule("events"))])),
        )
        .await;
    world
        .create(
            ROLES,
            role("other", value!({}), value!([(rule("services"))])),
        )
        .await;
    let expected = vec![rule("pods"), rule("nodes"), rule("secrets"), rule("events")];
    for name in ["all", "more"] {
        let path = format!("{ROLES}/{name}");
        world.until_it(&path, |role| rules(role) == expected).await;
    }
    let all = world
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

    // What is taken back goes, to the last.
    for name in ["a", "c", "system:b"] {
        world.delete(&format!("{ROLES}/{name}"), "Background").await;
    }
    for name in ["all", "more"] {
        let path = format!("{ROLES}/{name}");
        world.until_it(&path, |role| rules(role).is_empty()).await;
    }
}
