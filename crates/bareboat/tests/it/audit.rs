//! Audit: the events of a request, their content, and redaction.

mod modes;
mod redaction;
mod webhook;

use crate::socket::{As, Connection};
use crate::support::*;
use bareboat::api::Str;
use bareboat::api::admission::{Lookup, Mutator, Review};
use bareboat::api::kind::{BoxFuture, User};
use bareboat::server::audit::{Audit, AuditLog, Batching, Mode, Policy, Rotation};
use bareboat_testing::{Builder, TestServer};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

const SECRET: &str = "t0p-secret-of-the-audit";

/// An audit log in its own directory.
pub(crate) struct Log {
    _directory: TempDir,
    path: PathBuf,
    pub(crate) audit: Arc<Audit>,
}

pub(crate) fn policy(rules: &str) -> Policy {
    let text = format!("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: {rules}\n");
    Policy::parse(text.as_bytes()).unwrap()
}

impl Log {
    pub(crate) fn new(rules: &str) -> Log {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.log");
        let log = AuditLog::open(&path, Rotation::default()).unwrap();
        let audit = Audit::new(policy(rules)).log(log, Mode::Blocking, Batching::default());
        Log {
            _directory: directory,
            path,
            audit: Arc::new(audit),
        }
    }

    /// Makes a server write its events to this log.
    pub(crate) fn of(&self, builder: Builder) -> Builder {
        let audit = self.audit.clone();
        builder.with(move |builder| builder.audit(audit.clone()))
    }

    async fn start(&self) -> TestServer {
        self.of(TestServer::builder().without_controllers())
            .start()
            .await
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.path.clone()
    }

    pub(crate) fn text(&self) -> String {
        std::fs::read_to_string(&self.path).unwrap()
    }

    /// Returns the events of a request so far.
    pub(crate) fn events(&self, audit_id: &str) -> Vec<Value> {
        let text = self.text();
        let events = text.lines().map(|line| serde_json::from_str(line).unwrap());
        events
            .filter(|event: &Value| event["auditID"] == audit_id)
            .collect()
    }

    /// Waits for `many` events of a request and returns them.
    pub(crate) async fn eventually(&self, audit_id: &str, many: usize) -> Vec<Value> {
        soon(async {
            loop {
                let events = self.events(audit_id);
                if events.len() >= many {
                    return events;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await
    }
}

pub(crate) fn stages(events: &[Value]) -> Vec<&str> {
    let stages = events.iter().map(|event| event["stage"].as_str().unwrap());
    stages.collect()
}

/// Sends a request with an audit ID.
async fn send(server: &TestServer, id: &str, method: &str, path: &str, body: &Value) -> Answer {
    let body = match body {
        Value::Null => String::new(),
        body => body.to_string(),
    };
    let media = match method {
        "PATCH" => MERGE,
        _ => "application/json",
    };
    let headers = [("audit-id", id), ("content-type", media)];
    server.send(method, path, &headers, body).await
}

#[tokio::test]
async fn each_level_adds_to_what_is_recorded() {
    for (level, sent, answered) in [
        ("Metadata", false, false),
        ("Request", true, false),
        ("RequestResponse", true, true),
    ] {
        let log = Log::new(&format!("[{{level: {level}}}]"));
        let server = log.start().await;
        let map = config_map("a");
        send(&server, "create", "POST", MAPS, &map)
            .await
            .expect(201);
        let one = format!("{MAPS}/a");
        let change = json!({"data": {"a": "c"}});
        send(&server, "patch", "PATCH", &one, &change)
            .await
            .expect(200);
        send(&server, "get", "GET", &one, &Value::Null)
            .await
            .expect(200);
        send(&server, "list", "GET", MAPS, &Value::Null)
            .await
            .expect(200);
        let options =
            json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"});
        send(&server, "delete", "DELETE", &one, &options)
            .await
            .expect(200);

        let events = log.events("create");
        assert_eq!(stages(&events), ["RequestReceived", "ResponseComplete"]);
        let (received, complete) = (&events[0], &events[1]);
        assert_eq!(received["level"], level);
        assert_eq!(received["verb"], "create");
        assert_eq!(received["requestURI"], MAPS);
        assert_eq!(received["user"]["username"], "admin");
        assert!(received.get("responseStatus").is_none());
        assert!(received.get("requestObject").is_none());
        assert_eq!(complete["responseStatus"]["code"], 201);
        assert_eq!(
            complete["objectRef"],
            json!({"resource": "configmaps", "namespace": "default", "name": "a", "apiVersion": "v1"})
        );
        assert_eq!(
            complete["annotations"]["authorization.k8s.io/decision"],
            "allow"
        );
        for (id, body) in [("create", &map), ("patch", &change), ("delete", &options)] {
            let complete = &log.events(id)[1];
            let shown = complete.get("requestObject");
            assert_eq!(shown, Some(body).filter(|_| sent), "{level} {id}");
            assert_eq!(
                complete.get("responseObject").is_some(),
                answered,
                "{level} {id}"
            );
        }
        let read = &log.events("get")[1];
        assert_eq!(
            read["responseObject"]["data"]["a"] == "c",
            answered,
            "{read}"
        );
        assert!(read.get("requestObject").is_none());
        assert!(log.events("list")[1].get("responseObject").is_none());
    }
}

#[tokio::test]
async fn bodies_in_protobuf_are_recorded_as_objects() {
    let log = Log::new("[{level: RequestResponse}]");
    let server = log.start().await;
    server.post(MAPS, &config_map("a")).await.expect(201);
    let headers = [("audit-id", "read"), ("accept", PROTOBUF)];
    let answer = server
        .send("GET", &format!("{MAPS}/a"), &headers, "")
        .await
        .expect(200);
    assert!(answer.bytes.starts_with(b"k8s\0"));
    let shown = &log.events("read")[1]["responseObject"];
    assert_eq!(shown["kind"], "ConfigMap");
    assert_eq!(shown["data"]["a"], "b");

    // The same bytes as the body of a request.
    server.delete(&format!("{MAPS}/a")).await.expect(200);
    let headers = [("audit-id", "write"), ("content-type", PROTOBUF)];
    server
        .send("PUT", &format!("{MAPS}/a"), &headers, answer.bytes)
        .await
        .expect(404);
    let event = &log.events("write")[1];
    assert_eq!(event["requestObject"]["data"]["a"], "b");
    assert_eq!(event["responseStatus"]["reason"], "NotFound");
}

#[tokio::test]
async fn unmatched_and_omitted_requests_are_not_recorded() {
    let log = Log::new(
        "[{level: None, verbs: [get]}, {level: Metadata, omitStages: [RequestReceived], resources: [{resources: [configmaps]}]}]",
    );
    let server = log.start().await;
    send(&server, "get", "GET", MAPS, &Value::Null)
        .await
        .expect(200);
    send(&server, "other", "GET", "/api/v1/namespaces", &Value::Null)
        .await
        .expect(200);
    send(&server, "path", "GET", "/version", &Value::Null)
        .await
        .expect(200);
    send(&server, "create", "POST", MAPS, &config_map("a"))
        .await
        .expect(201);
    // A list is not a get.
    assert_eq!(stages(&log.events("get")), ["ResponseComplete"]);
    assert!(log.events("other").is_empty() && log.events("path").is_empty());
    assert_eq!(stages(&log.events("create")), ["ResponseComplete"]);
    // A new policy applies to the next request.
    log.audit
        .set_policy(policy("[{level: Metadata, nonResourceURLs: [/version]}]"));
    send(&server, "path", "GET", "/version", &Value::Null)
        .await
        .expect(200);
    send(&server, "again", "POST", MAPS, &config_map("b"))
        .await
        .expect(201);
    assert_eq!(
        stages(&log.events("path")),
        ["RequestReceived", "ResponseComplete"]
    );
    assert!(log.events("again").is_empty());
}

#[tokio::test]
async fn a_rejected_request_is_recorded_with_the_reason() {
    let log = Log::new("[{level: RequestResponse}]");
    let builder = TestServer::builder().default_roles();
    let server = log.of(builder).start().await;
    let ann = User {
        name: Str::new("ann"),
        ..User::default()
    };
    let ask = request("GET", "/api/v1/secrets", &[("audit-id", "forbidden")], "");
    let answer = server.call_as(ann, ask).await;
    assert_eq!(answer.status(), 403);
    let event = &log.events("forbidden")[1];
    assert_eq!(event["user"]["username"], "ann");
    assert_eq!(event["responseStatus"]["code"], 403);
    assert_eq!(event["responseStatus"]["reason"], "Forbidden");
    assert_eq!(
        event["annotations"]["authorization.k8s.io/decision"],
        "forbid"
    );

    let bad = json!({"metadata": {"name": "Not_A_Name"}});
    send(&server, "invalid", "POST", MAPS, &bad)
        .await
        .expect(422);
    let event = &log.events("invalid")[1];
    assert_eq!(event["responseStatus"]["code"], 422);
    assert_eq!(event["responseObject"]["kind"], "Status");
}

#[tokio::test]
async fn a_request_with_bad_credentials_is_recorded_once_without_them() {
    let log = Log::new("[{level: RequestResponse}]");
    let server = log.of(TestServer::builder()).listening().start().await;
    let mut connection = Connection::http1(&server, As::Nobody).await;
    let bearer = format!("Bearer {SECRET}");
    let headers = [
        ("audit-id", "stranger"),
        ("authorization", bearer.as_str()),
        ("x-forwarded-for", "10.1.2.3"),
        ("user-agent", "robot/1"),
    ];
    let answer = connection.send("GET", MAPS, &headers, "").await;
    answer.expect(401);
    let events = log.eventually("stranger", 1).await;
    assert_eq!(stages(&events), ["ResponseStarted"]);
    assert_eq!(events[0]["user"], json!({}));
    assert_eq!(events[0]["responseStatus"]["code"], 401);
    assert_eq!(events[0]["sourceIPs"], json!(["10.1.2.3", "127.0.0.1"]));
    assert_eq!(events[0]["userAgent"], "robot/1");
    let why = &events[0]["annotations"]["bareboat.dev/authentication-error"];
    assert!(why.is_string(), "{}", events[0]);
    soon(server.stop()).await;
    assert!(!log.text().contains(SECRET));
    assert_eq!(log.events("stranger").len(), 1);
}

#[tokio::test]
async fn an_impersonated_user_is_recorded_beside_the_real_one() {
    let log = Log::new("[{level: Metadata, users: [admin]}]");
    let server = log.start().await;
    let headers = [
        ("audit-id", "as-bob"),
        ("impersonate-user", "bob"),
        ("impersonate-group", "x"),
    ];
    server
        .send("GET", "/api/v1/pods", &headers, "")
        .await
        .expect(403);
    let events = log.events("as-bob");
    assert_eq!(stages(&events), ["RequestReceived", "ResponseComplete"]);
    assert!(events[0].get("impersonatedUser").is_none());
    assert_eq!(events[1]["user"]["username"], "admin");
    assert_eq!(events[1]["impersonatedUser"]["username"], "bob");
    assert_eq!(events[1]["impersonatedUser"]["groups"][0], "x");
}

#[tokio::test]
async fn a_watch_is_complete_when_it_ends() {
    let log = Log::new("[{level: RequestResponse}]");
    let server = log.start().await;
    let path = format!("{MAPS}?watch=true");
    let response = server
        .call(request("GET", &path, &[("audit-id", "watch")], ""))
        .await;
    assert_eq!(response.status(), 200);
    let events = log.events("watch");
    assert_eq!(stages(&events), ["RequestReceived", "ResponseStarted"]);
    assert_eq!(events[1]["verb"], "watch");
    drop(response);
    let events = log.eventually("watch", 3).await;
    assert_eq!(
        stages(&events),
        ["RequestReceived", "ResponseStarted", "ResponseComplete"]
    );
    assert_eq!(events[2]["responseStatus"]["code"], 200);
}

/// A mutator that panics at objects with this name.
struct Bomb;

impl Mutator for Bomb {
    fn name(&self) -> &'static str {
        "Bomb"
    }

    fn admit<'a>(
        &'a self,
        review: &'a mut Review<'_>,
        _lookup: &'a dyn Lookup,
    ) -> BoxFuture<'a, Result<(), bareboat::api::Status>> {
        let name = review.object.as_ref().map_or("", |object| object.name());
        assert_ne!(name, "bomb");
        review
            .audit_annotations
            .push(("bomb.example.com/looked".to_owned(), "yes".to_owned()));
        Box::pin(std::future::ready(Ok(())))
    }
}

#[tokio::test]
async fn a_panic_is_recorded_and_reported_with_the_audit_id() {
    let log = Log::new("[{level: Metadata}]");
    let builder = log.of(TestServer::builder().without_controllers());
    let server = builder.with(|builder| builder.mutator(Bomb)).start().await;
    let answer = send(&server, "boom", "POST", MAPS, &config_map("bomb"))
        .await
        .expect(500);
    let (_, reason, message) = answer.status();
    assert_eq!(
        (reason.as_str(), message.as_str()),
        ("InternalError", "internal error; audit-id boom")
    );
    let events = log.events("boom");
    assert_eq!(stages(&events), ["RequestReceived", "Panic"]);
    assert_eq!(events[1]["responseStatus"]["code"], 500);
    // The next request is served, and admission may add annotations.
    send(&server, "next", "POST", MAPS, &config_map("a"))
        .await
        .expect(201);
    let annotations = &log.events("next")[1]["annotations"];
    assert_eq!(annotations["bomb.example.com/looked"], "yes");
}

#[tokio::test]
async fn a_disconnected_client_has_a_complete_record() {
    let log = Log::new("[{level: Metadata, omitStages: [RequestReceived]}]");
    let server = log.start().await;
    // One poll is not enough for a write.
    let ask = request(
        "POST",
        MAPS,
        &[("audit-id", "gone")],
        config_map("a").to_string(),
    );
    let call = server.call(ask);
    assert!(futures_util::FutureExt::now_or_never(call).is_none());
    let events = log.eventually("gone", 1).await;
    assert_eq!(stages(&events), ["ResponseComplete"]);
}

#[tokio::test]
async fn a_deprecated_version_is_noted_with_the_release_that_removes_it() {
    let log = Log::new("[{level: Metadata}]");
    let server = log.start().await;
    for (plural, warning, release) in [
        (
            "ships",
            "example.com/v1 Ship is deprecated in v1.21+, unavailable in v1.25+",
            json!("1.25"),
        ),
        ("boats", "use something else", Value::Null),
    ] {
        let kind = plural.to_uppercase();
        let version = json!({
            "name": "v1", "served": true, "storage": true, "deprecated": true, "deprecationWarning": warning,
            "schema": {"openAPIV3Schema": {"type": "object"}},
        });
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.example.com")},
            "spec": {
                "group": "example.com", "scope": "Cluster",
                "names": {"plural": plural, "kind": kind}, "versions": [version],
            },
        });
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        server.post(definitions, &definition).await.expect(201);
        let path = format!("/apis/example.com/v1/{plural}");
        send(&server, plural, "GET", &path, &Value::Null)
            .await
            .expect(200);
        let events = log.eventually(plural, 2).await;
        let annotations = &events[1]["annotations"];
        assert_eq!(annotations["k8s.io/deprecated"], "true", "{plural}");
        assert_eq!(annotations["k8s.io/removed-release"], release, "{plural}");
    }
}
