//! No planted secret is left in any form of a body.

use super::redact;
use crate::event::ObjectRef;
use bareboat_api::{Str, Value, value};

const PLANTED: &str = "hunter2";

fn about(group: &str, resource: &str, subresource: &str) -> ObjectRef {
    ObjectRef {
        group: Str::new(group),
        resource: Str::new(resource),
        subresource: Str::new(subresource),
        ..ObjectRef::default()
    }
}

fn redacted(object: &ObjectRef, mut body: Value) -> String {
    redact(Some(object), &mut body);
    body.to_string()
}

#[test]
fn data_of_secrets_is_hidden_in_every_form_of_a_body() {
    let secrets = about("", "secrets", "");
    for body in [
        value!({ "kind": "Secret", "data": { "a": "hunter2" }, "stringData": { "b": "hunter2" } }),
        value!({ "data": { "a": "hunter2" } }),
        value!({ "data": "hunter2" }),
        value!({ "unknown": { "a": "hunter2" }, "other": ["hunter2"] }),
        value!({ "kind": "DeleteOptions", "data": { "a": "hunter2" } }),
        value!({ "kind": "SecretList", "items": [{ "data": { "a": "hunter2" } }] }),
        value!({ "kind": "Table", "rows": [{ "object": { "data": { "a": "hunter2" } } }] }),
        value!({ "kind": "Status", "message": "Invalid value: hunter2", "details": { "causes": [{ "message": "hunter2" }] } }),
        value!([{ "op": "add", "path": "/data/a", "value": "hunter2" }]),
        value!({ "metadata": { "annotations": { "kubectl.kubernetes.io/last-applied-configuration": "hunter2" } } }),
    ] {
        let shown = body.to_string();
        assert!(shown.contains(PLANTED));
        let text = redacted(&secrets, body);
        assert!(!text.contains(PLANTED), "{shown} became {text}");
        assert!(text.contains("<redacted>"), "{text}");
    }
}

#[test]
fn names_labels_and_keys_of_secrets_are_shown() {
    let text = redacted(
        &about("", "secrets", ""),
        value!({
            "kind": "Secret", "type": "Opaque",
            "metadata": { "name": "vault", "labels": { "a": "b" } },
            "data": { "password": "hunter2" },
        }),
    );
    for shown in [
        "vault",
        r#""a":"b""#,
        "Opaque",
        r#""password":"<redacted>""#,
    ] {
        assert!(text.contains(shown), "{shown} is not in {text}");
    }
}

#[test]
fn tokens_are_hidden_in_reviews_and_requests() {
    let review = about("authentication.k8s.io", "tokenreviews", "");
    let body =
        value!({ "kind": "TokenReview", "spec": { "token": "hunter2", "audiences": ["a"] } });
    let text = redacted(&review, body);
    assert!(
        !text.contains(PLANTED) && text.contains("audiences"),
        "{text}"
    );
    let request = about("", "serviceaccounts", "token");
    let body = value!({ "kind": "TokenRequest", "status": { "token": "hunter2", "expirationTimestamp": "t" } });
    let text = redacted(&request, body);
    assert!(
        !text.contains(PLANTED) && text.contains("expirationTimestamp"),
        "{text}"
    );
}

#[test]
fn other_objects_are_left_alone() {
    let body = value!({ "kind": "ConfigMap", "data": { "token": "shown" } });
    let text = redacted(&about("", "configmaps", ""), body.clone());
    assert_eq!(text, body.to_string());
    let text = redacted(&about("", "serviceaccounts", ""), body.clone());
    assert_eq!(text, body.to_string());
}
