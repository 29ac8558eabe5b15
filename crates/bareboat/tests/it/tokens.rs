//! Service account tokens: issued, accepted, bound to objects, and rejected when those are deleted.

use crate::support::*;
use bareboat::service_accounts::{ServiceAccounts, TokenSettings};
use bareboat_testing::TestServer;

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

fn key() -> String {
    rcgen::KeyPair::generate().unwrap().serialize_pem()
}

fn accounts(key: &str, others: &[String]) -> ServiceAccounts {
    ServiceAccounts::new(key, others, TokenSettings::default()).unwrap()
}

async fn server_with(accounts: ServiceAccounts) -> TestServer {
    let server = TestServer::builder()
        .with(move |builder| accounts.install(builder))
        .start()
        .await;
    let robot = json!({"metadata": {"name": "robot"}});
    server.post(ACCOUNTS, &robot).await.expect(201);
    server
}

async fn server() -> TestServer {
    server_with(accounts(&key(), &[])).await
}

async fn issue(server: &TestServer, spec: Value) -> Answer {
    let request = json!({"spec": spec});
    server
        .post(&format!("{ACCOUNTS}/robot/token"), &request)
        .await
}

async fn token(server: &TestServer, spec: Value) -> String {
    let answer = issue(server, spec).await.expect(201).json();
    answer["status"]["token"].as_str().unwrap().to_owned()
}

/// Posts a TokenReview and returns its status.
async fn review(server: &TestServer, token: &str, audiences: &[&str]) -> Value {
    let review = json!({"spec": {"token": token, "audiences": audiences}});
    server.post(REVIEWS, &review).await.expect(201).json()["status"].clone()
}

#[tokio::test]
async fn a_token_names_its_account() {
    let server = server().await;
    let answer = issue(&server, json!({})).await.expect(201).json();
    assert_eq!(answer["kind"], "TokenRequest");
    assert_eq!(answer["spec"]["expirationSeconds"], 3600);
    assert_eq!(answer["spec"]["audiences"], json!([ISSUER]));
    let token = answer["status"]["token"].as_str().unwrap();
    let status = review(&server, token, &[]).await;
    assert_eq!(status["authenticated"], true, "{status}");
    assert_eq!(status["audiences"], json!([ISSUER]));
    let user = &status["user"];
    assert_eq!(user["username"], "system:serviceaccount:default:robot");
    assert_eq!(
        user["groups"],
        json!([
            "system:serviceaccounts",
            "system:serviceaccounts:default",
            "system:authenticated"
        ])
    );
    let account = server.get(&format!("{ACCOUNTS}/robot")).await.json();
    assert_eq!(user["uid"], account["metadata"]["uid"]);
    let id = user["extra"]["authentication.kubernetes.io/credential-id"][0].as_str();
    assert!(id.unwrap().starts_with("JTI="));
}

#[tokio::test]
async fn a_token_is_valid_for_its_audiences_only() {
    let server = server().await;
    let vault = token(&server, json!({"audiences": ["vault", "other"]})).await;
    let status = review(&server, &vault, &["vault", "unknown"]).await;
    assert_eq!(status["audiences"], json!(["vault"]));
    let status = review(&server, &vault, &[]).await;
    assert_eq!(status["authenticated"], Value::Null);
    assert_eq!(
        status["error"],
        format!(
            "[invalid bearer token, token audiences [\"vault\" \"other\"] is invalid for the target audiences [\"{ISSUER}\"]]"
        )
    );
}

#[tokio::test]
async fn a_token_ends_with_its_account() {
    let server = server().await;
    let old = token(&server, json!({})).await;
    server
        .delete(&format!("{ACCOUNTS}/robot"))
        .await
        .expect(200);
    let status = review(&server, &old, &[]).await;
    assert_eq!(
        status["error"],
        "[invalid bearer token, serviceaccounts \"robot\" not found]"
    );
    let robot = json!({"metadata": {"name": "robot"}});
    server.post(ACCOUNTS, &robot).await.expect(201);
    let status = review(&server, &old, &[]).await;
    let error = status["error"].as_str().unwrap();
    assert!(error.contains("service account UID ("), "{error}");
}

#[tokio::test]
async fn a_token_ends_with_the_object_it_is_bound_to() {
    let server = server().await;
    let secrets = "/api/v1/namespaces/default/secrets";
    let secret = json!({"metadata": {"name": "s"}});
    let secret = server.post(secrets, &secret).await.expect(201).json();
    let bound = |kind: &str, name: &str, uid: &Value| json!({"boundObjectRef": {"apiVersion": "v1", "kind": kind, "name": name, "uid": uid}});
    let good = token(&server, bound("Secret", "s", &secret["metadata"]["uid"])).await;
    assert_eq!(review(&server, &good, &[]).await["authenticated"], true);
    server.delete(&format!("{secrets}/s")).await.expect(200);
    assert_eq!(
        review(&server, &good, &[]).await["error"],
        "[invalid bearer token, service account token has been invalidated]"
    );
    let pods = "/api/v1/namespaces/default/pods";
    let pod = |account: &str| {
        json!({"metadata": {"name": account}, "spec": {
            "serviceAccountName": account, "containers": [{"name": "a", "image": "b"}]}})
    };
    server.post(pods, &pod("robot")).await.expect(201);
    server.post(pods, &pod("default")).await.expect(201);
    let good = token(&server, bound("Pod", "robot", &Value::Null)).await;
    let user = review(&server, &good, &[]).await["user"].clone();
    assert_eq!(
        user["extra"]["authentication.kubernetes.io/pod-name"],
        json!(["robot"])
    );
    for (spec, code, text) in [
        (
            bound("Pod", "absent", &Value::Null),
            404,
            "pods \"absent\" not found",
        ),
        (
            bound("Pod", "robot", &json!("other")),
            409,
            "the UID in the bound object reference (other) does not match the UID in record. The object might have been \
             deleted and then recreated",
        ),
        (
            bound("Pod", "default", &Value::Null),
            400,
            "cannot bind token for serviceaccount \"robot\" to pod running with different serviceaccount name.",
        ),
        (
            bound("ConfigMap", "x", &Value::Null),
            400,
            "cannot bind token to object of type /v1, Kind=ConfigMap",
        ),
    ] {
        let (_, _, message) = issue(&server, spec).await.expect(code).status();
        assert!(message.ends_with(text), "{message}");
    }
}

#[tokio::test]
async fn lifetimes_have_limits() {
    let server = server().await;
    let short = issue(&server, json!({"expirationSeconds": 599})).await;
    assert!(
        short
            .expect(422)
            .status()
            .2
            .ends_with("may not specify a duration less than 10 minutes")
    );
    let long = issue(&server, json!({"expirationSeconds": 1_000_000_000}))
        .await
        .expect(201);
    assert_eq!(long.json()["spec"]["expirationSeconds"], 31_536_000);
    assert!(
        long.header("warning")
            .contains("requested expiration of 1000000000 seconds shortened to 31536000 seconds")
    );
    issue(&server, json!({"expirationSeconds": 5_000_000_000_i64}))
        .await
        .expect(422);
    let request = json!({"metadata": {"name": "another"}, "spec": {}});
    server
        .post(&format!("{ACCOUNTS}/robot/token"), &request)
        .await
        .expect(422);
    server
        .post(&format!("{ACCOUNTS}/absent/token"), &json!({"spec": {}}))
        .await
        .expect(404);
}

#[tokio::test]
async fn keys_are_published_and_can_be_replaced_at_runtime() {
    let (first, second) = (key(), key());
    let accounts = accounts(&first, &[]);
    let server = server_with(accounts.clone()).await;
    let old = token(&server, json!({})).await;
    let keys = |answer: Answer| answer.json()["keys"].as_array().unwrap().clone();
    let document = server
        .get("/.well-known/openid-configuration")
        .await
        .expect(200);
    assert_eq!(document.json()["issuer"], ISSUER);
    assert_eq!(
        document.json()["jwks_uri"],
        format!("{ISSUER}/openid/v1/jwks")
    );
    let published = server.get("/openid/v1/jwks").await.expect(200);
    assert_eq!(published.header("content-type"), "application/jwk-set+json");
    assert_eq!(published.header("cache-control"), "public, max-age=3600");
    assert!(!published.text().contains("\"d\""));
    assert_eq!(keys(published).len(), 1);
    accounts
        .replace_keys(&second, std::slice::from_ref(&first))
        .unwrap();
    assert_eq!(keys(server.get("/openid/v1/jwks").await).len(), 2);
    assert_eq!(review(&server, &old, &[]).await["authenticated"], true);
    let new = token(&server, json!({})).await;
    accounts.replace_keys(&second, &[]).unwrap();
    assert_eq!(review(&server, &new, &[]).await["authenticated"], true);
    assert_eq!(
        review(&server, &old, &[]).await["error"],
        "[invalid bearer token, invalid signature, no keys found]"
    );
}
