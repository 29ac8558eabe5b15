//! Redaction: events contain no secrets and tokens, in any format.

use super::*;
use bareboat::service_accounts::{ServiceAccounts, TokenSettings};

#[tokio::test]
async fn secrets_and_tokens_are_always_redacted() {
    let log = Log::new("[{level: RequestResponse}]");
    let builder = TestServer::builder().token(SECRET, "robot", &[]);
    let key = rcgen::KeyPair::generate().unwrap().serialize_pem();
    let accounts = ServiceAccounts::new(&key, &[], TokenSettings::default()).unwrap();
    let builder = builder.with(move |builder| accounts.install(builder));
    let server = log.of(builder).start().await;
    let secrets = "/api/v1/namespaces/default/secrets";
    let encoded = "dDBwLXNlY3JldC1vZi10aGUtYXVkaXQ=";
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": SECRET,
        }},
        "stringData": {"password": SECRET},
    });
    send(&server, "create", "POST", secrets, &secret)
        .await
        .expect(201);
    let one = format!("{secrets}/s");
    send(&server, "get", "GET", &one, &Value::Null)
        .await
        .expect(200);
    let headers = [("audit-id", "table"), ("accept", TABLE)];
    server
        .send("GET", &format!("{one}?includeObject=Object"), &headers, "")
        .await
        .expect(200);
    let headers = [("audit-id", "protobuf"), ("accept", PROTOBUF)];
    server.send("GET", &one, &headers, "").await.expect(200);
    let wrong = json!({"data": {"password": {"deep": SECRET}}});
    let refused = send(&server, "invalid", "PATCH", &one, &wrong).await;
    assert!(refused.code >= 400);
    let step = json!([{"op": "add", "path": "/data/password", "value": encoded}]);
    let headers = [("audit-id", "steps"), ("content-type", JSON_PATCH)];
    server
        .send("PATCH", &one, &headers, step.to_string())
        .await
        .expect(200);
    let headers = [("audit-id", "malformed")];
    server
        .send("POST", secrets, &headers, format!("{SECRET}: {{"))
        .await
        .expect(400);

    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": SECRET}});
    let reviews = "/apis/authentication.k8s.io/v1/tokenreviews";
    let answer = send(&server, "review", "POST", reviews, &review)
        .await
        .expect(201);
    assert_eq!(answer.json()["status"]["user"]["username"], "robot");

    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let account = json!({"metadata": {"name": "ship"}});
    send(&server, "account", "POST", accounts, &account)
        .await
        .expect(201);
    let wish = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": []}});
    let answer = send(
        &server,
        "token",
        "POST",
        &format!("{accounts}/ship/token"),
        &wish,
    )
    .await
    .expect(201);
    let token = answer.json()["status"]["token"]
        .as_str()
        .unwrap()
        .to_owned();
    let headers = [("audit-id", "token-message"), ("accept", PROTOBUF)];
    let path = format!("{accounts}/ship/token");
    let sent = server.send("POST", &path, &headers, wish.to_string());
    sent.await.expect(201);

    let text = log.text();
    for planted in [SECRET, encoded.trim_end_matches('='), &token] {
        let found = text.lines().find(|line| line.contains(planted));
        assert!(found.is_none(), "{planted} is in {found:?}");
    }
    let created = &log.events("create")[1];
    assert_eq!(
        created["requestObject"]["stringData"]["password"],
        "<redacted>"
    );
    assert_eq!(created["responseObject"]["data"]["password"], "<redacted>");
    let issued = &log.events("token")[1];
    let id = issued["annotations"]["authentication.kubernetes.io/issued-credential-id"].as_str();
    assert!(
        id.is_some_and(|id| id.starts_with("JTI=") && id.len() > 10),
        "{issued}"
    );
    assert_eq!(issued["responseObject"]["status"]["token"], "<redacted>");
    let message = &log.events("token-message")[1];
    assert_eq!(
        message["responseObject"]["status"]["token"], "<redacted>",
        "{message}"
    );
    let annotations = &message["annotations"];
    assert!(annotations["authentication.kubernetes.io/issued-credential-id"].is_string());
}
