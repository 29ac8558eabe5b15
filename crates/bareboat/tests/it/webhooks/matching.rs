//! Which requests reach a webhook: selectors, conditions, exempt kinds, order.

use super::hook::{TestHook, allow, configure};
use crate::backend::Ca;
use crate::support::{MAPS, MERGE, Requests, config_map, json};
use bareboat_testing::TestServer;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

#[tokio::test]
async fn objects_match_by_their_old_or_new_labels() {
    let server = TestServer::start().await;
    let hook = TestHook::start(|_, _| allow()).await;
    let mut webhook = hook.webhook("/see", "", &["configmaps"]);
    webhook["objectSelector"] = json!({"matchLabels": {"seen": "yes"}});
    configure(&server, "Validating", "all", &[webhook]).await;
    server.post(MAPS, &config_map("a")).await.expect(201);
    let path = format!("{MAPS}/a");
    assert_eq!(hook.requests().len(), 0);
    for (labels, calls) in [
        (json!({"seen": "yes"}), 1),
        (json!({"seen": null}), 1),
        (json!({"x": "y"}), 0),
    ] {
        let change = json!({"metadata": {"labels": labels}});
        server.patch(&path, MERGE, &change).await.expect(200);
        assert_eq!(hook.requests().len(), calls, "{labels}");
    }
}

#[tokio::test]
async fn namespaces_match_by_their_own_labels() {
    let server = TestServer::start().await;
    let hook = TestHook::start(|_, _| allow()).await;
    let mut webhook = hook.webhook("/see", "", &["namespaces", "configmaps", "nodes"]);
    webhook["namespaceSelector"] = json!({"matchLabels": {"team": "a"}});
    configure(&server, "Validating", "all", &[webhook]).await;
    let namespace =
        |name: &str, team: &str| json!({"metadata": {"name": name, "labels": {"team": team}}});
    server
        .post("/api/v1/namespaces", &namespace("one", "a"))
        .await
        .expect(201);
    server
        .post("/api/v1/namespaces", &namespace("two", "b"))
        .await
        .expect(201);
    let seen = hook.requests();
    assert_eq!(seen.len(), 1);
    assert_eq!(
        (&seen[0]["name"], &seen[0]["namespace"]),
        (&json!("one"), &json!("one"))
    );
    server
        .post("/api/v1/namespaces/one/configmaps", &config_map("a"))
        .await
        .expect(201);
    server
        .post("/api/v1/namespaces/two/configmaps", &config_map("a"))
        .await
        .expect(201);
    assert_eq!(
        hook.requests()
            .iter()
            .filter(|it| it["name"] == "a")
            .count(),
        1
    );
    // Objects outside of namespaces always match.
    server
        .post("/api/v1/nodes", &json!({"metadata": {"name": "n"}}))
        .await
        .expect(201);
    assert!(hook.requests().iter().any(|it| it["name"] == "n"));
}

#[tokio::test]
async fn conditions_decide_and_their_errors_follow_the_failure_policy() {
    let server = TestServer::start().await;
    let hook = TestHook::start(|_, _| allow()).await;
    let with = |expressions: &[&str], policy: &str| {
        let mut webhook = hook.webhook("/see", "", &["configmaps"]);
        let conditions = expressions.iter().enumerate();
        let conditions =
            conditions.map(|(at, text)| json!({"name": format!("c{at}"), "expression": text}));
        webhook["matchConditions"] = conditions.collect();
        webhook["failurePolicy"] = json!(policy);
        webhook
    };
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/one";
    for (expressions, policy, code, calls) in [
        (&["object.metadata.name == 'a'"][..], "Fail", 201, 1),
        (&["object.metadata.name == 'b'"], "Fail", 201, 0),
        (
            &["request.operation == 'CREATE' && request.namespace == 'default'"],
            "Fail",
            201,
            1,
        ),
        (
            &[
                "authorizer.group('').resource('secrets').namespace('default').check('get').allowed()",
            ],
            "Fail",
            201,
            1,
        ),
        (
            &["authorizer.requestResource.check('create').allowed()"],
            "Fail",
            201,
            1,
        ),
        (&["object.data.missing == 'x'"], "Fail", 403, 0),
        (&["object.data.missing == 'x'"], "Ignore", 201, 0),
        (&["object.data.missing == 'x'", "false"], "Fail", 201, 0),
        (&["oldObject == null"], "Fail", 201, 1),
    ] {
        configure(&server, "Validating", "one", &[with(expressions, policy)]).await;
        let answer = server.post(MAPS, &config_map("a")).await;
        assert_eq!(
            (answer.code, hook.requests().len()),
            (code, calls),
            "{expressions:?} {}",
            answer.text()
        );
        if code == 403 {
            assert_eq!(
                answer.status().2,
                "configmaps \"a\" is forbidden: expression 'object.data.missing == 'x'' resulted in error: \
                 no such key: missing"
            );
        }
        server.delete(path).await.expect(200);
        if code == 201 {
            server.delete(&format!("{MAPS}/a")).await.expect(200);
        }
    }
}

#[tokio::test]
async fn configurations_of_admission_are_exempt() {
    let server = TestServer::start().await;
    let hook = TestHook::start(|_, _| super::hook::deny(&json!({"message": "nothing goes"}))).await;
    for kind in ["Validating", "Mutating"] {
        let webhook = hook.webhook("/no", "*", &["*/*"]);
        configure(&server, kind, "all", &[webhook]).await;
    }
    server.post(MAPS, &config_map("a")).await.expect(400);
    for kind in ["validating", "mutating"] {
        let path = format!("/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations/all");
        server.delete(&path).await.expect(200);
    }
    server.post(MAPS, &config_map("a")).await.expect(201);
}

#[tokio::test]
async fn configurations_are_called_by_name_over_one_connection() {
    let server = TestServer::start().await;
    let hook = TestHook::start(|_, _| allow()).await;
    for name in ["c", "a", "b"] {
        let webhooks = ["x", "w"]
            .map(|part| hook.webhook(&format!("//{name}/./{part}/"), "", &["configmaps"]));
        let webhooks = webhooks.map(|mut webhook| {
            webhook["name"] = json!(format!("{}.x.example.com", uuid(&webhook)));
            webhook
        });
        configure(&server, "Mutating", name, &webhooks).await;
    }
    server.post(MAPS, &config_map("a")).await.expect(201);
    let calls = hook.calls();
    let targets: Vec<&str> = calls.iter().map(|call| call.target.as_str()).collect();
    let expected =
        ["/a/x", "/a/w", "/b/x", "/b/w", "/c/x", "/c/w"].map(|path| format!("{path}?timeout=10s"));
    assert_eq!(targets, expected);
    assert_eq!(hook.connections(), 1);
    assert!(
        calls
            .iter()
            .all(|call| call.version == http::Version::HTTP_2)
    );
}

/// Starts a server that shows mutating hooks at an address the credentials of a user.
async fn with_user(hook: &TestHook, user: &serde_json::Value) -> TestServer {
    let directory = tempfile::tempdir().unwrap();
    let host = hook.url().replace("https://", "");
    let users = json!({"kind": "Config", "users": [{"name": host, "user": user}]});
    std::fs::write(directory.path().join("users"), users.to_string()).unwrap();
    let settings = json!({
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "WebhookAdmissionConfiguration", "kubeConfigFile": "users",
    });
    let file = json!({
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration",
        "plugins": [{"name": "MutatingAdmissionWebhook", "configuration": settings}],
    });
    let path = directory.path().join("admission");
    std::fs::write(&path, file.to_string()).unwrap();
    let read = bareboat::server::AdmissionConfiguration::read(&path).unwrap();
    let webhooks = bareboat::admission::Webhooks::of(&read).unwrap();
    TestServer::builder()
        .with(move |builder| builder.mutating_webhooks(webhooks.mutating.clone()))
        .start()
        .await
}

#[tokio::test]
async fn a_client_certificate_is_shown_to_the_hosts_it_is_for() {
    let callers = Ca::new();
    let hook = TestHook::start_asking(Some(&callers), |_, _| allow()).await;
    let other = TestHook::start_asking(Some(&callers), |_, _| allow()).await;
    let (chain, key) = callers.client("caller-of-hooks");
    let user = json!({
        "client-certificate-data": BASE64_STANDARD.encode(chain),
        "client-key-data": BASE64_STANDARD.encode(key),
    });
    let server = with_user(&hook, &user).await;
    let hooks = [
        hook.webhook("/a", "", &["configmaps"]),
        other.webhook("/b", "", &["configmaps"]),
    ];
    configure(&server, "Mutating", "all", &hooks).await;
    configure(&server, "Validating", "all", &hooks).await;
    server.post(MAPS, &config_map("a")).await.expect(201);
    let shown = |hook: &TestHook| -> Vec<Option<String>> {
        hook.calls().into_iter().map(|call| call.caller).collect()
    };
    let name = Some("caller-of-hooks".to_owned());
    assert_eq!(
        shown(&hook),
        [name, None],
        "only mutating hooks have credentials"
    );
    assert_eq!(shown(&other), [None, None]);
}

#[tokio::test]
async fn credentials_are_shown_to_the_hosts_they_are_for() {
    let hook = TestHook::start(|_, _| allow()).await;
    let other = TestHook::start(|_, _| allow()).await;
    let server = with_user(&hook, &json!({"token": "for-hooks"})).await;
    let hooks = [
        hook.webhook("/a", "", &["configmaps"]),
        other.webhook("/b", "", &["configmaps"]),
    ];
    configure(&server, "Mutating", "all", &hooks).await;
    configure(&server, "Validating", "all", &hooks).await;
    server.post(MAPS, &config_map("a")).await.expect(201);
    let shown: Vec<String> = hook
        .calls()
        .iter()
        .map(|call| call.authorization.clone())
        .collect();
    assert_eq!(
        shown,
        ["Bearer for-hooks", ""],
        "only mutating hooks have credentials"
    );
    assert!(
        other
            .calls()
            .iter()
            .all(|call| call.authorization.is_empty())
    );
}

/// A name that differs between webhooks of one configuration.
fn uuid(webhook: &serde_json::Value) -> String {
    let url = webhook["clientConfig"]["url"].as_str().unwrap();
    let last = url.trim_end_matches('/').rsplit('/').next().unwrap();
    format!("hook-{last}")
}
