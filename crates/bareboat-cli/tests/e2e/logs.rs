//! The log: what it explains, in which form, and what must never be in it: tokens, keys, and what secrets hold.

use crate::process::run;
use crate::server::Home;
use crate::tools;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use std::process::Command;

const TOKEN: &str = "t0ken-that-nobody-may-read";
const PASSWORD: &str = "passw0rd-that-nobody-may-read";
/// The password, base64-encoded as on the wire.
const ENCODED: &str = "cGFzc3cwcmQtdGhhdC1ub2JvZHktbWF5LXJlYWQ";

#[tokio::test(flavor = "multi_thread")]
async fn tokens_keys_and_secrets_are_in_no_log() {
    let tokens = tempfile::tempdir().unwrap();
    let file = tokens.path().join("tokens.csv");
    std::fs::write(&file, format!("{TOKEN},ann,1,\"system:masters\"\n")).unwrap();
    let home = Home::with(&[
        "--log",
        "trace",
        "--token-file",
        file.to_str().expect("a path in UTF-8"),
    ]);
    let server = home.serve();
    let secrets: Api<Secret> = Api::namespaced(home.client().await, "default");
    let secret: Secret = serde_json::from_value(json!({
        "metadata": { "name": "vault" }, "stringData": { "password": PASSWORD },
    }))
    .unwrap();
    secrets
        .create(&PostParams::default(), &secret)
        .await
        .unwrap();
    secrets.list(&ListParams::default()).await.unwrap();
    // The refused value is shown to its sender only.
    let wrong = json!({ "data": { "password": { "deep": PASSWORD } } });
    let refused = secrets
        .patch("vault", &PatchParams::default(), &Patch::Merge(wrong))
        .await;
    assert!(refused.is_err());
    if let Some(kubectl) = tools::kubectl() {
        for (token, right) in [(TOKEN, true), ("another-t0ken-nobody-may-read", false)] {
            let output = run(
                Command::new(&kubectl)
                    .arg(format!("--server=https://{}", home.address()))
                    .arg(format!(
                        "--certificate-authority={}",
                        home.data().join("certificates/ca.crt").display()
                    ))
                    .args([
                        "--kubeconfig=/dev/null",
                        "get",
                        "secret",
                        "vault",
                        "-o=yaml",
                    ])
                    .arg(format!("--token={token}"))
                    .env("HOME", home.path()),
                "",
            );
            assert_eq!(output.status.success(), right, "{}", output.all());
            assert_eq!(output.stdout.contains(ENCODED), right);
        }
    }
    let greeting = server.greeting.clone();
    let (status, log) = tokio::task::spawn_blocking(|| server.stop()).await.unwrap();
    assert!(status.success());
    assert!(log.lines().count() > 20, "at trace there is a lot to read");
    let log = format!("{greeting}{log}");
    for secret in [TOKEN, "another-t0ken-nobody-may-read", PASSWORD, ENCODED] {
        let found = log.lines().find(|line| line.contains(secret));
        assert!(found.is_none(), "{secret} is logged: {found:?}");
    }
    for key in ["ca", "server", "admin"] {
        let path = home.data().join(format!("certificates/{key}.key"));
        let pem = std::fs::read_to_string(path).unwrap();
        for line in pem.lines().filter(|line| !line.starts_with("-----")) {
            assert!(!log.contains(line), "the key of {key} is logged");
        }
    }
    assert!(!log.contains("PRIVATE KEY"));
}

#[test]
fn only_their_owner_may_read_keys_and_the_kubeconfig() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::new();
    let _server = home.serve();
    for file in [
        "admin.kubeconfig",
        "certificates/ca.key",
        "certificates/server.key",
        "certificates/admin.key",
        "state.db",
        "state.db-wal",
    ] {
        let found = std::fs::metadata(home.data().join(file)).unwrap();
        let mode = found.permissions().mode() & 0o777;
        assert_eq!(mode & 0o077, 0, "{file} has mode {mode:o}");
    }
}

/// Sends a request as the administrator; tells the code of the answer.
async fn send(client: &kube::Client, request: http::Request<Vec<u8>>) -> u16 {
    let answer = client.request_text(request).await;
    match answer {
        Ok(_) => 200,
        Err(kube::Error::Api(status)) => status.code,
        Err(other) => panic!("{other}"),
    }
}

fn post(path: &str, audit_id: &str, body: &Value) -> http::Request<Vec<u8>> {
    http::Request::post(path)
        .header("content-type", "application/json")
        .header("audit-id", audit_id)
        .body(body.to_string().into_bytes())
        .unwrap()
}

fn get(path: &str, audit_id: &str) -> http::request::Builder {
    http::Request::get(path).header("audit-id", audit_id)
}

/// The lines of a log in JSON that belong to a request.
fn lines_of<'a>(log: &'a [Value], audit_id: &str) -> Vec<&'a Value> {
    let named = |value: &Value| value.as_str() == Some(audit_id);
    log.iter()
        .filter(|line| named(&line["audit_id"]) || named(&line["span"]["audit_id"]))
        .collect()
}

/// A definition of two versions whose converter cannot be reached.
fn unconvertible() -> Value {
    let schema = json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "knots.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "plural": "knots", "kind": "Knot" },
            "versions": [
                { "name": "v1", "served": true, "storage": true, "schema": schema },
                { "name": "v2", "served": true, "storage": false, "schema": schema },
            ],
            "conversion": { "strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v1"],
                "clientConfig": { "url": "https://127.0.0.1:1/convert" },
            } },
        },
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_explains_refused_and_failed_requests_in_json() {
    let home = Home::with(&["--log=bareboat_server=debug", "--log-format=json"]);
    let server = home.serve();
    let client = home.client().await;
    let maps = "/api/v1/namespaces/default/configmaps";

    let stranger = get("/api/v1/secrets", "by-authorization").header("impersonate-user", "ann");
    assert_eq!(send(&client, stranger.body(vec![]).unwrap()).await, 403);

    let data = json!({ "planted": PASSWORD });
    let body = json!({ "metadata": { "name": "Not_A_Name" }, "data": data });
    assert_eq!(send(&client, post(maps, "by-validation", &body)).await, 422);

    let nowhere = "/api/v1/namespaces/nowhere/configmaps";
    let body = json!({ "metadata": { "name": "a" }, "data": data });
    assert_eq!(
        send(&client, post(nowhere, "by-admission", &body)).await,
        404
    );

    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(
        send(&client, post(crds, "define", &unconvertible())).await,
        200
    );
    let knots = |version: &str| format!("/apis/example.com/{version}/namespaces/default/knots");
    let knot = json!({
        "apiVersion": "example.com/v1", "kind": "Knot",
        "metadata": { "name": "a" }, "spec": { "password": PASSWORD },
    });
    let mut tries = 0;
    while send(&client, post(&knots("v1"), "store", &knot)).await != 200 {
        tries += 1;
        assert!(tries < 1000, "the definition is never served");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let read = get(&format!("{}/a", knots("v2")), "by-failure");
    assert_eq!(send(&client, read.body(vec![]).unwrap()).await, 500);

    let (status, log) = tokio::task::spawn_blocking(|| server.stop()).await.unwrap();
    assert!(status.success());
    assert!(!log.contains(PASSWORD), "a body is logged");
    let log: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();

    let refusal = |audit_id: &str| {
        let lines = lines_of(&log, audit_id);
        let found = lines
            .iter()
            .find(|line| line["message"] == "request refused");
        (*found.unwrap_or_else(|| panic!("{audit_id}: {lines:#?}"))).clone()
    };
    let line = refusal("by-authorization");
    assert_eq!(line["stage"], "authorization");
    assert_eq!(line["span"]["user"], "ann");
    assert_eq!(line["span"]["verb"], "list");
    assert_eq!(line["span"]["resource"], "secrets");
    let why = line["status"].as_str().unwrap();
    assert!(why.contains("User \"ann\" cannot list resource"), "{line}");
    let line = refusal("by-validation");
    assert_eq!(line["stage"], "validation");
    assert_eq!(line["causes"], "metadata.name FieldValueInvalid");
    let line = refusal("by-admission");
    assert_eq!(line["stage"], "mutating admission");
    let lines = lines_of(&log, "by-admission");
    let plugin = lines.iter().find(|line| line["plugin"].is_string());
    assert_eq!(
        plugin.unwrap()["plugin"],
        "NamespaceLifecycle",
        "{lines:#?}"
    );
    let passed: Vec<&str> = lines.iter().filter_map(|it| it["stage"].as_str()).collect();
    assert_eq!(passed[..2], ["parsed", "authenticated"]);
    assert!(passed.contains(&"authorized") && passed.contains(&"read"));

    let lines = lines_of(&log, "by-failure");
    let failures: Vec<_> = lines.iter().filter(|it| it["level"] == "ERROR").collect();
    assert_eq!(failures.len(), 1, "{lines:#?}");
    let causes = failures[0]["causes"].as_str().unwrap();
    assert!(causes.contains("127.0.0.1:1"), "{causes}");
    assert_eq!(failures[0]["code"], 500);
    assert_eq!(failures[0]["resource"], "knots.example.com");
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_requests_are_logged_with_the_times_of_their_stages() {
    // Every request is slow.
    let home = Home::with(&["--slow-request-threshold=1ns"]);
    let server = home.serve();
    let client = home.client().await;
    let read = get("/api/v1/namespaces/default", "slow-one");
    assert_eq!(send(&client, read.body(vec![]).unwrap()).await, 200);
    let (_, log) = tokio::task::spawn_blocking(|| server.stop()).await.unwrap();
    let line = log.lines().find(|line| line.contains("slow-one")).unwrap();
    for word in [
        "slow request",
        "verb=\"get\"",
        "authenticated=",
        "authorized=",
        "answered=",
    ] {
        assert!(line.contains(word), "{word} is not in {line}");
    }
}
