//! Parameters of policies: by name and by label, of built-in and custom kinds.

use super::*;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

async fn define(server: &TestServer, scope: &str, kind: &str) {
    let plural = format!("{}s", kind.to_lowercase());
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {
            "group": "example.com", "scope": scope,
            "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"max": {"type": "integer"}},
            }}}],
        },
    });
    server.post(DEFINITIONS, &definition).await.expect(201);
}

fn limit(kind: &str, name: &str, max: u32) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": name, "labels": {"limit": "yes"}}, "max": max})
}

fn sized(name: &str, size: usize) -> Value {
    let data: serde_json::Map<String, Value> = (0..size)
        .map(|index| (index.to_string(), json!("x")))
        .collect();
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

fn spec(kind: &str) -> Value {
    json!({
        "paramKind": {"apiVersion": "example.com/v1", "kind": kind},
        "validations": [{
            "expression": "params == null || size(object.data) <= params.max",
            "messageExpression": "'more than ' + string(params.max) + ' of ' + params.metadata.name",
        }],
    })
}

#[tokio::test]
async fn parameters_of_a_custom_kind_are_found_by_name() {
    let server = TestServer::start().await;
    define(&server, "Cluster", "Limit").await;
    let path = "/apis/example.com/v1/limits";
    let reference = json!({"paramRef": {"name": "small", "parameterNotFoundAction": "Deny"}});
    validate(&server, "p", spec("Limit"), reference).await;
    let refused = server.post(MAPS, &sized("a", 1)).await.expect(422);
    assert_eq!(
        refused.status().2,
        "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p-binding' denied request: failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"
    );
    server
        .post(path, &limit("Limit", "small", 1))
        .await
        .expect(201);
    server.post(MAPS, &sized("a", 1)).await.expect(201);
    let refused = server.post(MAPS, &sized("b", 2)).await.expect(422);
    assert!(
        refused
            .status()
            .2
            .ends_with("denied request: more than 1 of small"),
        "{}",
        refused.text()
    );
    // A change of the parameters counts at once.
    server
        .patch(&format!("{path}/small"), MERGE, &json!({"max": 2}))
        .await
        .expect(200);
    server.post(MAPS, &sized("b", 2)).await.expect(201);
}

#[tokio::test]
async fn parameters_are_selected_by_label_in_the_namespace_of_the_request() {
    let server = TestServer::start().await;
    define(&server, "Namespaced", "Bound").await;
    let reference = json!({"paramRef": {"selector": {"matchLabels": {"limit": "yes"}}, "parameterNotFoundAction": "Allow"}});
    validate(&server, "p", spec("Bound"), reference).await;
    server.post(MAPS, &sized("free", 9)).await.expect(201);
    let at = |namespace: &str| format!("/apis/example.com/v1/namespaces/{namespace}/bounds");
    server
        .post(&at("default"), &limit("Bound", "a", 3))
        .await
        .expect(201);
    server
        .post(&at("default"), &limit("Bound", "b", 2))
        .await
        .expect(201);
    // Every selected object applies.
    server.post(MAPS, &sized("two", 2)).await.expect(201);
    let refused = server.post(MAPS, &sized("three", 3)).await.expect(422);
    assert!(
        refused.status().2.ends_with("more than 2 of b"),
        "{}",
        refused.text()
    );
    server
        .post(
            "/api/v1/namespaces/kube-public/configmaps",
            &sized("three", 3),
        )
        .await
        .expect(201);
}

#[tokio::test]
async fn a_namespace_in_the_reference_decides() {
    let server = TestServer::start().await;
    let in_system = json!({"paramRef": {"name": "limits", "namespace": "kube-system", "parameterNotFoundAction": "Deny"}});
    let spec = json!({
        "matchConstraints": rules("", "namespaces", &["CREATE"]),
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "validations": [{"expression": "object.metadata.name != params.data.forbidden && params.kind == 'ConfigMap'"}],
    });
    validate(&server, "p", spec.clone(), in_system).await;
    let params = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "limits"}, "data": {"forbidden": "bad"}});
    server
        .post("/api/v1/namespaces/kube-system/configmaps", &params)
        .await
        .expect(201);
    let namespace =
        |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    server
        .post("/api/v1/namespaces", &namespace("good"))
        .await
        .expect(201);
    server
        .post("/api/v1/namespaces", &namespace("bad"))
        .await
        .expect(422);
}

#[tokio::test]
async fn references_that_cannot_work_refuse() {
    let server = TestServer::start().await;
    let reference = |more: Value| json!({"paramRef": merged(json!({"name": "x", "parameterNotFoundAction": "Allow"}), more)});
    let message = |answer: Answer| {
        let message = answer.expect(422).status().2;
        let (_, rest) = message.split_once("is forbidden: ").unwrap();
        rest.to_owned()
    };
    validate(&server, "unknown", spec("Nothing"), reference(json!({}))).await;
    assert_eq!(
        message(server.post(MAPS, &config_map("a")).await),
        "ValidatingAdmissionPolicy 'unknown' denied request: failed to configure policy: failed to find resource referenced by paramKind: 'example.com/v1, Kind=Nothing'"
    );
    server
        .delete(&format!("{ADMISSION}/validatingadmissionpolicies/unknown"))
        .await
        .expect(200);
    define(&server, "Cluster", "Limit").await;
    validate(
        &server,
        "scoped",
        spec("Limit"),
        reference(json!({"namespace": "default"})),
    )
    .await;
    assert_eq!(
        message(server.post(MAPS, &config_map("a")).await),
        "ValidatingAdmissionPolicy 'scoped' with binding 'scoped-binding' denied request: failed to configure binding: paramRef.namespace must not be provided for a cluster-scoped `paramKind`"
    );
    let in_namespaces = json!({
        "matchConstraints": rules("", "nodes", &["CREATE"]),
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "validations": [{"expression": "true"}],
    });
    validate(&server, "cluster", in_namespaces, reference(json!({}))).await;
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}});
    assert_eq!(
        message(server.post("/api/v1/nodes", &node).await),
        "ValidatingAdmissionPolicy 'cluster' with binding 'cluster-binding' denied request: failed to configure binding: cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
    );
}
