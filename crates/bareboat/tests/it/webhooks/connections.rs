//! Connections to subresources reach webhooks with the options of the connection.

use super::hook::{TestHook, allow, configure, deny, patch};
use crate::support::{Requests, json};
use bareboat::api::kind::{Subresource, Verb};
use bareboat::server::{Body, Connector, Response};
use bareboat_testing::TestServer;

#[tokio::test]
async fn an_exec_is_reviewed_with_its_options() {
    let server = TestServer::builder()
        .with(|builder| {
            let exec = Subresource {
                response: Some(("".into(), "v1".into(), "PodExecOptions".into())),
                ..Subresource::connection("exec", &[Verb::Create, Verb::Get])
            };
            builder.subresource("", "pods", &exec).connect(
                "",
                "pods",
                "exec",
                Connector::program(|_| async { Ok(Response::new(Body::full("connected"))) }),
            )
        })
        .start()
        .await;
    let hook = TestHook::start(
        |_, request| match request["object"]["command"][0].as_str() {
            Some("sh") => deny(&json!({"code": 403, "message": "no shells"})),
            _ => allow(),
        },
    )
    .await;
    configure(
        &server,
        "Validating",
        "all",
        &[hook.webhook("/exec", "", &["pods/exec"])],
    )
    .await;
    let pods = "/api/v1/namespaces/default/pods";
    let pod =
        json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    server.post(pods, &pod).await.expect(201);
    let path = format!("{pods}/p/exec?command=ls&command=-l&stdout=true&tty=false&container=c");
    let answer = server.post(&path, &json!({})).await;
    // The hook admitted it; what answers then is not the matter here.
    assert_ne!(answer.code, 403, "{}", answer.text());
    let request = hook.requests().remove(0);
    assert_eq!(request["operation"], "CONNECT");
    assert_eq!(
        request["kind"],
        json!({"group": "", "version": "v1", "kind": "PodExecOptions"})
    );
    assert_eq!(
        request["resource"],
        json!({"group": "", "version": "v1", "resource": "pods"})
    );
    assert_eq!(
        (&request["subResource"], &request["name"]),
        (&json!("exec"), &json!("p"))
    );
    assert_eq!(
        request["object"],
        json!({"apiVersion": "v1", "kind": "PodExecOptions", "command": ["ls", "-l"], "container": "c", "stdout": true})
    );
    assert_eq!(
        (&request["oldObject"], &request["options"]),
        (&json!(null), &json!(null))
    );
    let path = format!("{pods}/p/exec?command=sh");
    let (code, _, message) = server.post(&path, &json!({})).await.status();
    assert_eq!(code, 403);
    assert_eq!(
        message,
        "admission webhook \"exec.hooks.example.com\" denied the request: no shells"
    );
}

const PODS: &str = "/api/v1/namespaces/default/pods";

/// Starts a server with a pod whose subresource `echo` has these options, and answers with its query.
async fn echo(options: &'static str) -> TestServer {
    let server = TestServer::builder()
        .with(move |builder| {
            let part = Subresource {
                response: Some(("".into(), "v1".into(), options.into())),
                ..Subresource::connection("echo", &[Verb::Get])
            };
            let connector = Connector::program(|visit| async move {
                let query = visit.request.uri().query().unwrap_or("").to_owned();
                Ok(Response::new(Body::full(query)))
            });
            builder
                .subresource("", "pods", &part)
                .connect("", "pods", "echo", connector)
        })
        .start()
        .await;
    let pod =
        json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    server.post(PODS, &pod).await.expect(201);
    server
}

#[tokio::test]
async fn a_connection_has_the_options_that_a_webhook_changed() {
    let server = echo("PodExecOptions").await;
    let hook = TestHook::start(|_, request| match request["object"]["container"].as_str() {
        Some("change") => patch(&json!([
            {"op": "replace", "path": "/command", "value": ["ls", "a b&c"]},
            {"op": "remove", "path": "/stdin"},
            {"op": "add", "path": "/tty", "value": true},
        ])),
        Some("break") => patch(&json!([{"op": "add", "path": "/tty", "value": {"a": 1}}])),
        Some("confuse") => patch(&json!([{"op": "add", "path": "/tty", "value": "false"}])),
        Some("invent") => patch(&json!([{"op": "add", "path": "/other", "value": "x"}])),
        _ => allow(),
    })
    .await;
    let webhook = hook.webhook("/change", "", &["pods/echo"]);
    configure(&server, "Mutating", "all", &[webhook]).await;
    let run = async |query: &str| server.get(&format!("{PODS}/p/echo?{query}")).await;
    let sent = "command=sh&command=-c&stdin=true&container=change&more=1%2B1";
    assert_eq!(
        run(sent).await.expect(200).text(),
        "container=change&more=1%2B1&command=ls&command=a%20b%26c&stdin=false&tty=true"
    );
    // What no webhook changes stays as it was sent.
    let sent = "command=sh&container=keep&stdin=1&tty=false";
    assert_eq!(run(sent).await.expect(200).text(), sent);
    for name in ["break", "confuse", "invent"] {
        let refused = run(&format!("command=sh&container={name}")).await;
        assert_eq!(
            refused.expect(500).status().2,
            "Internal error occurred: admission changed the options of the connection in a way that is not supported",
            "{name}"
        );
    }
}

#[tokio::test]
async fn ports_with_commas_are_reviewed_one_by_one() {
    let server = echo("PodPortForwardOptions").await;
    let hook = TestHook::start(|_, _| allow()).await;
    let webhook = hook.webhook("/ports", "", &["pods/echo"]);
    configure(&server, "Validating", "all", &[webhook]).await;
    let path = format!("{PODS}/p/echo?ports=22,%2080&ports=443");
    server.get(&path).await.expect(200);
    assert_eq!(hook.requests()[0]["object"]["ports"], json!([22, 80, 443]));
}

#[tokio::test]
async fn a_connection_cannot_be_a_dry_run() {
    let server = echo("PodExecOptions").await;
    for path in [
        "p/echo?command=ls&dryRun=All",
        "none/exec?command=ls&dryRun=All",
        "p/proxy?dryRun",
    ] {
        let refused = server.get(&format!("{PODS}/{path}")).await.expect(400);
        assert_eq!(refused.status().2, "dryRun is not supported", "{path}");
    }
    // A log is read, not connected to.
    let log = server.get(&format!("{PODS}/p/log?dryRun=All")).await;
    log.expect(204);
}

#[tokio::test]
async fn a_connection_never_matches_an_object_selector() {
    let server = echo("PodExecOptions").await;
    let hook = TestHook::start(|_, _| deny(&json!({"code": 403, "message": "no"}))).await;
    let mut webhook = hook.webhook("/select", "", &["pods/echo"]);
    webhook["objectSelector"] =
        json!({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]});
    configure(&server, "Validating", "all", &[webhook]).await;
    let path = format!("{PODS}/p/echo?command=ls");
    server.get(&path).await.expect(200);
    assert!(hook.requests().is_empty());
}
