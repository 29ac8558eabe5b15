//! Rules with resourceNames: which requests they cover, and that no selector widens them.

use crate::rbac::{AsUser, user};
use crate::support::*;
use bareboat_testing::TestServer;

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";

/// Ann may do everything with the config map `a`, and nothing else.
async fn server() -> TestServer {
    let server = TestServer::start().await;
    for name in ["a", "b"] {
        server.post(MAPS, &config_map(name)).await.expect(201);
    }
    let role = json!({
        "metadata": {"name": "a"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["a"], "verbs": ["*"]}],
    });
    server
        .post(&format!("{RBAC}/roles"), &role)
        .await
        .expect(201);
    let binding = json!({
        "metadata": {"name": "ann"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "a"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}],
    });
    let bindings = format!("{RBAC}/rolebindings");
    server.post(&bindings, &binding).await.expect(201);
    server
}

async fn ask(ann: &AsUser<'_>, method: &str, path: &str, body: &Value) -> Answer {
    let media = match method {
        "PATCH" => MERGE,
        _ => "application/json",
    };
    ann.send(method, path, media, body).await
}

#[tokio::test]
async fn a_name_covers_requests_for_that_object_only() {
    let server = server().await;
    let ann = AsUser(&server, user("ann", &[]));
    for (method, body) in [
        ("GET", Value::Null),
        ("PUT", config_map("a")),
        ("PATCH", json!({"data": {"a": "c"}})),
    ] {
        let answer = ask(&ann, method, &format!("{MAPS}/a"), &body).await;
        answer.expect(200);
        for other in ["b", "missing", "a%2F..%2Fb", "%2561", "*"] {
            let answer = ask(&ann, method, &format!("{MAPS}/{other}"), &body).await;
            assert_eq!(answer.code, 403, "{method} {other}: {}", answer.text());
        }
    }
    // The name of a new object is not known when the request is authorized.
    ask(&ann, "POST", MAPS, &config_map("a")).await.expect(403);
    let apply = format!("{MAPS}/a?fieldManager=ann&force=true");
    let body = config_map("a");
    ann.send("PATCH", &apply, APPLY, &body).await.expect(200);
    ask(&ann, "DELETE", &format!("{MAPS}/b"), &Value::Null)
        .await
        .expect(403);
    ask(&ann, "DELETE", &format!("{MAPS}/a"), &Value::Null)
        .await
        .expect(200);
    // An apply that creates needs the right to create, and has a name.
    let role = format!("{RBAC}/roles/a");
    let verbs =
        |verbs: &[&str]| json!([{"op": "replace", "path": "/rules/0/verbs", "value": verbs}]);
    server
        .patch(&role, JSON_PATCH, &verbs(&["patch"]))
        .await
        .expect(200);
    ann.send("PATCH", &apply, APPLY, &body).await.expect(403);
    server
        .patch(&role, JSON_PATCH, &verbs(&["patch", "create"]))
        .await
        .expect(200);
    ann.send("PATCH", &apply, APPLY, &body).await.expect(201);
}

#[tokio::test]
async fn a_selector_of_the_name_makes_a_list_one_of_that_object() {
    let server = server().await;
    let ann = AsUser(&server, user("ann", &[]));
    let list = async |query: &str| ask(&ann, "GET", &format!("{MAPS}?{query}"), &Value::Null).await;
    for query in [
        "fieldSelector=metadata.name%3Da",
        "fieldSelector=metadata.name%3D%3Da",
        "fieldSelector=metadata.name%3Da,metadata.namespace%3Ddefault",
    ] {
        assert_eq!(list(query).await.expect(200).names(), ["a"], "{query}");
    }
    for query in [
        "",
        "limit=1",
        "fieldSelector=metadata.name%3Db",
        "fieldSelector=metadata.name%21%3Db",
        "fieldSelector=metadata.namespace%3Ddefault",
        "fieldSelector=metadata.name%3D",
        "fieldSelector=metadata.name%3D..%2Fa",
        "fieldSelector=metadata.name%3Da%2525",
        "fieldSelector=metadata.name%3D%2561",
        "fieldSelector=metadata.name%3Db&fieldSelector=metadata.name%3Da",
        "labelSelector=metadata.name%3Da",
        "fieldselector=metadata.name%3Da",
    ] {
        let answer = list(query).await;
        assert_eq!(answer.code, 403, "{query}: {}", answer.text());
    }
    // What is authorized is also what is listed.
    for query in [
        "fieldSelector=metadata.name%3Da,metadata.name%3Db",
        "fieldSelector=metadata.name%3Db,metadata.name%3Da",
        "fieldSelector=metadata.name%3Da&fieldSelector=metadata.name%3Db",
    ] {
        let names = list(query).await.expect(200).names();
        assert!(!names.contains(&"b".to_owned()), "{query}: {names:?}");
    }
    // A deletion of a collection is never one of a single object.
    let one = format!("{MAPS}?fieldSelector=metadata.name%3Da");
    ask(&ann, "DELETE", &one, &Value::Null).await.expect(403);
    assert_eq!(server.get(MAPS).await.names(), ["a", "b"]);
}

#[tokio::test]
async fn a_watch_of_one_name_shows_no_other_object() {
    let server = server().await;
    let refused = [
        format!("{MAPS}?watch=1"),
        format!("{MAPS}?watch=1&fieldSelector=metadata.name%3Db"),
        "/api/v1/watch/namespaces/default/configmaps".to_owned(),
        "/api/v1/watch/namespaces/default/configmaps/b".to_owned(),
        "/api/v1/watch/namespaces/default/configmaps/b?fieldSelector=metadata.name%3Da".to_owned(),
        "/api/v1/watch/namespaces/default/configmaps?fieldSelector=metadata.name%3Db".to_owned(),
    ];
    let ann = AsUser(&server, user("ann", &[]));
    for path in &refused {
        ask(&ann, "GET", path, &Value::Null).await.expect(403);
    }
    for (step, path) in [
        format!("{MAPS}?watch=1&fieldSelector=metadata.name%3Da"),
        "/api/v1/watch/namespaces/default/configmaps/a".to_owned(),
        "/api/v1/watch/namespaces/default/configmaps?fieldSelector=metadata.name%3Da".to_owned(),
    ]
    .into_iter()
    .enumerate()
    {
        let request = request("GET", &path, &[], "");
        let response = server.call_as(user("ann", &[]), request).await;
        assert_eq!(response.status(), 200, "{path}");
        let mut watch = Watching::new(response);
        assert_eq!(watch.brief().await, "ADDED a", "{path}");
        for name in ["b", "a"] {
            let change = json!({"data": {"step": format!("{step}")}});
            let one = format!("{MAPS}/{name}");
            server.patch(&one, MERGE, &change).await.expect(200);
        }
        assert_eq!(watch.brief().await, "MODIFIED a", "{path}");
    }
    // The name in the path and the one in the selector differ: nothing is shown.
    let path = "/api/v1/watch/namespaces/default/configmaps/a?fieldSelector=metadata.name%3Db&timeoutSeconds=1";
    let response = server
        .call_as(user("ann", &[]), request("GET", path, &[], ""))
        .await;
    if response.status() == 200 {
        let events = Watching::new(response).rest().await;
        let shows_b = events.iter().any(|event| name(&event["object"]) == "b");
        assert!(!shows_b, "{events:?}");
    }
}
