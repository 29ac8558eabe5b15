//! Refusals, and webhooks that fail: the right Status, and nobody else is harmed.

use super::hook::{Reply, TestHook, allow, configure, deny, patch};
use crate::socket::{As, Connection};
use crate::support::{MAPS, Requests, Value, config_map, json};
use bareboat_testing::TestServer;
use std::time::{Duration, Instant};

const SECRETS: &str = "/api/v1/namespaces/default/secrets";

#[tokio::test]
async fn refusals_keep_code_reason_and_details() {
    let server = TestServer::start().await;
    let hook = TestHook::start(|_, request| {
        let status = request["object"]["data"]["status"].as_str().unwrap();
        match status {
            "" => Reply::Review(json!({"allowed": false})),
            text => deny(&serde_json::from_str(text).unwrap()),
        }
    })
    .await;
    configure(
        &server,
        "Validating",
        "all",
        &[hook.webhook("/deny", "", &["configmaps"])],
    )
    .await;
    let by = "admission webhook \"deny.hooks.example.com\" denied the request";
    for (status, code, reason, message) in [
        (json!(""), 400, "", format!("{by} without explanation")),
        (
            json!({"code": 403, "reason": "Forbidden", "message": "no"}).to_string().into(),
            403,
            "Forbidden",
            format!("{by}: no"),
        ),
        (
            json!({"code": 200, "status": "Success", "reason": "BecauseISaySo"}).to_string().into(),
            400,
            "BecauseISaySo",
            format!("{by}: BecauseISaySo"),
        ),
        (
            json!({"code": 422, "message": "odd", "details": {"causes": [{"field": "x", "message": "y"}]}})
                .to_string()
                .into(),
            422,
            "",
            format!("{by}: odd"),
        ),
    ] {
        let mut map = config_map("a");
        map["data"] = json!({"status": status});
        let answer = server.post(MAPS, &map).await;
        assert_eq!(answer.status(), (code, reason.to_owned(), message));
        if code == 422 {
            assert_eq!(answer.json()["details"]["causes"][0]["field"], "x");
        }
    }
}

/// Returns the message of a failed create, without the parts that differ.
async fn failure(server: &TestServer, hook: &TestHook) -> (u16, String) {
    let (code, _, message) = server.post(MAPS, &config_map("a")).await.status();
    (code, message.replace(&hook.url(), "URL"))
}

#[tokio::test]
async fn every_way_to_fail_has_its_message() {
    let server = TestServer::start().await;
    let hook = TestHook::start(|path, _| match path {
        "/teapot" => Reply::Raw(418, "short and stout".to_owned()),
        "/garbage" => Reply::Raw(200, "<html>".to_owned()),
        "/absent" => Reply::Raw(200, json!({"kind": "AdmissionReview"}).to_string()),
        "/uid" => Reply::Review(json!({"uid": "other", "allowed": true})),
        "/huge" => Reply::Huge(64 << 20),
        "/redirect" => Reply::Redirect,
        "/hang" => Reply::Hang,
        "/drip" => Reply::Drip,
        "/untyped" => Reply::Review(json!({"allowed": true, "patch": "W10="})),
        "/base64" => {
            Reply::Review(json!({"allowed": true, "patch": "?", "patchType": "JSONPatch"}))
        }
        "/nolist" => patch(&json!({"op": "add"})),
        "/nopath" => patch(&json!([{"op": "remove", "path": "/data/missing"}])),
        "/type" => patch(&json!([{"op": "replace", "path": "/kind", "value": "Secret"}])),
        _ => patch(&json!([{"op": "replace", "path": "/data", "value": 7}])),
    })
    .await;
    let calling = |name: &str| {
        format!("Internal error occurred: failed calling webhook \"{name}.hooks.example.com\": ")
    };
    let expected = |path: &str| -> String {
        let name = path.trim_start_matches('/');
        let begin = calling(name);
        match name {
            "teapot" => format!(
                "{begin}failed to call webhook: the server responded with the status code 418"
            ),
            "garbage" => format!(
                "{begin}failed to call webhook: couldn't get version/kind; json parse error: "
            ),
            "absent" => {
                format!("{begin}received invalid webhook response: webhook response was absent")
            }
            "uid" => format!("{begin}received invalid webhook response: expected response.uid="),
            "huge" => format!(
                "{begin}failed to call webhook: Post \"URL/huge?timeout=1s\": the answer has more than"
            ),
            "redirect" => format!(
                "{begin}failed to call webhook: the server responded with the status code 307"
            ),
            "hang" | "drip" => {
                format!(
                    "{begin}failed to call webhook: Post \"URL{path}?timeout=1s\": context deadline exceeded"
                )
            }
            "untyped" => format!(
                "{begin}received invalid webhook response: webhook returned response.patch but not response.patchType"
            ),
            "base64" => format!("{begin}failed to call webhook: illegal base64 data"),
            "nolist" => format!("{begin}received undecodable patch in webhook response: "),
            _ => "Internal error occurred: ".to_owned(),
        }
    };
    for path in [
        "/teapot",
        "/garbage",
        "/absent",
        "/uid",
        "/huge",
        "/redirect",
        "/hang",
        "/drip",
        "/untyped",
        "/base64",
        "/nolist",
        "/nopath",
        "/type",
        "/wrongtype",
    ] {
        let mut webhook = hook.webhook(path, "", &["configmaps"]);
        webhook["timeoutSeconds"] = json!(1);
        configure(&server, "Mutating", "one", &[webhook]).await;
        let (code, message) = failure(&server, &hook).await;
        assert_eq!(code, 500, "{path}: {message}");
        let wanted = expected(path);
        assert!(
            message.starts_with(&wanted),
            "{path}: {message}\nwanted {wanted}"
        );
        // Everybody else is unharmed.
        let secret = json!({"metadata": {"name": path.trim_start_matches('/')}});
        server.post(SECRETS, &secret).await.expect(201);
        let configuration =
            "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/one";
        server.delete(configuration).await.expect(200);
    }
}

#[tokio::test]
async fn a_patch_cannot_change_what_is_deleted() {
    let server = TestServer::start().await;
    server.post(MAPS, &config_map("a")).await.expect(201);
    let hook = TestHook::start(|_, _| patch(&json!([{"op": "remove", "path": "/data"}]))).await;
    configure(
        &server,
        "Mutating",
        "all",
        &[hook.webhook("/patch", "", &["configmaps"])],
    )
    .await;
    let (code, _, message) = server.delete(&format!("{MAPS}/a")).await.status();
    assert_eq!(code, 500);
    assert_eq!(
        message,
        "Internal error occurred: admission webhook \"patch.hooks.example.com\" attempted to modify the object, \
         which is not supported for this operation"
    );
}

#[tokio::test]
async fn a_server_that_is_not_there_or_not_trusted_fails_the_call() {
    let server = TestServer::start().await;
    let (hook, other) = (
        TestHook::start(|_, _| allow()).await,
        TestHook::start(|_, _| allow()).await,
    );
    let mut webhook = hook.webhook("/hook", "", &["configmaps"]);
    webhook["clientConfig"]["caBundle"] = other.at("/")["caBundle"].clone();
    configure(&server, "Validating", "untrusted", &[webhook.clone()]).await;
    let (code, message) = failure(&server, &hook).await;
    assert_eq!(code, 500);
    assert!(
        message.contains("Post \"URL/hook?timeout=10s\": "),
        "{message}"
    );
    assert!(
        message.contains("x509: certificate signed by unknown authority"),
        "{message}"
    );
    webhook["clientConfig"] = json!({"url": "https://127.0.0.1:1/hook"});
    let mut ignoring = webhook.clone();
    ignoring["failurePolicy"] = json!("Ignore");
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/untrusted";
    server.delete(path).await.expect(200);
    configure(&server, "Validating", "gone", &[ignoring]).await;
    server.post(MAPS, &config_map("a")).await.expect(201);
    configure(&server, "Mutating", "gone", &[webhook]).await;
    let (code, _, message) = server.post(MAPS, &config_map("b")).await.status();
    assert_eq!(code, 500);
    assert_eq!(
        message,
        "Internal error occurred: failed calling webhook \"hook.hooks.example.com\": failed to call webhook: \
         Post \"https://127.0.0.1:1/hook?timeout=10s\": dial tcp 127.0.0.1:1: connect: connection refused"
    );
}

#[tokio::test]
async fn dry_runs_need_webhooks_without_side_effects() {
    let server = TestServer::start().await;
    let hook = TestHook::start(|_, _| allow()).await;
    let path = format!("{MAPS}?dryRun=All");
    let webhook = hook.webhook("/dry", "", &["configmaps"]);
    configure(&server, "Mutating", "all", std::slice::from_ref(&webhook)).await;
    server.post(&path, &config_map("a")).await.expect(201);
    let request = &hook.requests()[0];
    assert_eq!(request["dryRun"], true);
    assert_eq!(request["options"]["dryRun"], json!(["All"]));
    // `Some` can only be stored by older versions of the API, so `Unknown` is refused when it is written.
    let mut some = webhook;
    some["sideEffects"] = json!("Some");
    let configuration = json!({"metadata": {"name": "some"}, "webhooks": [some]});
    let all = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    server.post(all, &configuration).await.expect(422);
}

#[tokio::test]
async fn validating_hooks_are_called_at_the_same_time_and_not_beyond_the_request() {
    let server = TestServer::start().await;
    let hook = TestHook::start(|_, _| Reply::Hang).await;
    let webhooks: Vec<Value> = (0..15)
        .map(|at| {
            let mut webhook = hook.webhook(&format!("/slow{at}"), "", &["configmaps"]);
            webhook["timeoutSeconds"] = json!(2);
            webhook["failurePolicy"] = json!("Ignore");
            webhook
        })
        .collect();
    configure(&server, "Validating", "all", &webhooks).await;
    let began = Instant::now();
    server.post(MAPS, &config_map("a")).await.expect(201);
    // One after the other, they would take 30 seconds.
    assert!(
        began.elapsed() < Duration::from_secs(25),
        "{:?}",
        began.elapsed()
    );
    // The time of the request limits all hooks together.
    let mut slow = hook.webhook("/slow", "", &["configmaps"]);
    slow["timeoutSeconds"] = json!(30);
    configure(&server, "Mutating", "slow", &[slow]).await;
    let began = Instant::now();
    let answer = server
        .post(&format!("{MAPS}?timeout=2s"), &config_map("b"))
        .await;
    assert!(matches!(answer.code, 500 | 504), "{}", answer.text());
    // The hook alone may take 30 seconds.
    assert!(began.elapsed() < Duration::from_secs(25));
    let targets: Vec<String> = hook
        .calls()
        .iter()
        .map(|call| call.target.clone())
        .collect();
    assert!(
        targets.contains(&"/slow?timeout=2s".to_owned()),
        "{targets:?}"
    );
}

#[tokio::test]
async fn waiting_writes_hold_no_seats() {
    let server = TestServer::builder()
        .with(|server| server.max_in_flight(4, 4).without_flow_control())
        .listening()
        .start()
        .await;
    let hook = TestHook::start(|_, _| Reply::Hang).await;
    let mut webhook = hook.webhook("/hang", "", &["configmaps"]);
    webhook["timeoutSeconds"] = json!(30);
    configure(&server, "Validating", "all", &[webhook]).await;
    // Only requests over sockets take seats. A few write at a time, so that none is refused.
    let entering = tokio::sync::Semaphore::new(1);
    let post = async |path: &str, object: &Value| {
        let mut connection = Connection::http1(&server, As::Admin).await;
        let headers = [("content-type", "application/json")];
        connection
            .send("POST", path, &headers, object.to_string())
            .await
    };
    let writes = (0..40).map(|at| {
        let (post, hook, entering) = (&post, &hook, &entering);
        async move {
            let turn = entering.acquire().await;
            let entered = async {
                while hook.calls().len() <= at {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                drop(turn);
            };
            let map = config_map(&format!("m{at}"));
            tokio::join!(post(MAPS, &map), entered).0
        }
    });
    let mut writes = std::pin::pin!(futures_util::future::join_all(writes));
    let others = async {
        while hook.calls().len() < 40 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        for at in 0..10 {
            let secret = json!({"metadata": {"name": format!("s{at}")}});
            post(SECRETS, &secret).await.expect(201);
        }
    };
    tokio::select! {
        _ = &mut writes => panic!("the hooks answered"),
        () = others => {}
    }
}
