//! Warnings about finalizers and annotations, and rejected certificate requests.

use crate::support::*;
use bareboat_testing::TestServer;
use base64::Engine as _;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

#[tokio::test]
async fn finalizers_of_custom_objects_without_a_domain_get_a_warning() {
    let server = TestServer::builder().without_controllers().start().await;
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "boats.example.com"},
        "spec": {
            "group": "example.com", "scope": "Cluster", "names": {"plural": "boats", "kind": "Boat"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    });
    server.post(DEFINITIONS, &definition).await.expect(201);
    let boats = "/apis/example.com/v1/boats";
    let boat = |name: &str, finalizers: Value| json!({"apiVersion": "example.com/v1", "kind": "Boat", "metadata": {"name": name, "finalizers": finalizers}});
    let quiet = boat("quiet", json!(["example.com/dock", "orphan"]));
    let made = server.post(boats, &quiet).await.expect(201);
    assert!(made.headers("warning").is_empty());
    let made = server
        .post(boats, &boat("loud", json!(["dock", "boats.example.com"])))
        .await;
    let text = |name: &str, path: &str| {
        let text = format!(
            "metadata.finalizers: {name:?}: prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other finalizer writers"
        );
        format!("299 - {text:?}")
    };
    let both = [
        text("boats.example.com", " including a path (/)"),
        text("dock", ""),
    ];
    assert_eq!(made.expect(201).headers("warning"), both);
    // Only new finalizers get a warning.
    let path = format!("{boats}/loud");
    let more = json!({"metadata": {"finalizers": ["dock", "boats.example.com", "crane"]}});
    let changed = server.patch(&path, MERGE, &more).await.expect(200);
    assert_eq!(changed.headers("warning"), [text("crane", "")]);
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    let changed = server.patch(&path, MERGE, &label).await.expect(200);
    assert!(changed.headers("warning").is_empty());
}

#[tokio::test]
async fn enforce_mountable_secrets_gets_a_warning_when_it_is_added() {
    let server = TestServer::builder().without_controllers().start().await;
    let account = json!({"metadata": {"name": "a", "annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}}});
    let warning = r#"299 - "metadata.annotations[kubernetes.io/enforce-mountable-secrets]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets""#;
    let made = server.post(ACCOUNTS, &account).await.expect(201);
    assert_eq!(made.headers("warning"), [warning]);
    let path = format!("{ACCOUNTS}/a");
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    let changed = server.patch(&path, MERGE, &label).await.expect(200);
    assert!(changed.headers("warning").is_empty());
}

/// Returns a certificate request for a user in a group.
fn request_of(group: &str, signer: &str) -> Value {
    let mut parameters = rcgen::CertificateParams::new(Vec::new()).unwrap();
    let subject = &mut parameters.distinguished_name;
    subject.push(rcgen::DnType::CommonName, "ann");
    subject.push(rcgen::DnType::OrganizationName, group);
    let key = rcgen::KeyPair::generate().unwrap();
    let pem = parameters.serialize_request(&key).unwrap().pem().unwrap();
    let request = base64::engine::general_purpose::STANDARD.encode(pem);
    json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": {"name": "ann"},
        "spec": {"request": request, "signerName": signer, "usages": ["client auth"]},
    })
}

#[tokio::test]
async fn a_request_for_a_client_certificate_of_system_masters_is_rejected() {
    let server = TestServer::builder().without_controllers().start().await;
    let signer = "kubernetes.io/kube-apiserver-client";
    let refused = server
        .post(REQUESTS, &request_of("system:masters", signer))
        .await;
    assert_eq!(
        refused.expect(403).status().2,
        "certificatesigningrequests.certificates.k8s.io \"ann\" is forbidden: use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed"
    );
    for (group, signer) in [("crew", signer), ("system:masters", "example.com/yard")] {
        let dry = format!("{REQUESTS}?dryRun=All");
        server
            .post(&dry, &request_of(group, signer))
            .await
            .expect(201);
    }
}

#[tokio::test]
async fn findings_of_a_patch_come_before_those_of_its_result() {
    let server = TestServer::builder().without_controllers().start().await;
    server.post(MAPS, &config_map("a")).await.expect(201);
    let path = format!("{MAPS}/a?dryRun=All");
    let operations = r#"[
        {"op": "add", "path": "/bogus", "value": 1, "foo": "x"},
        {"op": "add", "path": "/data/b", "path": "/data/c", "value": "1", "bar": 1}
    ]"#;
    let merged = r#"{"bogus": 1, "data": {"b": "1", "b": "2"}, "other": {"c": 1, "c": 2}}"#;
    let of_operations = [
        r#"json patch unknown field "[0].foo""#,
        r#"json patch duplicate field "[1].path""#,
        r#"json patch unknown field "[1].bar""#,
        r#"unknown field "bogus""#,
    ];
    let of_merged = [
        r#"duplicate field "data.b""#,
        r#"duplicate field "other.c""#,
        r#"unknown field "bogus""#,
        r#"unknown field "other""#,
    ];
    for (media, patch, findings) in [
        (JSON_PATCH, operations, of_operations),
        (MERGE, merged, of_merged),
        (STRATEGIC, merged, of_merged),
    ] {
        let headers = [("content-type", media)];
        let warned = server.send("PATCH", &path, &headers, patch).await;
        let quoted = findings.map(|finding| format!("299 - {finding:?}"));
        assert_eq!(warned.expect(200).headers("warning"), quoted, "{media}");
        let strict = format!("{path}&fieldValidation=Strict");
        let refused = server.send("PATCH", &strict, &headers, patch).await;
        let (code, _, message) = refused.status();
        assert_eq!(code, 422, "{media}: {message}");
        let all = format!("strict decoding error: {}", findings.join(", "));
        assert!(message.ends_with(&all), "{media}: {message}");
    }
}
