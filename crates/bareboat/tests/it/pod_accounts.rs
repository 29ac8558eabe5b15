//! The admission plug-in ServiceAccount.

use crate::support::{Requests as _, Value, json};
use bareboat_testing::TestServer;

const PODS: &str = "/api/v1/namespaces/default/pods";
const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";

fn pod(name: &str, account: &str) -> Value {
    let mut pod = json!({"metadata": {"name": name}, "spec": {
        "initContainers": [{"name": "i", "image": "i"}], "containers": [{"name": "c", "image": "i"}]}});
    if !account.is_empty() {
        pod["spec"]["serviceAccountName"] = json!(account);
    }
    pod
}

#[tokio::test]
async fn a_pod_gets_the_default_account_and_a_token() {
    let server = TestServer::builder()
        .service_account_admission()
        .start()
        .await;
    // The account of the namespace may not exist yet; the plug-in waits for it.
    let created = server.post(PODS, &pod("p", "")).await.expect(201).json();
    let spec = &created["spec"];
    assert_eq!(spec["serviceAccountName"], "default");
    assert_eq!(spec["serviceAccount"], "default");
    let volume = &spec["volumes"][0];
    let name = volume["name"].as_str().unwrap();
    assert!(name.starts_with("kube-api-access-"), "{name}");
    assert_eq!(
        volume["projected"],
        json!({"defaultMode": 420, "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"items": [{"key": "ca.crt", "path": "ca.crt"}], "name": "kube-root-ca.crt"}},
            {"downwardAPI": {"items": [
                {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}, "path": "namespace"}]}},
        ]})
    );
    for list in ["initContainers", "containers"] {
        assert_eq!(
            spec[list][0]["volumeMounts"],
            json!([{"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "name": name, "readOnly": true}])
        );
    }
}

#[tokio::test]
async fn a_pod_with_a_missing_account_is_rejected() {
    let server = TestServer::builder()
        .service_account_admission()
        .start()
        .await;
    let refused = server.post(PODS, &pod("p", "none")).await.expect(403);
    assert_eq!(
        refused.status().2,
        "pods \"p\" is forbidden: error looking up service account default/none: serviceaccount \"none\" not found"
    );
}

#[tokio::test]
async fn an_account_sets_pull_secrets_and_may_disable_its_token() {
    let server = TestServer::builder()
        .service_account_admission()
        .start()
        .await;
    let account = json!({"metadata": {"name": "own", "annotations": {
        "kubernetes.io/enforce-mountable-secrets": "true"}}, "automountServiceAccountToken": false,
        "secrets": [{"name": "known"}], "imagePullSecrets": [{"name": "pull"}]});
    server.post(ACCOUNTS, &account).await.expect(201);
    let created = server.post(PODS, &pod("p", "own")).await.expect(201).json();
    assert_eq!(
        created["spec"]["imagePullSecrets"],
        json!([{"name": "pull"}])
    );
    assert!(created["spec"]["volumes"].is_null());
    let mut greedy = pod("q", "own");
    greedy["spec"]["volumes"] = json!([{"name": "v", "secret": {"secretName": "other"}}]);
    let refused = server.post(PODS, &greedy).await.expect(403);
    assert_eq!(
        refused.status().2,
        "pods \"q\" is forbidden: volume with secret.secretName=\"other\" is not allowed because service account own does \
         not reference that secret"
    );
}
