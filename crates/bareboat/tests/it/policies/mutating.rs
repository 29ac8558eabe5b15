//! Mutating policies: what they change, in which order, and their errors.

use super::*;

fn apply(expression: &str) -> Value {
    json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}})
}

fn patch(expression: &str) -> Value {
    json!({"patchType": "JSONPatch", "jsonPatch": {"expression": expression}})
}

fn label(key: &str, value: &str) -> Value {
    apply(&format!(
        "Object{{metadata: Object.metadata{{labels: {{'{key}': '{value}'}}}}}}"
    ))
}

#[tokio::test]
async fn a_configuration_is_applied() {
    let server = TestServer::start().await;
    let spec = json!({
        "matchConstraints": rules("apps", "deployments", &["CREATE"]),
        "variables": [{"name": "image", "expression": "'sidecar:' + object.metadata.name"}],
        "matchConditions": [{"name": "no-sidecar", "expression": "!object.spec.template.spec.containers.exists(c, c.name == 'sidecar')"}],
        "mutations": [apply(
            "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: [Object.spec.template.spec.containers{name: 'sidecar', image: variables.image}]}}}}",
        )],
    });
    mutate(&server, "sidecar", spec, json!({})).await;
    let created = server
        .post(DEPLOYMENTS, &deployment("a", 1))
        .await
        .expect(201)
        .json();
    let containers = &created["spec"]["template"]["spec"]["containers"];
    assert_eq!(containers[0]["name"], "c");
    assert_eq!(containers[1]["image"], "sidecar:a");
    // What it added has defaults and no manager.
    assert_eq!(
        containers[1]["terminationMessagePath"],
        "/dev/termination-log"
    );
    let owned = created["metadata"]["managedFields"][0]["fieldsV1"].to_string();
    assert!(!owned.contains("sidecar"), "{owned}");
    let dry = server
        .post(&format!("{DEPLOYMENTS}?dryRun=All"), &deployment("b", 1))
        .await
        .expect(201)
        .json();
    assert_eq!(
        dry["spec"]["template"]["spec"]["containers"][1]["image"],
        "sidecar:b"
    );
}

#[tokio::test]
async fn a_patch_is_applied_to_custom_kinds_too() {
    let server = TestServer::start().await;
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": {"type": "object", "properties": {
                    "size": {"type": "integer"},
                    "parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": {
                        "type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "value": {"type": "string"}},
                    }},
                }}},
            }}}],
        },
    });
    server
        .post(
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            &definition,
        )
        .await
        .expect(201);
    let spec = json!({
        "matchConstraints": rules("example.com", "things", &["CREATE", "UPDATE"]),
        "mutations": [
            patch("[JSONPatch{op: 'add', path: '/metadata/labels', value: {}}, JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('example.com/size'), value: string(object.spec.size)}]"),
            apply("Object{spec: Object.spec{size: object.spec.size + 1, parts: [Object.spec.parts{name: 'b', value: 'new'}]}}"),
        ],
    });
    mutate(&server, "things", spec, json!({})).await;
    let thing = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {
        "size": 1, "parts": [{"name": "a", "value": "x"}, {"name": "b", "value": "y"}],
    }});
    let created = server
        .post("/apis/example.com/v1/namespaces/default/things", &thing)
        .await
        .expect(201)
        .json();
    assert_eq!(
        created["metadata"]["labels"],
        json!({"example.com/size": "1"})
    );
    assert_eq!(
        created["spec"],
        json!({"size": 2, "parts": [{"name": "a", "value": "x"}, {"name": "b", "value": "new"}]})
    );
}

#[tokio::test]
async fn errors_have_the_words_of_kubernetes() {
    let server = TestServer::start().await;
    for (name, mutation, wanted) in [
        (
            "missing",
            patch("[JSONPatch{op: 'replace', path: '/nothing/here', value: 1}]"),
            "JSON Patch: replace operation does not apply: doc is missing path: /nothing/here: missing value",
        ),
        (
            "unknown",
            apply("Object{nothing: 1}"),
            "error applying patch: failed to convert patch object to typed object: .nothing: field not declared in schema",
        ),
        (
            "runtime",
            apply("Object{data: {'x': object.nothing}}"),
            "expression 'Object{data: {'x': object.nothing}}' resulted in error: no such key: nothing",
        ),
    ] {
        mutate(&server, name, json!({"mutations": [mutation]}), json!({})).await;
        let refused = server.post(MAPS, &config_map("a")).await.expect(403);
        let (_, reason, message) = refused.status();
        assert_eq!(reason, "Invalid");
        let start =
            format!("policy '{name}' with binding '{name}-binding' denied request: {wanted}");
        assert!(message.starts_with(&start), "{message}");
        let ignore = json!({"spec": {"failurePolicy": "Ignore"}});
        let path = format!("{ADMISSION}/mutatingadmissionpolicies/{name}");
        server.patch(&path, MERGE, &ignore).await.expect(200);
        server
            .post(&format!("{MAPS}?dryRun=All"), &config_map("a"))
            .await
            .expect(201);
    }
}

#[tokio::test]
async fn atomic_parts_are_not_changed_by_half() {
    let server = TestServer::start().await;
    let spec = json!({
        "matchConstraints": rules("apps", "deployments", &["CREATE"]),
        "mutations": [apply("Object{spec: Object.spec{selector: Object.spec.selector{matchLabels: {'x': 'y'}}}}")],
    });
    mutate(&server, "atomic", spec, json!({})).await;
    let refused = server
        .post(DEPLOYMENTS, &deployment("a", 1))
        .await
        .expect(403);
    assert_eq!(
        refused.status().2,
        "policy 'atomic' with binding 'atomic-binding' denied request: error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.selector"
    );
}

#[tokio::test]
async fn policies_run_in_order_and_again_where_they_want_to() {
    let server = TestServer::start().await;
    // The first copies a label that only the second adds.
    let copies = |again: &str| {
        json!({
            "reinvocationPolicy": again,
            "mutations": [patch("has(object.metadata.labels) && 'late' in object.metadata.labels ? [JSONPatch{op: 'add', path: '/data/seen', value: 'yes'}] : []")],
        })
    };
    mutate(&server, "a-never", copies("Never"), json!({})).await;
    mutate(
        &server,
        "b-adds",
        json!({"mutations": [label("late", "yes")]}),
        json!({}),
    )
    .await;
    let created = server
        .post(MAPS, &config_map("never"))
        .await
        .expect(201)
        .json();
    assert_eq!(created["metadata"]["labels"], json!({"late": "yes"}));
    assert_eq!(created["data"], json!({"a": "b"}));
    let again = json!({"spec": {"reinvocationPolicy": "IfNeeded"}});
    server
        .patch(
            &format!("{ADMISSION}/mutatingadmissionpolicies/a-never"),
            MERGE,
            &again,
        )
        .await
        .expect(200);
    let created = server
        .post(MAPS, &config_map("again"))
        .await
        .expect(201)
        .json();
    assert_eq!(created["data"], json!({"a": "b", "seen": "yes"}));
    // Validating policies see the result.
    validate(
        &server,
        "late",
        json!({"validations": [{"expression": "object.metadata.labels.late == 'yes'"}]}),
        json!({}),
    )
    .await;
    server.post(MAPS, &config_map("checked")).await.expect(201);
}

#[tokio::test]
async fn parameters_reach_mutations() {
    let server = TestServer::start().await;
    let params = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "p"}, "data": {"team": "blue"}});
    server
        .post("/api/v1/namespaces/kube-system/configmaps", &params)
        .await
        .expect(201);
    let spec = json!({
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "mutations": [apply("Object{metadata: Object.metadata{labels: {'team': params.data.team}}}")],
    });
    let reference = json!({"paramRef": {"name": "p", "namespace": "kube-system", "parameterNotFoundAction": "Deny"}});
    mutate(&server, "team", spec, reference).await;
    let created = server.post(MAPS, &config_map("a")).await.expect(201).json();
    assert_eq!(created["metadata"]["labels"], json!({"team": "blue"}));
    server
        .delete("/api/v1/namespaces/kube-system/configmaps/p")
        .await
        .expect(200);
    let refused = server.post(MAPS, &config_map("b")).await.expect(403);
    assert_eq!(
        refused.status(),
        (
            403,
            "Forbidden".to_owned(),
            "policy 'team' with binding 'team-binding' denied request: failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction".to_owned()
        )
    );
}
