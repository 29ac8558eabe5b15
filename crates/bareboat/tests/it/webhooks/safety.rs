//! Webhooks cannot be used to pass other checks.

use super::hook::{TestHook, allow, configure, deny, patch};
use crate::rbac::{AsUser, user};
use crate::support::{
    APPLY, JSON_PATCH, MAPS, MERGE, Requests, STRATEGIC, config_map, json, read, request,
};
use bareboat::api::Str;
use bareboat::api::kind::User;
use bareboat_testing::TestServer;

const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";

/// A hook that adds rules to a role does so for the user, who must have these rights.
#[tokio::test]
async fn rules_that_a_hook_adds_are_checked_against_escalation() {
    let server = TestServer::builder().default_roles().start().await;
    let role = json!({"metadata": {"name": "writers"}, "rules": [
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"], "verbs": ["create", "get"]},
    ]});
    server.post(ROLES, &role).await.expect(201);
    let binding = json!({"metadata": {"name": "writers"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "writers"},
        "subjects": [{"kind": "User", "name": "ann", "apiGroup": "rbac.authorization.k8s.io"}]});
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    server.post(bindings, &binding).await.expect(201);
    let hook = TestHook::start(|_, request| match request["name"].as_str() {
        Some("evil") => patch(&json!([{"op": "add", "path": "/rules/-", "value":
            {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}}])),
        _ => allow(),
    })
    .await;
    let webhook = hook.webhook("/add", "rbac.authorization.k8s.io", &["clusterroles"]);
    configure(&server, "Mutating", "all", &[webhook]).await;
    let ann = || User {
        name: Str::new("ann"),
        groups: vec![Str::new("system:authenticated")],
        ..User::default()
    };
    let mut role = role;
    for (name, code) in [("good", 201), ("evil", 403)] {
        role["metadata"]["name"] = json!(name);
        let answer = read(
            server
                .call_as(ann(), request("POST", ROLES, &[], role.to_string()))
                .await,
        )
        .await;
        assert_eq!(answer.code, code, "{}", answer.text());
    }
    server.get(&format!("{ROLES}/evil")).await.expect(404);
}

/// The same on every other write path, and for bindings.
#[tokio::test]
async fn rights_that_a_hook_adds_are_checked_on_every_write_path() {
    let server = TestServer::start().await;
    let rbac = "rbac.authorization.k8s.io";
    let binding = |name: &str, role: &str| {
        json!({"metadata": {"name": name},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "User", "name": "ann", "apiGroup": rbac}]})
    };
    let verbs = ["create", "get", "update", "patch"];
    let own = json!({"metadata": {"name": "ann"}, "rules": [
        {"apiGroups": [rbac], "resources": ["clusterroles", "clusterrolebindings"], "verbs": verbs},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]},
    ]});
    server.post(ROLES, &own).await.expect(201);
    server
        .post(BINDINGS, &binding("ann", "ann"))
        .await
        .expect(201);
    let hook = TestHook::start(|_, request| {
        let resource = request["resource"]["resource"].as_str().unwrap();
        match (request["userInfo"]["username"].as_str(), resource) {
            (Some("ann"), "clusterroles") => {
                patch(&json!([{"op": "add", "path": "/rules/-", "value":
                {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}}]))
            }
            (Some("ann"), _) => patch(&json!([
                {"op": "replace", "path": "/roleRef/name", "value": "secrets"},
            ])),
            _ => allow(),
        }
    })
    .await;
    let webhook = hook.webhook("/add", rbac, &["clusterroles", "clusterrolebindings"]);
    configure(&server, "Mutating", "all", &[webhook]).await;
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]);
    let role = |name: &str| {
        json!({"apiVersion": format!("{rbac}/v1"), "kind": "ClusterRole",
            "metadata": {"name": name, "labels": {"a": "b"}}, "rules": rules})
    };
    server.post(ROLES, &role("old")).await.expect(201);
    let mut secrets = role("secrets");
    secrets["rules"][0]["resources"] = json!(["secrets"]);
    server.post(ROLES, &secrets).await.expect(201);
    let ann = AsUser(&server, user("ann", &[]));
    let (old, new) = (format!("{ROLES}/old"), format!("{ROLES}/new"));
    let label = json!({"metadata": {"labels": {"a": "c"}}});
    let operation = json!([{"op": "add", "path": "/metadata/labels/c", "value": "d"}]);
    let applied = |path: &str| format!("{path}?fieldManager=ann&force=true");
    let mut changed = role("old");
    changed["metadata"]["labels"] = json!({"a": "c"});
    for (method, path, media, body) in [
        ("POST", ROLES.to_owned(), "application/json", role("new")),
        ("PUT", old.clone(), "application/json", changed.clone()),
        ("PATCH", old.clone(), MERGE, label.clone()),
        ("PATCH", old.clone(), STRATEGIC, label),
        ("PATCH", old.clone(), JSON_PATCH, operation),
        ("PATCH", applied(&old), APPLY, changed),
        ("PATCH", applied(&new), APPLY, role("new")),
        (
            "POST",
            BINDINGS.to_owned(),
            "application/json",
            binding("new", "ann"),
        ),
    ] {
        let answer = ann.send(method, &path, media, &body).await;
        let said = answer.text();
        assert_eq!(answer.code, 403, "{method} {path} {media}: {said}");
        let why = "attempting to grant RBAC permissions not currently held";
        assert!(said.contains(why), "{method} {path} {media}: {said}");
    }
    assert_eq!(
        hook.calls()
            .iter()
            .filter(|call| { call.review["request"]["userInfo"]["username"] == "ann" })
            .count(),
        8,
        "the hook changed every request"
    );
    assert_eq!(server.get(&old).await.expect(200).json()["rules"], rules);
    server.get(&new).await.expect(404);
    server.get(&format!("{BINDINGS}/new")).await.expect(404);
}

/// CVE-2021-25735: the old object is the stored one, whatever the client sends.
#[tokio::test]
async fn the_old_object_is_the_stored_one() {
    let server = TestServer::start().await;
    let mut map = config_map("a");
    map["metadata"]["labels"] = json!({"locked": "yes"});
    server.post(MAPS, &map).await.expect(201);
    let hook = TestHook::start(|_, request| {
        match request["oldObject"]["metadata"]["labels"]["locked"].as_str() {
            Some("yes") => deny(&json!({"code": 403, "message": "locked"})),
            _ => allow(),
        }
    })
    .await;
    configure(
        &server,
        "Validating",
        "all",
        &[hook.webhook("/lock", "", &["configmaps"])],
    )
    .await;
    let path = format!("{MAPS}/a");
    let unlocked = config_map("a");
    server.put(&path, &unlocked).await.expect(403);
    let change = json!({"metadata": {"labels": {"locked": null}}});
    server.patch(&path, MERGE, &change).await.expect(403);
    let change = json!([{"op": "remove", "path": "/metadata/labels"}]);
    server
        .patch(&path, crate::support::JSON_PATCH, &change)
        .await
        .expect(403);
    let apply = format!("{path}?fieldManager=me&force=true");
    server.patch(&apply, APPLY, &unlocked).await.expect(403);
    server.delete(&path).await.expect(403);
    let stored = server.get(&path).await.expect(200).json();
    assert_eq!(stored["metadata"]["labels"]["locked"], "yes");
}

/// A hook cannot move an object, nor give it another identity.
#[tokio::test]
async fn a_hook_cannot_change_the_identity_of_an_object() {
    let server = TestServer::start().await;
    server.post(MAPS, &config_map("a")).await.expect(201);
    let before = server.get(&format!("{MAPS}/a")).await.expect(200).json();
    let hook = TestHook::start(|path, _| match path {
        "/namespace" => {
            patch(&json!([{"op": "add", "path": "/metadata/namespace", "value": "kube-system"}]))
        }
        "/name" => patch(&json!([{"op": "add", "path": "/metadata/name", "value": "other"}])),
        _ => patch(&json!([
            {"op": "add", "path": "/metadata/uid", "value": "x"},
            {"op": "add", "path": "/metadata/resourceVersion", "value": "1"},
            {"op": "add", "path": "/metadata/creationTimestamp", "value": "2001-01-01T00:00:00Z"},
        ])),
    })
    .await;
    let change = json!({"data": {"x": "y"}});
    let configuration = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/one";
    for (path, code) in [("/namespace", 400), ("/name", 422), ("/uid", 200)] {
        configure(
            &server,
            "Mutating",
            "one",
            &[hook.webhook(path, "", &["configmaps"])],
        )
        .await;
        let answer = server.patch(&format!("{MAPS}/a"), MERGE, &change).await;
        assert_eq!(answer.code, code, "{path}: {}", answer.text());
        server.delete(configuration).await.expect(200);
    }
    let after = server.get(&format!("{MAPS}/a")).await.expect(200).json();
    for key in ["uid", "creationTimestamp"] {
        assert_eq!(after["metadata"][key], before["metadata"][key]);
    }
    assert_eq!(after["data"]["x"], "y");
}
