//! What webhooks see and change.

use super::hook::{TestHook, allow, configure, deny, patch};
use crate::support::{APPLY, MAPS, MERGE, Requests, config_map, json};
use bareboat_testing::TestServer;

#[tokio::test]
async fn a_review_has_everything_about_the_request() {
    let server = TestServer::start().await;
    let hook = TestHook::start(|_, _| allow()).await;
    let webhook = hook.webhook("/see", "", &["configmaps"]);
    configure(&server, "Validating", "all", &[webhook]).await;
    let path = format!("{MAPS}?fieldManager=me&fieldValidation=Strict");
    server.post(&path, &config_map("a")).await.expect(201);
    let request = hook.requests().remove(0);
    let object = &request["object"];
    assert_eq!(object["metadata"]["name"], "a");
    assert!(
        object["metadata"]["uid"].is_string(),
        "validating hooks see what is stored"
    );
    assert_eq!(request["operation"], "CREATE");
    assert_eq!(request["name"], "a");
    assert_eq!(request["namespace"], "default");
    assert_eq!(request["oldObject"], json!(null));
    assert_eq!(request["dryRun"], false);
    let kind = json!({"group": "", "version": "v1", "kind": "ConfigMap"});
    let resource = json!({"group": "", "version": "v1", "resource": "configmaps"});
    assert_eq!((&request["kind"], &request["requestKind"]), (&kind, &kind));
    assert_eq!(request["resource"], resource);
    assert_eq!(request["requestResource"], resource);
    assert!(request.get("subResource").is_none());
    assert_eq!(
        request["options"],
        json!({"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions",
               "fieldManager": "me", "fieldValidation": "Strict"})
    );
    assert!(request["userInfo"]["username"].is_string());
    // A patch is an update.
    let path = format!("{MAPS}/a");
    let change = json!({"data": {"c": "d"}});
    server.patch(&path, MERGE, &change).await.expect(200);
    let request = hook.requests().remove(0);
    assert_eq!(request["operation"], "UPDATE");
    assert_eq!(request["options"]["kind"], "UpdateOptions");
    assert_eq!(request["oldObject"]["data"], json!({"a": "b"}));
    assert_eq!(request["object"]["data"], json!({"a": "b", "c": "d"}));
    let options =
        json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"});
    server.delete_with(&path, &options).await.expect(200);
    let request = hook.requests().remove(0);
    assert_eq!(request["operation"], "DELETE");
    assert_eq!(request["object"], json!(null));
    assert_eq!(request["oldObject"]["metadata"]["name"], "a");
    assert_eq!(
        request["options"],
        json!({"apiVersion": "meta.k8s.io/v1", "kind": "DeleteOptions", "propagationPolicy": "Background"})
    );
}

#[tokio::test]
async fn every_object_of_a_collection_is_reviewed_when_it_is_deleted() {
    let server = TestServer::start().await;
    let hook = TestHook::start(|_, request| match request["name"].as_str() {
        Some("b") => deny(&json!({"code": 403, "reason": "Forbidden", "message": "b stays"})),
        _ => allow(),
    })
    .await;
    for name in ["a", "b"] {
        server.post(MAPS, &config_map(name)).await.expect(201);
    }
    let webhook = hook.webhook("/see", "", &["configmaps"]);
    configure(&server, "Validating", "all", &[webhook]).await;
    let path = format!("{MAPS}?fieldSelector=metadata.name!=kube-root-ca.crt");
    let (code, reason, message) = server.delete(&path).await.status();
    assert_eq!((code, reason.as_str()), (403, "Forbidden"));
    assert_eq!(
        message,
        "admission webhook \"see.hooks.example.com\" denied the request: b stays"
    );
    let mut names: Vec<_> = hook
        .requests()
        .iter()
        .map(|it| it["name"].to_string())
        .collect();
    names.sort();
    assert_eq!(names, ["\"a\"", "\"b\""]);
}

#[tokio::test]
async fn patches_are_applied_in_order_and_the_object_fits_its_type_again() {
    let server = TestServer::start().await;
    let hook = TestHook::start(|path, request| match path {
        "/first" => patch(&json!([
            {"op": "add", "path": "/metadata/labels", "value": {"first": "yes"}},
            {"op": "add", "path": "/unknown", "value": 1},
            {"op": "add", "path": "/metadata/uid", "value": "mine"},
        ])),
        _ => {
            assert_eq!(request["object"]["metadata"]["labels"]["first"], "yes");
            assert!(request["object"].get("unknown").is_none());
            patch(&json!([{"op": "add", "path": "/data/second", "value": "2"}]))
        }
    })
    .await;
    let hooks = ["/first", "/second"].map(|path| hook.webhook(path, "", &["configmaps"]));
    configure(&server, "Mutating", "both", &hooks).await;
    let made = server.post(MAPS, &config_map("a")).await.expect(201).json();
    assert_eq!(made["metadata"]["labels"], json!({"first": "yes"}));
    assert_eq!(made["data"], json!({"a": "b", "second": "2"}));
    assert!(made.get("unknown").is_none());
    assert_ne!(made["metadata"]["uid"], "mine");
    let seen = &hook.requests()[0];
    assert!(seen["object"]["metadata"].get("uid").is_none());
    assert!(
        seen["object"]["metadata"]
            .get("creationTimestamp")
            .is_none()
    );
    // What the hooks added has no manager: the client did not send it.
    let owned = made["metadata"]["managedFields"][0]["fieldsV1"].to_string();
    assert!(
        owned.contains("f:a") && !owned.contains("f:second"),
        "{owned}"
    );
}

#[tokio::test]
async fn a_generated_name_is_known_to_validating_hooks_only() {
    let server = TestServer::start().await;
    let hook = TestHook::start(|_, _| allow()).await;
    for (kind, path) in [("Mutating", "/mutating"), ("Validating", "/validating")] {
        let webhook = hook.webhook(path, "", &["configmaps"]);
        configure(&server, kind, "all", &[webhook]).await;
    }
    let map = json!({"metadata": {"generateName": "some-"}});
    let made = server.post(MAPS, &map).await.expect(201).json();
    let requests = hook.requests();
    assert!(requests[0].get("name").is_none());
    assert!(requests[0]["object"]["metadata"].get("name").is_none());
    assert_eq!(requests[1]["name"], made["metadata"]["name"]);
}

#[tokio::test]
async fn hooks_are_called_again_if_a_later_one_changes_the_object() {
    let server = TestServer::start().await;
    let hook = TestHook::start(|path, request| {
        let data = &request["object"]["data"];
        match path {
            "/counts" => {
                let keys = data.as_object().map_or(0, |data| data.len());
                let keys = keys - usize::from(data.get("keys").is_some());
                patch(&json!([{"op": "add", "path": "/data/keys", "value": keys.to_string()}]))
            }
            "/never" => allow(),
            _ => patch(&json!([{"op": "add", "path": "/data/late", "value": "x"}])),
        }
    })
    .await;
    let mut hooks =
        ["/counts", "/never", "/adds"].map(|path| hook.webhook(path, "", &["configmaps"]));
    hooks[0]["reinvocationPolicy"] = json!("IfNeeded");
    hooks[2]["reinvocationPolicy"] = json!("IfNeeded");
    configure(&server, "Mutating", "all", &hooks).await;
    let made = server.post(MAPS, &config_map("a")).await.expect(201).json();
    assert_eq!(made["data"], json!({"a": "b", "late": "x", "keys": "2"}));
    let paths: Vec<String> = hook
        .calls()
        .iter()
        .map(|call| call.target.clone())
        .collect();
    let paths: Vec<&str> = paths
        .iter()
        .map(|path| path.split('?').next().unwrap())
        .collect();
    // The second hook may not be called again. The third is, because the first changed the object once more.
    assert_eq!(paths, ["/counts", "/never", "/adds", "/counts", "/adds"]);
}

#[tokio::test]
async fn applied_objects_and_their_missing_managers_are_reviewed_too() {
    let server = TestServer::start().await;
    let hook = TestHook::start(|_, _| {
        patch(&json!([{"op": "add", "path": "/data/hook", "value": "was here"}]))
    })
    .await;
    configure(
        &server,
        "Mutating",
        "all",
        &[hook.webhook("/add", "", &["configmaps"])],
    )
    .await;
    let path = format!("{MAPS}/a?fieldManager=me");
    let applied = server
        .patch(&path, APPLY, &config_map("a"))
        .await
        .expect(201)
        .json();
    assert_eq!(applied["data"]["hook"], "was here");
    let requests = hook.requests();
    assert_eq!(requests[0]["operation"], "CREATE");
    assert_eq!(requests[0]["options"]["kind"], "CreateOptions");
    // Applied again nothing changes, so that controllers that apply in a loop come to rest.
    let again = server
        .patch(&path, APPLY, &config_map("a"))
        .await
        .expect(200)
        .json();
    assert_eq!(
        again["metadata"]["resourceVersion"],
        applied["metadata"]["resourceVersion"]
    );
}

#[tokio::test]
async fn broken_managed_fields_are_restored_with_a_warning() {
    let server = TestServer::start().await;
    let hook = TestHook::start(|_, _| {
        let broken = json!([{"manager": "x", "operation": "Nothing"}]);
        patch(&json!([{"op": "add", "path": "/metadata/managedFields", "value": broken}]))
    })
    .await;
    configure(
        &server,
        "Mutating",
        "all",
        &[hook.webhook("/break", "", &["configmaps"])],
    )
    .await;
    let made = server.post(MAPS, &config_map("a")).await.expect(201);
    let warning = made.header("warning").to_owned();
    assert!(
        warning.contains("was in an invalid state after admission"),
        "{warning}"
    );
    assert_eq!(
        made.json()["metadata"]["managedFields"][0]["operation"],
        "Update"
    );
}

#[tokio::test]
async fn warnings_reach_the_client() {
    let server = TestServer::start().await;
    let hook = TestHook::start(|_, _| {
        super::hook::Reply::Review(json!({"allowed": true, "warnings": ["mind the gap", ""]}))
    })
    .await;
    for kind in ["Mutating", "Validating"] {
        configure(
            &server,
            kind,
            "all",
            &[hook.webhook("/warn", "", &["configmaps"])],
        )
        .await;
    }
    let made = server.post(MAPS, &config_map("a")).await.expect(201);
    assert_eq!(made.headers("warning"), ["299 - \"mind the gap\""]);
}
