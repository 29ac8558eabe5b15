//! Validating policies: denials, warnings, audit annotations, errors.

use super::*;
use crate::audit::Log;
use crate::rbac::{AsUser, user};

#[tokio::test]
async fn a_policy_refuses_what_its_expression_refuses() {
    let server = TestServer::start().await;
    let spec = json!({
        "matchConstraints": rules("apps", "deployments", &["CREATE", "UPDATE"]),
        "variables": [{"name": "replicas", "expression": "object.spec.replicas"}],
        "validations": [{
            "expression": "variables.replicas <= 5",
            "messageExpression": "'at most 5 replicas, not ' + string(variables.replicas)",
        }],
    });
    validate(&server, "few", spec, json!({})).await;
    server
        .post(DEPLOYMENTS, &deployment("a", 5))
        .await
        .expect(201);
    let refused = server
        .post(DEPLOYMENTS, &deployment("b", 6))
        .await
        .expect(422);
    let text = "ValidatingAdmissionPolicy 'few' with binding 'few-binding' denied request: at most 5 replicas, not 6";
    let message = format!("deployments.apps \"b\" is forbidden: {text}");
    assert_eq!(refused.status(), (422, "Invalid".to_owned(), message));
    assert_eq!(
        refused.json()["details"],
        json!({"name": "b", "group": "apps", "kind": "deployments", "causes": [{"message": text}]})
    );
    // Updates, patches and dry runs are writes as well.
    let path = format!("{DEPLOYMENTS}/a");
    server.put(&path, &deployment("a", 7)).await.expect(422);
    let patch = json!({"spec": {"replicas": 8}});
    server.patch(&path, MERGE, &patch).await.expect(422);
    server
        .patch(&format!("{path}?dryRun=All"), MERGE, &patch)
        .await
        .expect(422);
    let unknown = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"generateName": "gen-"}, "spec": deployment("", 9)["spec"]});
    let refused = server.post(DEPLOYMENTS, &unknown).await.expect(422);
    let name = refused.json()["details"]["name"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(name.starts_with("gen-"), "{name}");
    // The policy is about the object itself, not about its scale.
    let scale = json!({"spec": {"replicas": 9}});
    server
        .patch(&format!("{path}/scale"), MERGE, &scale)
        .await
        .expect(200);
}

#[tokio::test]
async fn a_policy_without_a_binding_does_nothing_and_changes_apply_at_once() {
    let server = TestServer::start().await;
    validate(
        &server,
        "none",
        json!({"validations": [{"expression": "false", "reason": "Forbidden"}]}),
        json!({}),
    )
    .await;
    let refused = server.post(MAPS, &config_map("a")).await.expect(403);
    assert_eq!(refused.status().1, "Forbidden");
    let binding = format!("{ADMISSION}/validatingadmissionpolicybindings/none-binding");
    server.delete(&binding).await.expect(200);
    server.post(MAPS, &config_map("a")).await.expect(201);
    validate(
        &server,
        "other",
        json!({"validations": [{"expression": "false"}]}),
        json!({"policyName": "none"}),
    )
    .await;
    server.post(MAPS, &config_map("b")).await.expect(403);
    let policy = format!("{ADMISSION}/validatingadmissionpolicies/none");
    let allow =
        json!([{"op": "replace", "path": "/spec/validations/0/expression", "value": "true"}]);
    server.patch(&policy, JSON_PATCH, &allow).await.expect(200);
    server.post(MAPS, &config_map("b")).await.expect(201);
}

#[tokio::test]
async fn reasons_decide_the_code() {
    let server = TestServer::start().await;
    for (reason, code) in [
        ("Forbidden", 403),
        ("RequestEntityTooLarge", 413),
        ("Invalid", 422),
    ] {
        let name = reason.to_lowercase();
        let spec = json!({"validations": [{"expression": format!("object.metadata.name != '{name}'"), "reason": reason}]});
        validate(&server, &name, spec, json!({})).await;
        let refused = server.post(MAPS, &config_map(&name)).await.expect(code);
        assert_eq!(refused.status().1, reason);
    }
}

#[tokio::test]
async fn warnings_and_audit_annotations_let_the_request_pass() {
    let log = Log::new("[{level: Metadata}]");
    let server = log
        .of(TestServer::builder().without_controllers())
        .start()
        .await;
    let spec = json!({
        "validations": [{"expression": "true"}, {"expression": "object.data.a != 'b'", "message": "not b"}],
        "auditAnnotations": [{"key": "data", "valueExpression": "'a is ' + object.data.a"}],
    });
    validate(
        &server,
        "soft",
        spec,
        json!({"validationActions": ["Warn", "Audit"]}),
    )
    .await;
    let created = server.post(MAPS, &config_map("a")).await.expect(201);
    assert_eq!(
        created.headers("warning"),
        [
            r#"299 - "Validation failed for ValidatingAdmissionPolicy 'soft' with binding 'soft-binding': not b""#
        ]
    );
    let events = log.eventually(created.header("audit-id"), 1).await;
    let annotations = &events.last().unwrap()["annotations"];
    assert_eq!(annotations["soft/data"], "a is b");
    assert_eq!(
        annotations["validation.policy.admission.k8s.io/validation_failure"],
        r#"[{"message":"not b","policy":"soft","binding":"soft-binding","expressionIndex":1,"validationActions":["Warn","Audit"]}]"#
    );
}

#[tokio::test]
async fn errors_refuse_unless_the_policy_ignores_them() {
    let server = TestServer::start().await;
    let spec = |failure: &str| json!({"failurePolicy": failure, "validations": [{"expression": "object.nothing.here == 1"}]});
    validate(&server, "ignores", spec("Ignore"), json!({})).await;
    server.post(MAPS, &config_map("a")).await.expect(201);
    validate(&server, "fails", spec("Fail"), json!({})).await;
    let refused = server.post(MAPS, &config_map("b")).await.expect(422);
    let text = "configmaps \"b\" is forbidden: ValidatingAdmissionPolicy 'fails' with binding 'fails-binding' denied request: expression 'object.nothing.here == 1' resulted in error: no such key: nothing";
    assert_eq!(
        refused.status(),
        (422, "Invalid".to_owned(), text.to_owned())
    );
    let metrics = server.get("/metrics").await.text();
    for line in [
        r#"apiserver_validating_admission_policy_check_total{enforcement_action="allow",error_type="invalid_error",policy="ignores",policy_binding="ignores-binding"} 2"#,
        r#"apiserver_validating_admission_policy_check_total{enforcement_action="deny",error_type="invalid_error",policy="fails",policy_binding="fails-binding"} 1"#,
    ] {
        assert!(metrics.contains(line), "{line}");
    }
}

#[tokio::test]
async fn an_expression_that_costs_too_much_is_stopped() {
    let server = TestServer::start().await;
    let long = "'0123456789'.split('').all(a, '0123456789'.split('').all(b, '0123456789'.split('').all(c, '0123456789'.split('').all(d, '0123456789'.split('').all(e, '0123456789'.split('').all(f, a + b + c + d + e + f != object.metadata.name))))))";
    validate(
        &server,
        "long",
        json!({"validations": [{"expression": long}]}),
        json!({}),
    )
    .await;
    let refused = server.post(MAPS, &config_map("a")).await.expect(422);
    let message = refused.status().2;
    assert!(
        message.ends_with("resulted in error: operation cancelled: actual cost limit exceeded"),
        "{message}"
    );
}

#[tokio::test]
async fn deletions_and_subresources_are_matched_by_their_rules() {
    let server = TestServer::start().await;
    let spec = json!({
        "matchConstraints": rules("", "configmaps", &["DELETE"]),
        "validations": [{"expression": "object == null && oldObject.data.a == 'x' && request.operation == 'DELETE'", "message": "kept"}],
    });
    validate(&server, "keep", spec, json!({})).await;
    server.post(MAPS, &config_map("a")).await.expect(201);
    let refused = server.delete(&format!("{MAPS}/a")).await.expect(422);
    assert!(refused.status().2.ends_with("denied request: kept"));
    let spec = json!({
        "matchConstraints": rules("apps", "deployments/scale", &["UPDATE"]),
        "validations": [{"expression": "object.kind == 'Scale' && request.subResource == 'scale' && object.spec.replicas < 5"}],
    });
    validate(&server, "scale", spec, json!({})).await;
    server
        .post(DEPLOYMENTS, &deployment("a", 6))
        .await
        .expect(201);
    let scale = format!("{DEPLOYMENTS}/a/scale");
    server
        .patch(&scale, MERGE, &json!({"spec": {"replicas": 4}}))
        .await
        .expect(200);
    server
        .patch(&scale, MERGE, &json!({"spec": {"replicas": 5}}))
        .await
        .expect(422);
    let spec = json!({
        "matchConstraints": rules("apps", "deployments/status", &["UPDATE"]),
        "validations": [{"expression": "object.status.replicas == 1", "message": "status"}],
    });
    validate(&server, "status", spec, json!({})).await;
    let status = format!("{DEPLOYMENTS}/a/status");
    server
        .patch(&status, MERGE, &json!({"status": {"replicas": 1}}))
        .await
        .expect(200);
    server
        .patch(&status, MERGE, &json!({"status": {"replicas": 2}}))
        .await
        .expect(422);
}

#[tokio::test]
async fn selectors_and_bindings_narrow_a_policy() {
    let server = TestServer::start().await;
    for (name, env) in [("prod", "prod"), ("test", "test")] {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"env": env}}});
        server
            .post("/api/v1/namespaces", &namespace)
            .await
            .expect(201);
    }
    let constraints = merged(
        config_maps(),
        json!({"objectSelector": {"matchLabels": {"checked": "yes"}}}),
    );
    let spec = json!({
        "matchConstraints": constraints,
        "matchConditions": [{"name": "not-b", "expression": "object.metadata.name != 'b'"}],
        "validations": [{"expression": "namespaceObject.metadata.labels.env != 'prod'", "message": "in prod"}],
    });
    let binding = json!({"matchResources": {"namespaceSelector": {"matchExpressions": [{"key": "env", "operator": "Exists"}]}}});
    validate(&server, "narrow", spec, binding).await;
    let labelled = |name: &str| {
        merged(
            config_map(name),
            json!({"metadata": {"name": name, "labels": {"checked": "yes"}}}),
        )
    };
    let at = |namespace: &str| format!("/api/v1/namespaces/{namespace}/configmaps");
    server.post(&at("prod"), &labelled("a")).await.expect(422);
    server.post(&at("prod"), &labelled("b")).await.expect(201);
    server.post(&at("prod"), &config_map("a")).await.expect(201);
    server.post(&at("test"), &labelled("a")).await.expect(201);
    server
        .post(&at("default"), &labelled("a"))
        .await
        .expect(201);
}

#[tokio::test]
async fn expressions_ask_what_the_user_may_do() {
    let server = TestServer::builder().default_roles().start().await;
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "maps"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "get"]}],
    });
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    server
        .post(&format!("{rbac}/clusterroles"), &role)
        .await
        .expect(201);
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "maps"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "maps"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}],
    });
    server
        .post(&format!("{rbac}/clusterrolebindings"), &binding)
        .await
        .expect(201);
    let spec = json!({"validations": [
        {"expression": "authorizer.requestResource.check('get').allowed()", "message": "may not get"},
        {"expression": "authorizer.group('').resource('secrets').namespace('default').check('list').allowed()", "message": "may not list secrets"},
    ]});
    validate(&server, "rights", spec, json!({})).await;
    server.post(MAPS, &config_map("admin")).await.expect(201);
    let ann = AsUser(&server, user("ann", &[]));
    let refused = ann
        .send("POST", MAPS, "application/json", &config_map("ann"))
        .await
        .expect(422);
    assert!(
        refused
            .status()
            .2
            .ends_with("denied request: may not list secrets"),
        "{}",
        refused.text()
    );
}

#[tokio::test]
async fn policies_never_see_policies_and_reviews() {
    let server = TestServer::start().await;
    let everything = json!({"resourceRules": [{
        "apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"],
    }]});
    let spec = json!({"matchConstraints": everything, "validations": [{"expression": "false"}]});
    validate(&server, "all", spec, json!({})).await;
    server.post(MAPS, &config_map("a")).await.expect(422);
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}});
    server
        .post(
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            &review,
        )
        .await
        .expect(201);
    server
        .delete(&format!("{ADMISSION}/validatingadmissionpolicies/all"))
        .await
        .expect(200);
    server.post(MAPS, &config_map("a")).await.expect(201);
}

#[tokio::test]
async fn a_policy_for_another_version_sees_the_object_in_it() {
    let server = TestServer::start().await;
    let hpa = |version: &str, metrics: Value| {
        json!({
            "apiVersion": format!("autoscaling/{version}"), "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"},
            "spec": merged(json!({"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "maxReplicas": 3}), metrics),
        })
    };
    let only = json!({"resourceRules": [{
        "apiGroups": ["autoscaling"], "apiVersions": ["v2"], "operations": ["CREATE"], "resources": ["horizontalpodautoscalers"],
    }]});
    let spec = json!({
        "matchConstraints": only,
        "validations": [{"expression": "object.apiVersion == 'autoscaling/v2' && object.spec.metrics[0].resource.target.averageUtilization < 50 && request.requestKind.version == 'v1' && request.kind.version == 'v2'"}],
    });
    validate(&server, "v2", spec, json!({})).await;
    let path = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers";
    server
        .post(
            path,
            &hpa("v1", json!({"targetCPUUtilizationPercentage": 60})),
        )
        .await
        .expect(422);
    server
        .post(
            path,
            &hpa("v1", json!({"targetCPUUtilizationPercentage": 40})),
        )
        .await
        .expect(201);
}

#[tokio::test]
async fn metrics_measure_match_conditions() {
    let server = TestServer::start().await;
    let spec = json!({
        "failurePolicy": "Ignore",
        "matchConditions": [{"name": "broken", "expression": "object.data.missing == 'x'"}],
        "validations": [{"expression": "false"}],
    });
    validate(&server, "measured", spec, json!({})).await;
    server.post(MAPS, &config_map("a")).await.expect(201);
    let metrics = server.get("/metrics").await.expect(200).text();
    let labels = "{kind=\"policy\",name=\"measured\",operation=\"CREATE\",type=\"validate\"}";
    for name in ["evaluation_errors_total", "evaluation_seconds_count"] {
        let line = format!("apiserver_admission_match_condition_{name}{labels} 1");
        assert!(metrics.contains(&line), "{line} is missing");
    }
}
