//! Ways to get more rights than one has: each write path, and rules that arrive after the request was sent.

use crate::rbac::{AsUser, user};
use crate::support::*;
use bareboat::api::Status;
use bareboat::api::admission::{Lookup, Mutator, Review};
use bareboat::api::kind::BoxFuture;
use bareboat_testing::TestServer;

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// Adds a rule to every role with a certain name, as a mutating webhook may.
struct Widen;

impl Mutator for Widen {
    fn name(&self) -> &'static str {
        "Widen"
    }

    fn admit<'a>(
        &'a self,
        review: &'a mut Review<'_>,
        _: &'a dyn Lookup,
    ) -> BoxFuture<'a, Result<(), Status>> {
        if let Some(object) = review.object.as_deref_mut()
            && object.name() == "widened"
        {
            let rules = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"]}]);
            let rules = bareboat_wire::json::parse(rules.to_string().as_bytes()).unwrap();
            object.map_mut().insert("rules", rules.value);
        }
        Box::pin(std::future::ready(Ok(())))
    }
}

/// A server where Bea may write all roles and bindings, and read config maps.
async fn server() -> TestServer {
    let server = TestServer::builder()
        .with(|builder| builder.mutator(Widen))
        .start()
        .await;
    let verbs = ["create", "get", "update", "patch", "delete", "list"];
    let role = json!({
        "metadata": {"name": "bea"},
        "rules": [
            {"verbs": verbs, "apiGroups": ["rbac.authorization.k8s.io"],
             "resources": ["clusterroles", "clusterrolebindings", "roles", "rolebindings"]},
            {"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"]},
        ],
    });
    server
        .post(&format!("{RBAC}/clusterroles"), &role)
        .await
        .expect(201);
    let bindings = format!("{RBAC}/clusterrolebindings");
    server
        .post(&bindings, &binding("bea", "ClusterRole", "bea", "bea"))
        .await
        .expect(201);
    server
}

fn rules(resource: &str) -> Value {
    json!([{"verbs": ["get"], "apiGroups": [""], "resources": [resource]}])
}

fn role(kind: &str, name: &str, rules: Value) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind,
        "metadata": {"name": name}, "rules": rules,
    })
}

fn binding(name: &str, kind: &str, role: &str, user: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    })
}

const NOT_HELD: &str = "attempting to grant RBAC permissions not currently held";

#[tokio::test]
async fn every_way_to_write_a_role_is_checked() {
    let server = server().await;
    let bea = AsUser(&server, user("bea", &[]));
    for (place, kind) in [
        (format!("{RBAC}/clusterroles"), "ClusterRole"),
        (format!("{RBAC}/namespaces/default/roles"), "Role"),
    ] {
        let mine = role(kind, "mine", rules("configmaps"));
        bea.send("POST", &place, "application/json", &mine)
            .await
            .expect(201);
        let wide = role(kind, "mine", rules("secrets"));
        let new = role(kind, "new", rules("secrets"));
        let add = json!([{"op": "replace", "path": "/rules/0/resources/0", "value": "secrets"}]);
        let one = format!("{place}/mine");
        for (method, path, media, body) in [
            ("POST", place.clone(), "application/json", &new),
            (
                "POST",
                format!("{place}?dryRun=All"),
                "application/json",
                &new,
            ),
            ("PUT", one.clone(), "application/json", &wide),
            ("PATCH", one.clone(), MERGE, &wide),
            ("PATCH", one.clone(), STRATEGIC, &wide),
            ("PATCH", one.clone(), JSON_PATCH, &add),
            (
                "PATCH",
                format!("{one}?fieldManager=bea&force=true"),
                APPLY,
                &wide,
            ),
            // An apply that creates.
            (
                "PATCH",
                format!("{place}/new?fieldManager=bea"),
                APPLY,
                &new,
            ),
        ] {
            let answer = bea.send(method, &path, media, body).await;
            assert_eq!(
                answer.code,
                403,
                "{method} {path} {media}: {}",
                answer.text()
            );
            assert!(answer.text().contains(NOT_HELD), "{}", answer.text());
        }
        // What is held may be granted in the same ways.
        let held = role(kind, "new", rules("configmaps"));
        let path = format!("{place}/new?fieldManager=bea");
        bea.send("PATCH", &path, APPLY, &held).await.expect(201);
    }
}

#[tokio::test]
async fn rules_that_admission_adds_are_checked() {
    let server = server().await;
    let bea = AsUser(&server, user("bea", &[]));
    let roles = format!("{RBAC}/clusterroles");
    let harmless = role("ClusterRole", "widened", rules("configmaps"));
    for (method, path, media) in [
        ("POST", roles.clone(), "application/json"),
        ("PATCH", format!("{roles}/widened?fieldManager=bea"), APPLY),
    ] {
        let answer = bea.send(method, &path, media, &harmless).await.expect(403);
        assert!(answer.text().contains(NOT_HELD), "{}", answer.text());
    }
    server.post(&roles, &harmless).await.expect(201);
    let clean = json!({"metadata": {"labels": {"a": "b"}}});
    let one = format!("{roles}/widened");
    // The mutator writes the same rules as are stored, which Bea does not hold.
    bea.send("PATCH", &one, MERGE, &clean).await.expect(403);
}

#[tokio::test]
async fn a_role_that_is_bound_already_cannot_be_widened_or_made_anew() {
    let server = server().await;
    let bea = AsUser(&server, user("bea", &[]));
    let roles = format!("{RBAC}/clusterroles");
    // Her own role.
    let own = format!("{roles}/bea");
    let add = json!([{"op": "add", "path": "/rules/-", "value": rules("secrets")[0]}]);
    bea.send("PATCH", &own, JSON_PATCH, &add).await.expect(403);
    // A role that she holds is deleted and made again with more rules.
    server
        .post(&roles, &role("ClusterRole", "held", rules("configmaps")))
        .await
        .expect(201);
    let bindings = format!("{RBAC}/clusterrolebindings");
    server
        .post(&bindings, &binding("held", "ClusterRole", "held", "bea"))
        .await
        .expect(201);
    bea.send(
        "DELETE",
        &format!("{roles}/held"),
        "application/json",
        &Value::Null,
    )
    .await
    .expect(200);
    let wide = role("ClusterRole", "held", rules("secrets"));
    bea.send("POST", &roles, "application/json", &wide)
        .await
        .expect(403);
    // A binding to a role that does not exist yet, so that somebody else may fill it.
    let early = binding("early", "ClusterRole", "later", "bea");
    let answer = bea
        .send("POST", &bindings, "application/json", &early)
        .await
        .expect(404);
    assert_eq!(
        answer.status().2,
        "clusterroles.rbac.authorization.k8s.io \"later\" not found"
    );
    let local = format!("{RBAC}/namespaces/default/rolebindings");
    let early = binding("early", "Role", "later", "bea");
    bea.send("POST", &local, "application/json", &early)
        .await
        .expect(404);
    // A binding cannot be turned to another role.
    let mine = binding("mine", "ClusterRole", "bea", "bea");
    bea.send("POST", &bindings, "application/json", &mine)
        .await
        .expect(201);
    let turned = binding("mine", "ClusterRole", "cluster-admin", "bea");
    let turn = bea
        .send(
            "PUT",
            &format!("{bindings}/mine"),
            "application/json",
            &turned,
        )
        .await;
    assert!(matches!(turn.code, 403 | 404 | 422), "{}", turn.text());
    bea.send(
        "GET",
        "/api/v1/namespaces/default/secrets",
        "application/json",
        &Value::Null,
    )
    .await
    .expect(403);
}

#[tokio::test]
async fn a_label_adds_to_an_aggregated_role_what_its_author_holds() {
    let server = server().await;
    let bea = AsUser(&server, user("bea", &[]));
    let roles = format!("{RBAC}/clusterroles");
    let mut part = role("ClusterRole", "part", rules("secrets"));
    part["metadata"]["labels"] = json!({"rbac.authorization.k8s.io/aggregate-to-view": "true"});
    bea.send("POST", &roles, "application/json", &part)
        .await
        .expect(403);
    part["rules"] = rules("configmaps");
    bea.send("POST", &roles, "application/json", &part)
        .await
        .expect(201);
    let rule = json!({"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]});
    let mut whole = role("ClusterRole", "whole", json!([]));
    whole["aggregationRule"] = rule;
    let refused = bea
        .send("POST", &roles, "application/json", &whole)
        .await
        .expect(403);
    let why = "must have cluster-admin privileges to use the aggregationRule";
    assert!(refused.status().2.ends_with(why), "{}", refused.text());
    // An old object with the rule needs the same right, also to remove it.
    server.post(&roles, &whole).await.expect(201);
    let remove = json!({"aggregationRule": null});
    let refused = bea
        .send("PATCH", &format!("{roles}/whole"), MERGE, &remove)
        .await;
    assert!(refused.expect(403).status().2.ends_with(why));
}

#[tokio::test]
async fn the_verbs_escalate_and_bind_lift_the_check() {
    let server = server().await;
    let bea = AsUser(&server, user("bea", &[]));
    let roles = format!("{RBAC}/clusterroles");
    let more = role(
        "ClusterRole",
        "lift",
        json!([
            {"verbs": ["escalate"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"],
             "resourceNames": ["mine"]},
            {"verbs": ["bind"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"],
             "resourceNames": ["later"]},
        ]),
    );
    server.post(&roles, &more).await.expect(201);
    let bindings = format!("{RBAC}/clusterrolebindings");
    server
        .post(&bindings, &binding("lift", "ClusterRole", "lift", "bea"))
        .await
        .expect(201);
    // The name of the request is empty in a create, so a rule with names does not cover it.
    let wide = role("ClusterRole", "mine", rules("secrets"));
    bea.send("POST", &roles, "application/json", &wide)
        .await
        .expect(403);
    server
        .post(&roles, &role("ClusterRole", "mine", rules("configmaps")))
        .await
        .expect(201);
    bea.send("PUT", &format!("{roles}/mine"), "application/json", &wide)
        .await
        .expect(200);
    let early = binding("early", "ClusterRole", "later", "bea");
    bea.send("POST", &bindings, "application/json", &early)
        .await
        .expect(201);
    let other = binding("other", "ClusterRole", "mine", "bea");
    bea.send("POST", &bindings, "application/json", &other)
        .await
        .expect(403);
}
