//! Every standard error: code, reason, message and details, verbatim.

use crate::support::*;
use bareboat_testing::TestServer;

struct Case {
    method: &'static str,
    path: &'static str,
    headers: &'static [(&'static str, &'static str)],
    body: &'static str,
    code: u16,
    reason: &'static str,
    message: &'static str,
    details: Value,
}

fn case(
    asked: &'static str,
    body: &'static str,
    code: u16,
    reason: &'static str,
    message: &'static str,
    details: Value,
) -> Case {
    let (method, path) = asked.split_once(' ').unwrap();
    Case {
        method,
        path,
        headers: &[],
        body,
        code,
        reason,
        message,
        details,
    }
}

fn typed(media: &'static [(&'static str, &'static str)], case: Case) -> Case {
    Case {
        headers: media,
        ..case
    }
}

const M: &str = "/api/v1/namespaces/default/configmaps";

fn cases() -> Vec<Case> {
    let map = json!({"kind": "configmaps", "name": "a"});
    let field = |kind: &str, name: &str, reason: &str, message: &str, field: &str| {
        let mut details = json!({"kind": kind, "causes": [{"reason": reason, "message": message, "field": field}]});
        if !name.is_empty() {
            details["name"] = json!(name);
        }
        details
    };
    let options = |kind: &str, reason: &str, message: &str, at: &str| json!({"group": "meta.k8s.io", "kind": kind, "causes": [{"reason": reason, "message": message, "field": at}]});
    vec![
        case(
            "GET /api/v1/namespaces/default/configmaps/none",
            "",
            404,
            "NotFound",
            "configmaps \"none\" not found",
            json!({"kind": "configmaps", "name": "none"}),
        ),
        case(
            "GET /apis/apps/v1/namespaces/default/deployments/none",
            "",
            404,
            "NotFound",
            "deployments.apps \"none\" not found",
            json!({"group": "apps", "kind": "deployments", "name": "none"}),
        ),
        case(
            "GET /apis/apps/v1/namespaces/default/ships",
            "",
            404,
            "NotFound",
            "the server could not find the requested resource",
            json!({}),
        ),
        case(
            "GET /api/v1/namespaces/default/configmaps/a/status",
            "",
            404,
            "NotFound",
            "the server could not find the requested resource",
            json!({}),
        ),
        case(
            "POST /api/v1/namespaces/gone/configmaps",
            r#"{"metadata":{"name":"a"}}"#,
            404,
            "NotFound",
            "namespaces \"gone\" not found",
            json!({"kind": "namespaces", "name": "gone"}),
        ),
        case(
            "PUT /api/v1/namespaces/default/configmaps/none",
            r#"{"metadata":{"name":"none"}}"#,
            404,
            "NotFound",
            "configmaps \"none\" not found",
            json!({"kind": "configmaps", "name": "none"}),
        ),
        case(
            "POST /api/v1/namespaces/default/configmaps/a",
            "{}",
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
            json!({}),
        ),
        case(
            "DELETE /api/v1/namespaces",
            "",
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
            json!({}),
        ),
        case(
            "POST /api/v1/namespaces/default/configmaps",
            r#"{"metadata":{"name":"a"}}"#,
            409,
            "AlreadyExists",
            "configmaps \"a\" already exists",
            map.clone(),
        ),
        case(
            "PUT /api/v1/namespaces/default/configmaps/a",
            r#"{"metadata":{"name":"a","resourceVersion":"1"}}"#,
            409,
            "Conflict",
            "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes to the latest version and try again",
            map,
        ),
        case(
            "POST /api/v1/namespaces/default/configmaps",
            r#"{"metadata":{"name":"b","namespace":"other"}}"#,
            400,
            "BadRequest",
            "the namespace of the provided object does not match the namespace sent on the request",
            Value::Null,
        ),
        case(
            "PUT /api/v1/namespaces/default/configmaps/a",
            r#"{"metadata":{"name":"b"}}"#,
            400,
            "BadRequest",
            "the name of the object (b) does not match the name on the URL (a)",
            Value::Null,
        ),
        case(
            "POST /api/v1/namespaces/default/configmaps",
            r#"{"apiVersion":"v2","kind":"ConfigMap","metadata":{"name":"b"}}"#,
            400,
            "BadRequest",
            "ConfigMap in version \"v2\" cannot be handled as a ConfigMap: …",
            Value::Null,
        ),
        case(
            "POST /api/v1/namespaces/default/configmaps",
            r#"{"metadata":{"name":"b","resourceVersion":"5"}}"#,
            500,
            "",
            "resourceVersion should not be set on objects to be created",
            Value::Null,
        ),
        case(
            "GET /api/v1/namespaces/default/configmaps?labelSelector=a%3D%3D%3Db",
            "",
            400,
            "BadRequest",
            "unable to parse requirement: found '=', expected: identifier",
            Value::Null,
        ),
        case(
            "GET /api/v1/namespaces/default/configmaps?fieldSelector=spec.x%3D1",
            "",
            400,
            "BadRequest",
            "\"spec.x\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
            Value::Null,
        ),
        case(
            "GET /api/v1/namespaces/default/configmaps?timeout=soon",
            "",
            400,
            "BadRequest",
            "invalid timeout specified in the request URL - …",
            Value::Null,
        ),
        case(
            "POST /api/v1/namespaces/default/configmaps",
            r#"{"metadata":{"name":"-"}}"#,
            422,
            "Invalid",
            "ConfigMap \"-\" is invalid: …",
            Value::Null,
        ),
        case(
            "POST /api/v1/namespaces/default/configmaps",
            "{}",
            422,
            "Invalid",
            "ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName is required",
            field(
                "ConfigMap",
                "",
                "FieldValueRequired",
                "Required value: name or generateName is required",
                "metadata.name",
            ),
        ),
        case(
            "POST /api/v1/namespaces/default/configmaps?dryRun=Some",
            r#"{"metadata":{"name":"b"}}"#,
            422,
            "Invalid",
            "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"Some\"]: supported values: \"All\"",
            options(
                "CreateOptions",
                "FieldValueNotSupported",
                "Unsupported value: [\"Some\"]: supported values: \"All\"",
                "dryRun",
            ),
        ),
        typed(
            &[("content-type", "application/merge-patch+json")],
            case(
                "PATCH /api/v1/namespaces/default/configmaps/a?force=true",
                "{}",
                422,
                "Invalid",
                "PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden: may not be specified for non-apply patch",
                options(
                    "PatchOptions",
                    "FieldValueForbidden",
                    "Forbidden: may not be specified for non-apply patch",
                    "force",
                ),
            ),
        ),
        typed(
            &[("content-type", "application/apply-patch+yaml")],
            case(
                "PATCH /api/v1/namespaces/default/configmaps/a",
                "{}",
                422,
                "Invalid",
                "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch",
                options(
                    "PatchOptions",
                    "FieldValueRequired",
                    "Required value: is required for apply patch",
                    "fieldManager",
                ),
            ),
        ),
        typed(
            &[("accept", "text/html")],
            case(
                "GET /api/v1/namespaces/default/configmaps",
                "",
                406,
                "NotAcceptable",
                "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf…",
                Value::Null,
            ),
        ),
        typed(
            &[("content-type", "text/plain")],
            case(
                "POST /api/v1/namespaces/default/configmaps",
                "{}",
                415,
                "UnsupportedMediaType",
                "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf…",
                Value::Null,
            ),
        ),
        case(
            "DELETE /api/v1/namespaces/default",
            "",
            403,
            "Forbidden",
            "namespaces \"default\" is forbidden: this namespace may not be deleted",
            json!({"kind": "namespaces", "name": "default"}),
        ),
    ]
}

#[tokio::test]
async fn errors_are_what_clients_expect() {
    let server = TestServer::start().await;
    server.post(M, &config_map("a")).await.expect(201);
    for case in cases() {
        let asked = format!("{} {}", case.method, case.path);
        let answer = server
            .send(case.method, case.path, case.headers, case.body)
            .await;
        let (code, reason, message) = answer.status();
        assert_eq!(
            (code, reason.as_str()),
            (case.code, case.reason),
            "{asked}: {message}"
        );
        // An ellipsis replaces the variable rest of a message.
        match case.message.strip_suffix('…') {
            Some(start) => assert!(message.starts_with(start), "{asked}: {message}"),
            None => assert_eq!(message, case.message, "{asked}"),
        }
        let body = answer.json();
        assert_eq!(body["status"], "Failure");
        if !case.details.is_null() {
            assert_eq!(body["details"], case.details, "{asked}");
        }
        assert!(!answer.header("audit-id").is_empty());
        assert_eq!(answer.header("cache-control"), "no-cache, private");
    }
}

#[tokio::test]
async fn several_problems_are_reported_at_once() {
    let server = TestServer::start().await;
    let body =
        json!({"metadata": {"name": "Bad", "labels": {"-": "x y"}, "annotations": {"/": ""}}});
    let answer = server.post(M, &body).await.expect(422).json();
    let causes = answer["details"]["causes"].as_array().unwrap();
    assert!(causes.len() >= 3, "{answer}");
    assert!(
        text(&answer["message"]).starts_with("ConfigMap \"Bad\" is invalid: ["),
        "{answer}"
    );
    for cause in causes {
        assert!(text(&answer["message"]).contains(text(&cause["message"])));
    }
}

#[tokio::test]
async fn errors_have_the_requested_format() {
    let server = TestServer::start().await;
    let path = format!("{M}/none");
    let yaml = server.get_as(&path, "application/yaml").await.expect(404);
    assert!(yaml.text().contains("reason: NotFound"));
    let binary = server.get_as(&path, PROTOBUF).await.expect(404);
    assert_eq!(proto::open(&binary.bytes).0, "Status");
    let table = server.get_as(&path, TABLE).await.expect(404);
    assert_eq!(
        table.status().1,
        "NotFound",
        "a Status is never made a table"
    );
    let html = server.get_as(&path, "text/html").await;
    assert_eq!(html.status().0, 406);
}

#[tokio::test]
async fn unknown_paths_are_not_found_in_plain_text() {
    let server = TestServer::start().await;
    for path in [
        "/nope",
        "/apis/nope.example.com",
        "/apis/nope.example.com/v1",
        "/apis/nope.example.com/v1/things",
        "/apis/nope.example.com/v1/namespaces/x/things/y",
    ] {
        let answer = server.get(path).await.expect(404);
        assert_eq!(answer.text().trim_end(), "404 page not found", "{path}");
        assert_eq!(answer.header("content-type"), "text/plain; charset=utf-8");
    }
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_rejected() {
    let server = TestServer::start().await;
    let huge = vec![b' '; 3 * 1024 * 1024 + 1];
    let answer = server.send("POST", M, &[], huge).await.expect(413);
    let (_, reason, message) = answer.status();
    assert_eq!(reason, "RequestEntityTooLarge");
    assert_eq!(message, "Request entity too large: limit is 3145728");
    let many: Vec<Value> = (0..10_001)
        .map(|_| json!({"op": "test", "path": "/kind", "value": "ConfigMap"}))
        .collect();
    server.post(M, &config_map("a")).await.expect(201);
    server
        .patch(&format!("{M}/a"), JSON_PATCH, &Value::from(many))
        .await
        .expect(413);
}
