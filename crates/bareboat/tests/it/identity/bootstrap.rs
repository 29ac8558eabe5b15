//! Bootstrap tokens: secrets in kube-system.

use super::holder;
use crate::socket::{As, Connection};
use crate::support::*;
use bareboat::bootstrap_tokens::BootstrapTokens;
use bareboat_testing::TestServer;

const SECRETS: &str = "/api/v1/namespaces/kube-system/secrets";

async fn server() -> TestServer {
    TestServer::builder()
        .with(|builder| builder.authenticator(BootstrapTokens))
        .default_roles()
        .listening()
        .start()
        .await
}

fn secret(id: &str, more: Value) -> Value {
    let mut data = json!({
        "token-id": id, "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true",
    });
    for (key, value) in more.as_object().unwrap() {
        data[key] = value.clone();
    }
    json!({
        "metadata": {"name": format!("bootstrap-token-{id}")},
        "type": "bootstrap.kubernetes.io/token",
        "stringData": data,
    })
}

#[tokio::test]
async fn a_bootstrap_token_names_its_user_until_its_secret_is_gone() {
    let server = server().await;
    let groups =
        json!({"auth-extra-groups": "system:bootstrappers:workers,system:bootstrappers:a-b"});
    server
        .post(SECRETS, &secret("abc123", groups))
        .await
        .expect(201);
    let mut connection = Connection::http1(&server, As::Nobody).await;
    let token = "abc123.0123456789abcdef";
    let user = holder(&mut connection, token).await.unwrap();
    assert_eq!(user["username"], "system:bootstrap:abc123");
    let groups = [
        "system:bootstrappers",
        "system:bootstrappers:workers",
        "system:bootstrappers:a-b",
        "system:authenticated",
    ];
    assert_eq!(user["groups"], json!(groups));
    for other in [
        "abc123.0123456789abcdee",
        "abc124.0123456789abcdef",
        "ABC123.0123456789abcdef",
    ] {
        assert_eq!(holder(&mut connection, other).await, Err(401), "{other}");
    }
    let path = format!("{SECRETS}/bootstrap-token-abc123");
    server.delete(&path).await.expect(200);
    assert_eq!(holder(&mut connection, token).await, Err(401));
}

#[tokio::test]
async fn secrets_that_are_not_for_this_are_refused() {
    let server = server().await;
    let mut connection = Connection::http1(&server, As::Nobody).await;
    let cases = [
        json!({"expiration": "2020-01-01T00:00:00Z"}),
        json!({"expiration": "tomorrow"}),
        json!({"usage-bootstrap-authentication": "false"}),
        json!({"token-id": "zzzzzz"}),
        json!({"token-secret": ""}),
        json!({"auth-extra-groups": "system:masters"}),
        json!({"auth-extra-groups": "system:bootstrappers:A"}),
    ];
    for (index, more) in cases.into_iter().enumerate() {
        let id = format!("case0{index}");
        server
            .post(SECRETS, &secret(&id, more.clone()))
            .await
            .expect(201);
        let token = format!("{id}.0123456789abcdef");
        assert_eq!(holder(&mut connection, &token).await, Err(401), "{more}");
    }
    let mut other = secret("case99", json!({}));
    other["type"] = json!("Opaque");
    server.post(SECRETS, &other).await.expect(201);
    assert_eq!(
        holder(&mut connection, "case99.0123456789abcdef").await,
        Err(401)
    );
}
