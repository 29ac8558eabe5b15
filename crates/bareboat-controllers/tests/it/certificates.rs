//! CertificateSigningRequests: signed with exactly the role of the controller, or refused with a reason.

use crate::fixture::{Fixture, builder};
use bareboat_api::{Object, Value, value};
use bareboat_builtin::admission::SigningRequests;
use bareboat_certificates::{Issuer, KeyPair, pem};
use bareboat_controllers::{CertificateSigning, Options};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::sync::Arc;
use std::time::Duration;
use x509_parser::prelude::{FromDer as _, X509Certificate};

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

/// A server whose controller signs, and the certificate of its authority.
async fn fixture() -> (Fixture, Vec<u8>) {
    let key = KeyPair::generate().unwrap();
    let now = jiff::Timestamp::now().as_second();
    let ca = Issuer::self_signed("test-ca", &key, now - 60, now + 86_400).unwrap();
    let options = Options {
        certificate_signing: Some(CertificateSigning {
            authority: Arc::new(Issuer::new(&ca, key).unwrap()),
            longest: Duration::from_secs(3600),
        }),
        ..Options::default()
    };
    let server = builder(|_| {}).validator(SigningRequests).build().unwrap();
    let fixture = Fixture::over(server, options).await;
    (fixture, pem::certificates(&ca).remove(0))
}

/// Creates a request and approves it.
async fn approve(fixture: &Fixture, usages: Value) {
    use rcgen::{CertificateParams, DnType, KeyPair};
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "ann");
    params
        .distinguished_name
        .push(DnType::OrganizationName, "crew");
    let key = KeyPair::generate().unwrap();
    let text = params.serialize_request(&key).unwrap().pem().unwrap();
    let request = value!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": {"name": "ann"},
        "spec": {
            "request": (STANDARD.encode(text)), "usages": (usages),
            "signerName": "kubernetes.io/kube-apiserver-client",
        },
    });
    fixture.create(REQUESTS, request).await;
    let approval = value!({"status": {"conditions": [
        {"type": "Approved", "status": "True", "reason": "test", "message": "test"},
    ]}});
    let path = format!("{REQUESTS}/ann/approval");
    fixture.client.merge(&path, &approval).await.unwrap();
}

fn text<'a>(request: &'a Object, path: &[&str]) -> &'a str {
    request.at(path).and_then(Value::as_str).unwrap_or("")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approved_request_gets_a_certificate() {
    let (fixture, ca) = fixture().await;
    approve(&fixture, value!(["client auth"])).await;
    let path = format!("{REQUESTS}/ann");
    let issued = |request: &Object| !text(request, &["status", "certificate"]).is_empty();
    fixture.until_it(&path, issued).await;
    let request = fixture.get(&path).await.unwrap();
    let encoded = text(&request, &["status", "certificate"]);
    let decoded = String::from_utf8(STANDARD.decode(encoded).unwrap()).unwrap();
    let der = pem::certificates(&decoded).remove(0);
    let (_, certificate) = X509Certificate::from_der(&der).unwrap();
    let (_, ca) = X509Certificate::from_der(&ca).unwrap();
    certificate.verify_signature(Some(ca.public_key())).unwrap();
    assert_eq!(certificate.subject().to_string(), "CN=ann, O=crew");
    let validity = certificate.validity();
    let seconds = validity.not_after.timestamp() - validity.not_before.timestamp();
    assert_eq!(seconds, 3600 + 300);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_for_other_uses_fails_with_a_reason() {
    let (fixture, _) = fixture().await;
    approve(&fixture, value!(["client auth", "server auth"])).await;
    let path = format!("{REQUESTS}/ann");
    let failed = |request: &Object| {
        let conditions = request.at(&["status", "conditions"]);
        conditions.and_then(Value::as_array).is_some_and(|all| {
            all.iter().any(|condition| {
                condition.get("type").and_then(Value::as_str) == Some("Failed")
                    && condition.get("reason").and_then(Value::as_str)
                        == Some("SignerValidationFailure")
                    && condition.get("message").and_then(Value::as_str)
                        == Some("invalid usage for client certificate: server auth")
            })
        })
    };
    fixture.until_it(&path, failed).await;
    let request = fixture.get(&path).await.unwrap();
    assert_eq!(text(&request, &["status", "certificate"]), "");
}
