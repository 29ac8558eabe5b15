//! What audit events and metrics record about webhooks.

use super::hook::{Reply, TestHook, configure, deny, patch};
use crate::audit::Log;
use crate::support::{MAPS, Requests, config_map, json};
use bareboat_testing::TestServer;

#[tokio::test]
async fn audit_events_name_the_calls_patches_and_failures() {
    let log = Log::new("[{level: Request}]");
    let server = log
        .of(TestServer::builder().without_controllers())
        .start()
        .await;
    let hook = TestHook::start(|path, _| match path {
        "/patch" => patch(&json!([{"op": "add", "path": "/data/x", "value": "y"}])),
        "/note" => Reply::Review(json!({"allowed": true, "auditAnnotations": {"key": "text"}})),
        _ => Reply::Raw(500, "broken".to_owned()),
    })
    .await;
    let mut broken = hook.webhook("/broken", "", &["configmaps"]);
    broken["failurePolicy"] = json!("Ignore");
    let hooks = [hook.webhook("/patch", "", &["configmaps"]), broken.clone()];
    configure(&server, "Mutating", "first", &hooks).await;
    let hooks = [hook.webhook("/note", "", &["configmaps"]), broken];
    configure(&server, "Validating", "second", &hooks).await;
    let made = server.post(MAPS, &config_map("a")).await.expect(201);
    let events = log.eventually(made.header("audit-id"), 2).await;
    let annotations = &events.last().unwrap()["annotations"];
    let text = |key: &str| annotations[key].as_str().unwrap_or("").to_owned();
    assert_eq!(
        text("mutation.webhook.admission.k8s.io/round_0_index_0"),
        r#"{"configuration":"first","webhook":"patch.hooks.example.com","mutated":true}"#
    );
    assert_eq!(
        text("mutation.webhook.admission.k8s.io/round_0_index_1"),
        r#"{"configuration":"first","webhook":"broken.hooks.example.com","mutated":false}"#
    );
    assert_eq!(
        text("patch.webhook.admission.k8s.io/round_0_index_0"),
        r#"{"configuration":"first","webhook":"patch.hooks.example.com","patch":[{"op":"add","path":"/data/x","value":"y"}],"patchType":"JSONPatch"}"#
    );
    let broken = "broken.hooks.example.com";
    assert_eq!(
        text("failed-open.mutation.webhook.admission.k8s.io/round_0_index_1"),
        broken
    );
    assert_eq!(
        text("failed-open.validating.webhook.admission.k8s.io/round_0_index_1"),
        broken
    );
    assert_eq!(text("note.hooks.example.com/key"), "text");
}

#[tokio::test]
async fn metrics_count_calls_refusals_and_ignored_failures() {
    let server = TestServer::start().await;
    let hook = TestHook::start(|path, _| match path {
        "/deny" => deny(&json!({"code": 403})),
        _ => Reply::Raw(500, "broken".to_owned()),
    })
    .await;
    let mut broken = hook.webhook("/broken", "", &["configmaps"]);
    broken["failurePolicy"] = json!("Ignore");
    configure(&server, "Mutating", "a", &[broken]).await;
    configure(
        &server,
        "Validating",
        "b",
        &[hook.webhook("/deny", "", &["configmaps"])],
    )
    .await;
    server.post(MAPS, &config_map("a")).await.expect(403);
    let metrics = server.get("/metrics").await.expect(200).text();
    for line in [
        "apiserver_admission_webhook_fail_open_count{name=\"broken.hooks.example.com\",type=\"admit\"} 1",
        "apiserver_admission_webhook_rejection_count{error_type=\"no_error\",name=\"deny.hooks.example.com\",\
         operation=\"CREATE\",rejection_code=\"403\",type=\"validating\"} 1",
        "apiserver_admission_webhook_request_total{code=\"500\",name=\"broken.hooks.example.com\",\
         operation=\"CREATE\",rejected=\"false\",type=\"admit\"} 1",
    ] {
        assert!(metrics.contains(line), "{line} is missing");
    }
}
