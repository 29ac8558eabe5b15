//! Objects that no converter can convert: their stored version is no longer served or no longer exists, and conversion
//! fails. Garbage collection and deletion of their namespace or definition must still work.

use crate::support::*;
use bareboat_testing::TestServer;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const DEFINITION: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/relics.example.com";
const ANNOTATION: &str = "bareboat.dev/conversion";
const STORE: &str = "example.com/relics";

fn relics(version: &str, namespace: &str) -> String {
    format!("/apis/example.com/{version}/namespaces/{namespace}/relics")
}

/// Returns a definition. v1 is stored and served at first; v2 is the other version.
fn definition() -> Value {
    let version = |name: &str| {
        json!({
            "name": name, "served": true, "storage": name == "v1",
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": {"text": {"type": "string"}}},
            }}},
        })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "relics.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "relics", "kind": "Relic"},
            "versions": [version("v1"), version("v2")],
        },
    })
}

/// How the objects become unreadable.
#[derive(Clone, Copy, Debug)]
enum Loss {
    /// v1 is stored but not served, and its conversion fails.
    Unserved,
    /// Like `Unserved`, and v2 is the storage version.
    Outdated,
    /// The definition no longer has v1.
    Forgotten,
}

const LOSSES: [Loss; 3] = [Loss::Unserved, Loss::Outdated, Loss::Forgotten];

/// Breaks the conversion and removes the version.
async fn lose(server: &TestServer, loss: Loss) {
    let broken = "[{from: v1, to: v2, set: {spec.text: \"['a'][1]\"}}, {from: v2, to: v1, set: {spec.text: \"['a'][1]\"}}]";
    let stored_in_v2 = !matches!(loss, Loss::Unserved);
    let patch = json!([
        {"op": "add", "path": "/metadata/annotations", "value": {ANNOTATION: broken}},
        {"op": "replace", "path": "/spec/versions/0/served", "value": false},
        {"op": "replace", "path": "/spec/versions/0/storage", "value": !stored_in_v2},
        {"op": "replace", "path": "/spec/versions/1/storage", "value": stored_in_v2},
    ]);
    server
        .patch(DEFINITION, JSON_PATCH, &patch)
        .await
        .expect(200);
    if matches!(loss, Loss::Forgotten) {
        let trimmed = json!({"status": {"storedVersions": ["v2"]}});
        let status = format!("{DEFINITION}/status");
        server.patch(&status, MERGE, &trimmed).await.expect(200);
        let patch = json!([
            {"op": "replace", "path": format!("/metadata/annotations/{}", ANNOTATION.replace('/', "~1")), "value": "[]"},
            {"op": "remove", "path": "/spec/versions/0"},
        ]);
        server
            .patch(DEFINITION, JSON_PATCH, &patch)
            .await
            .expect(200);
    }
    let answer = server.get(&relics("v2", "default")).await;
    assert_eq!(answer.code, 500, "{loss:?}: {}", answer.text());
    assert_eq!(server.get(&relics("v1", "default")).await.code, 404);
}

async fn start() -> TestServer {
    let server = TestServer::start().await;
    server.post(DEFINITIONS, &definition()).await.expect(201);
    server
}

/// Creates a relic in a namespace.
async fn relic(server: &TestServer, namespace: &str, name: &str, metadata: Value) -> Value {
    let mut object = json!({
        "apiVersion": "example.com/v1", "kind": "Relic", "metadata": metadata, "spec": {"text": "x"},
    });
    object["metadata"]["name"] = json!(name);
    let made = server.post(&relics("v1", namespace), &object).await;
    made.expect(201).json()
}

/// Returns the stored object.
fn stored(server: &TestServer, namespace: &str, name: &str) -> Option<Value> {
    let resource = server.server().store().resource(STORE);
    let entry = resource.get(&format!("{namespace}/{name}"))?;
    Some(serde_json::from_slice(entry.json()).unwrap())
}

async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let begun = std::time::Instant::now();
    while !holds().await {
        assert!(begun.elapsed().as_secs() < 300, "timeout: {what}");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

fn owned_by(owner: &Value, blocks: bool) -> Value {
    json!({"ownerReferences": [{
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"], "blockOwnerDeletion": blocks,
    }]})
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_is_collected_in_any_stored_version() {
    for loss in LOSSES {
        let server = start().await;
        let owner = async |name: &str| {
            server
                .post(MAPS, &config_map(name))
                .await
                .expect(201)
                .json()
        };
        let (background, foreground, orphaning) =
            (owner("b").await, owner("f").await, owner("o").await);
        relic(&server, "default", "b", owned_by(&background, false)).await;
        relic(&server, "default", "f", owned_by(&foreground, true)).await;
        let kept = relic(&server, "default", "o", owned_by(&orphaning, true)).await;
        // Owners may be unreadable as well: this one already waits for its own dependents.
        let old = relic(&server, "default", "old", json!({})).await;
        let mut young = config_map("young");
        young["metadata"]["ownerReferences"] = owned_by(&old, true)["ownerReferences"].clone();
        young["metadata"]["finalizers"] = json!(["example.com/hold"]);
        server.post(MAPS, &young).await.expect(201);
        let path = format!("{}/old", relics("v1", "default"));
        let options = json!({"propagationPolicy": "Foreground"});
        server.delete_with(&path, &options).await.expect(200);
        lose(&server, loss).await;
        // The collector must see that the owner exists and is terminating, in any version.
        let mut late = config_map("late");
        late["metadata"]["ownerReferences"] = young["metadata"]["ownerReferences"].clone();
        server.post(MAPS, &late).await.expect(201);
        until(
            &format!("{loss:?}: the late dependent is collected"),
            async || server.get(&format!("{MAPS}/late")).await.code == 404,
        )
        .await;

        for (name, policy) in [("b", "Background"), ("f", "Foreground"), ("o", "Orphan")] {
            let options = json!({"propagationPolicy": policy});
            let path = format!("{MAPS}/{name}");
            server.delete_with(&path, &options).await.expect(200);
        }
        for name in ["b", "f"] {
            until(&format!("{loss:?}: {name} is collected"), async || {
                stored(&server, "default", name).is_none()
            })
            .await;
        }
        until("owners are deleted", async || {
            server
                .get(MAPS)
                .await
                .names()
                .iter()
                .all(|name| name.len() > 1)
        })
        .await;
        let orphan = stored(&server, "default", "o").expect("it is kept");
        assert_eq!(orphan["metadata"].get("ownerReferences"), None);
        assert_eq!(orphan["metadata"]["uid"], kept["metadata"]["uid"]);
        assert_eq!(orphan["apiVersion"], "example.com/v1", "it stays as it was");
        assert_eq!(orphan["spec"], kept["spec"]);

        assert!(stored(&server, "default", "old").is_some());
        let release = json!({"metadata": {"finalizers": null}});
        server
            .patch(&format!("{MAPS}/young"), MERGE, &release)
            .await
            .expect(200);
        until(&format!("{loss:?}: the owner may go"), async || {
            stored(&server, "default", "old").is_none()
        })
        .await;
    }
}

/// Repairs the conversion and removes the finalizers of a relic.
async fn repair_and_release(server: &TestServer, namespace: &str, name: &str) {
    let repaired = json!({"metadata": {"annotations": {ANNOTATION: null}}});
    server.patch(DEFINITION, MERGE, &repaired).await.expect(200);
    let path = format!("{}/{name}", relics("v2", namespace));
    let release = json!({"metadata": {"finalizers": null}});
    server.patch(&path, MERGE, &release).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_with_unreadable_objects_is_deleted() {
    for loss in LOSSES {
        let server = start().await;
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "tomb"}});
        server
            .post("/api/v1/namespaces", &namespace)
            .await
            .expect(201);
        relic(&server, "tomb", "free", json!({})).await;
        let held = json!({"finalizers": ["example.com/hold"]});
        relic(&server, "tomb", "held", held).await;
        relic(&server, "default", "other", json!({})).await;
        lose(&server, loss).await;
        server.delete("/api/v1/namespaces/tomb").await.expect(200);
        until(
            &format!("{loss:?}: one is deleted, the other is terminating"),
            async || {
                stored(&server, "tomb", "free").is_none()
                    && stored(&server, "tomb", "held")
                        .is_some_and(|held| held["metadata"].get("deletionTimestamp").is_some())
            },
        )
        .await;
        let held = stored(&server, "tomb", "held").unwrap();
        assert_eq!(held["apiVersion"], "example.com/v1");
        repair_and_release(&server, "tomb", "held").await;
        until(&format!("{loss:?}: the namespace is deleted"), async || {
            server.get("/api/v1/namespaces/tomb").await.code == 404
        })
        .await;
        assert!(stored(&server, "default", "other").is_some());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_with_unreadable_objects_is_deleted() {
    for loss in LOSSES {
        let server = start().await;
        relic(&server, "default", "free", json!({})).await;
        let held = json!({"finalizers": ["example.com/hold"]});
        relic(&server, "default", "held", held).await;
        lose(&server, loss).await;
        server.delete(DEFINITION).await.expect(200);
        until(
            &format!("{loss:?}: one is deleted, the other is terminating"),
            async || {
                stored(&server, "default", "free").is_none()
                    && stored(&server, "default", "held")
                        .is_some_and(|held| held["metadata"].get("deletionTimestamp").is_some())
            },
        )
        .await;
        server.get(DEFINITION).await.expect(200);
        repair_and_release(&server, "default", "held").await;
        until(
            &format!("{loss:?}: the definition is deleted"),
            async || server.get(DEFINITION).await.code == 404,
        )
        .await;
        server.post(DEFINITIONS, &definition()).await.expect(201);
        assert!(
            server
                .get(&relics("v1", "default"))
                .await
                .expect(200)
                .names()
                .is_empty()
        );
    }
}

#[tokio::test]
async fn the_raw_path_of_stored_objects_accepts_metadata_and_deletion_only() {
    use bareboat::server::request::body::RequestBody;
    let server = start().await;
    relic(&server, "default", "a", json!({})).await;
    lose(&server, Loss::Outdated).await;
    let at = format!("{}/a", relics("v1", "default"));
    let ask = async |method: &str, path: &str, body: Value| {
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content_type(method))
            .body(RequestBody::Memory(
                serde_json::to_vec(&body).unwrap().into(),
            ))
            .unwrap();
        let user = bareboat::server::authn::in_process();
        read(server.server().call_raw(user, request).await).await
    };
    let shown = ask("GET", &at, json!({})).await.expect(200).json();
    assert_eq!(shown["apiVersion"], "example.com/v1");
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    ask("PATCH", &at, labels).await.expect(200);
    let now = stored(&server, "default", "a").unwrap();
    assert_eq!(now["metadata"]["labels"], json!({"a": "b"}));
    assert_eq!(now["spec"], shown["spec"]);
    let refused = ask("PATCH", &at, json!({"spec": {"text": "y"}})).await;
    assert!(
        refused
            .expect(400)
            .text()
            .contains("only metadata can be changed")
    );
    let invalid = json!({"metadata": {"labels": {"a": "not a label"}}});
    ask("PATCH", &at, invalid).await.expect(422);
    let stale = json!({"metadata": {"resourceVersion": "1", "labels": {}}});
    ask("PATCH", &at, stale).await.expect(409);
    for (method, path) in [
        ("PUT", at.clone()),
        ("GET", relics("v1", "default")),
        ("POST", relics("v1", "default")),
        ("DELETE", relics("v1", "default")),
        ("GET", format!("{at}/status")),
    ] {
        assert_eq!(
            ask(method, &path, json!({})).await.code,
            405,
            "{method} {path}"
        );
    }
    ask("GET", &format!("{at}-not"), json!({}))
        .await
        .expect(404);
    ask("DELETE", &at, json!({})).await.expect(200);
    assert!(stored(&server, "default", "a").is_none());
}

fn content_type(method: &str) -> &'static str {
    match method {
        "PATCH" => MERGE,
        _ => "application/json",
    }
}
