//! The admission plug-in OwnerReferencesPermissionEnforcement.

use crate::rbac::{AsUser, user};
use crate::support::{Requests as _, Value, json};
use bareboat::prelude::{ControlPlane as _, Settings};
use bareboat_testing::TestServer;

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
const CONFIGS: &str = "/api/v1/namespaces/default/configmaps";
const MERGE: &str = "application/merge-patch+json";

/// Grants a user permissions on ConfigMaps.
async fn grant(server: &TestServer, name: &str, rules: Value) {
    let role = json!({"metadata": {"name": name}, "rules": rules});
    server
        .post(&format!("{RBAC}/roles"), &role)
        .await
        .expect(201);
    let binding = json!({"metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}]});
    server
        .post(&format!("{RBAC}/rolebindings"), &binding)
        .await
        .expect(201);
}

fn rule(verbs: &[&str], resource: &str) -> Value {
    json!({"verbs": verbs, "apiGroups": [""], "resources": [resource]})
}

fn owner(name: &str, uid: &str, blocks: bool) -> Value {
    json!({"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": name,
        "uid": uid, "blockOwnerDeletion": blocks}]}})
}

const NOWHERE: &str = "00000000-0000-4000-8000-000000000000";

#[tokio::test]
async fn setting_owners_needs_the_permission_to_delete() {
    let server = TestServer::builder().without_controllers().start().await;
    grant(
        &server,
        "ann",
        json!([rule(&["get", "patch", "update", "create"], "configmaps")]),
    )
    .await;
    let config = json!({"metadata": {"name": "c"}});
    server.post(CONFIGS, &config).await.expect(201);
    let ann = AsUser(&server, user("ann", &[]));
    let path = format!("{CONFIGS}/c");
    let patch = owner("gone", NOWHERE, false);
    let refused = ann.send("PATCH", &path, MERGE, &patch).await.expect(403);
    assert_eq!(
        refused.status().2,
        "configmaps \"c\" is forbidden: cannot set an ownerRef on a resource you can't delete: , <nil>"
    );
    // Other changes, and new objects with owners, are allowed.
    let data = json!({"data": {"a": "b"}});
    ann.send("PATCH", &path, MERGE, &data).await.expect(200);
    let mut owned = owner("c", NOWHERE, false);
    owned["metadata"]["name"] = json!("new");
    owned["metadata"]["finalizers"] = json!(["example.com/keep"]);
    ann.send("POST", CONFIGS, "application/json", &owned)
        .await
        .expect(201);
    // An unchanged owner needs no permission.
    let data = json!({"metadata": {"labels": {"a": "b"}}});
    let path = format!("{CONFIGS}/new");
    ann.send("PATCH", &path, MERGE, &data).await.expect(200);
    // Removing an owner does.
    let orphan = json!({"metadata": {"ownerReferences": null}});
    ann.send("PATCH", &path, MERGE, &orphan).await.expect(403);
}

#[tokio::test]
async fn blocking_the_deletion_of_an_owner_needs_its_finalizers_permission() {
    let server = TestServer::builder().without_controllers().start().await;
    let all = rule(&["get", "patch", "create", "delete"], "configmaps");
    grant(&server, "ann", json!([all])).await;
    let finalizers = rule(&["update"], "configmaps/finalizers");
    grant(&server, "bob", json!([all, finalizers])).await;
    let config = |name: &str| json!({"metadata": {"name": name}});
    let first = server
        .post(CONFIGS, &config("owner"))
        .await
        .expect(201)
        .json();
    server.post(CONFIGS, &config("c")).await.expect(201);
    let uid = first["metadata"]["uid"].as_str().unwrap();
    let path = format!("{CONFIGS}/c");
    let blocking = owner("owner", uid, true);
    let ann = AsUser(&server, user("ann", &[]));
    let refused = ann.send("PATCH", &path, MERGE, &blocking).await.expect(403);
    assert_eq!(
        refused.status().2,
        "configmaps \"c\" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't \
         set finalizers on: , <nil>"
    );
    let plain = owner("owner", uid, false);
    ann.send("PATCH", &path, MERGE, &plain).await.expect(200);
    let bob = AsUser(&server, user("bob", &[]));
    bob.send("PATCH", &path, MERGE, &blocking).await.expect(200);
    // Existing blocking references may stay.
    let more = json!({"metadata": {"labels": {"a": "b"}}});
    ann.send("PATCH", &path, MERGE, &more).await.expect(200);
    let unknown = json!({"metadata": {"ownerReferences": [{"apiVersion": "example.com/v1", "kind": "Ship",
        "name": "s", "uid": NOWHERE, "blockOwnerDeletion": true}]}});
    let refused = bob.send("PATCH", &path, MERGE, &unknown).await.expect(403);
    let message = refused.status().2;
    assert!(
        message.contains("cannot find RESTMapping for APIVersion example.com/v1 Kind Ship"),
        "{message}"
    );
}

#[tokio::test]
async fn the_plug_in_can_be_disabled() {
    let settings = Settings::default()
        .without_admission(["OwnerReferencesPermissionEnforcement", "ServiceAccount"]);
    let settings = settings.unwrap();
    let server = TestServer::builder()
        .bare()
        .with(move |server| server.control_plane_with(&settings));
    let server = server.start().await;
    let namespace = json!({"metadata": {"name": "default"}});
    server
        .post("/api/v1/namespaces", &namespace)
        .await
        .expect(201);
    grant(&server, "ann", json!([rule(&["patch"], "configmaps")])).await;
    server
        .post(CONFIGS, &json!({"metadata": {"name": "c"}}))
        .await
        .expect(201);
    let ann = AsUser(&server, user("ann", &[]));
    let patch = owner("gone", NOWHERE, false);
    let path = format!("{CONFIGS}/c");
    ann.send("PATCH", &path, MERGE, &patch).await.expect(200);
    let unknown = Settings::default().without_admission(["Nothing"]);
    assert!(unknown.is_err());
}

/// Waits until an object does not exist.
async fn until_gone(server: &TestServer, path: &str) {
    let gone = async {
        while server.get(path).await.code != 404 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    crate::support::soon(gone).await;
}

#[tokio::test]
async fn nobody_deletes_through_the_garbage_collector_what_they_may_not_delete() {
    let server = TestServer::start().await;
    let verbs = ["get", "patch", "update", "create"];
    grant(&server, "ann", json!([rule(&verbs, "configmaps")])).await;
    let ann = AsUser(&server, user("ann", &[]));
    let config = json!({"metadata": {"name": "kept"}});
    let kept = server.post(CONFIGS, &config).await.expect(201).json();
    let path = format!("{CONFIGS}/kept");
    let missing = owner("gone", NOWHERE, false);
    let json_patch = json!([
        {"op": "add", "path": "/metadata/ownerReferences", "value": missing["metadata"]["ownerReferences"]},
    ]);
    let mut whole = missing.clone();
    whole["apiVersion"] = json!("v1");
    whole["kind"] = json!("ConfigMap");
    whole["metadata"]["name"] = json!("kept");
    for (method, form, path, body) in [
        ("PATCH", MERGE, path.clone(), &missing),
        (
            "PATCH",
            "application/strategic-merge-patch+json",
            path.clone(),
            &missing,
        ),
        (
            "PATCH",
            "application/json-patch+json",
            path.clone(),
            &json_patch,
        ),
        ("PUT", "application/json", path.clone(), &whole),
        (
            "PATCH",
            "application/apply-patch+yaml",
            format!("{path}?fieldManager=ann&force=true"),
            &whole,
        ),
    ] {
        let answer = ann.send(method, &path, form, body).await;
        answer.expect(403);
    }
    // The collector works: an object of somebody who may delete goes the same way.
    let mut other = owner("gone", NOWHERE, false);
    other["metadata"]["name"] = json!("collected");
    server.post(CONFIGS, &other).await.expect(201);
    until_gone(&server, &format!("{CONFIGS}/collected")).await;
    let found = server.get(&path).await.expect(200).json();
    assert_eq!(found["metadata"]["uid"], kept["metadata"]["uid"]);
    assert_eq!(found["metadata"]["deletionTimestamp"], Value::Null);
}

#[tokio::test]
async fn nobody_blocks_through_controllers_what_they_may_not_change() {
    let server = TestServer::start().await;
    // She may do everything with ConfigMaps, but has no right to finalizers of owners, nor to services or namespaces.
    grant(&server, "ann", json!([rule(&["*"], "configmaps")])).await;
    let ann = AsUser(&server, user("ann", &[]));
    let services = "/api/v1/namespaces/default/services";
    let service = json!({"metadata": {"name": "owner"}, "spec": {"clusterIP": "None"}});
    let service = server.post(services, &service).await.expect(201).json();
    let reference = |blocks: bool| {
        json!([{"apiVersion": "v1", "kind": "Service", "name": "owner",
            "uid": service["metadata"]["uid"], "blockOwnerDeletion": blocks}])
    };
    let dependent = |blocks: bool| {
        json!({"metadata": {"name": "dependent", "finalizers": ["example.com/never"],
            "ownerReferences": reference(blocks)}})
    };
    ann.send("POST", CONFIGS, "application/json", &dependent(true))
        .await
        .expect(403);
    ann.send("POST", CONFIGS, "application/json", &dependent(false))
        .await
        .expect(201);
    for path in [
        format!("{services}/owner"),
        "/api/v1/namespaces/default".to_owned(),
        "/api/v1/namespaces/default/finalize".to_owned(),
    ] {
        let finalizers = json!({"metadata": {"finalizers": ["example.com/never"]}});
        ann.send("PATCH", &path, MERGE, &finalizers)
            .await
            .expect(403);
    }
    // The dependent stays because of its finalizer; the owner does not wait for it.
    let foreground = json!({"propagationPolicy": "Foreground"});
    let owner = format!("{services}/owner");
    server
        .send(
            "DELETE",
            &owner,
            &[("content-type", "application/json")],
            foreground.to_string(),
        )
        .await
        .expect(200);
    until_gone(&server, &owner).await;
    let left = server
        .get(&format!("{CONFIGS}/dependent"))
        .await
        .expect(200);
    assert_eq!(
        left.json()["metadata"]["finalizers"],
        json!(["example.com/never"])
    );
}
