//! Answers that are accepted, and the messages of others, which are those of kube-apiserver.

use super::*;
use bareboat_api::value;

const V1: ReviewVersion = ReviewVersion::V1;

fn review(response: Value) -> Vec<u8> {
    value!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": (response)})
        .to_json()
}

#[track_caller]
fn refused(mutating: bool, bytes: &[u8]) -> String {
    match read(V1, "u", mutating, bytes) {
        Err(Unusable::Undecodable(why) | Unusable::Invalid(why)) => why,
        Ok(answer) => panic!("accepted: {answer:?}"),
    }
}

#[test]
fn answers_must_fit_the_review() {
    for (mutating, bytes, why) in [
        (true, review(Value::Null), "webhook response was absent"),
        (
            true,
            review(value!({"uid": "x"})),
            "expected response.uid=\"u\", got \"x\"",
        ),
        (
            true,
            value!({"response": {"uid": "u"}}).to_json(),
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind=",
        ),
        (
            true,
            review(value!({"uid": "u", "patch": "W10="})),
            "webhook returned response.patch but not response.patchType",
        ),
        (
            true,
            review(value!({"uid": "u", "patchType": "JSONPatch"})),
            "webhook returned response.patchType but not response.patch",
        ),
        (
            true,
            review(value!({"uid": "u", "patch": "W10=", "patchType": ""})),
            "webhook returned invalid response.patchType of \"\"",
        ),
        (
            false,
            review(value!({"uid": "u", "patch": "W10="})),
            "validating webhook may not return response.patch",
        ),
        (
            false,
            review(value!({"uid": "u", "patchType": "JSONPatch"})),
            "validating webhook may not return response.patchType",
        ),
        (
            true,
            review(value!({"uid": "u", "patch": "?", "patchType": "JSONPatch"})),
            "illegal base64 data at input byte 0",
        ),
        (
            true,
            review(value!({"uid": "u", "allowed": "yes"})),
            "json: cannot unmarshal string into Go struct field AdmissionResponse.response.allowed of type bool",
        ),
    ] {
        assert_eq!(refused(mutating, &bytes), why);
    }
    assert!(refused(true, b"<html>").starts_with("couldn't get version/kind; json parse error: "));
}

#[test]
fn the_older_review_checks_neither_uid_nor_type() {
    let bytes = value!({"response": {"uid": "other", "allowed": true, "patch": "W10="}}).to_json();
    let answer = read(ReviewVersion::V1Beta1, "u", true, &bytes).expect("it is accepted");
    assert_eq!(
        (answer.patch.as_slice(), answer.patch_type.as_str()),
        (&b"[]"[..], "JSONPatch")
    );
    // A validating hook cannot patch; here the patch is ignored.
    let answer = read(ReviewVersion::V1Beta1, "u", false, &bytes).expect("it is accepted");
    assert!(answer.patch.is_empty());
}

#[test]
fn refusals_have_at_least_code_400() {
    let by = "admission webhook \"n\" denied the request";
    let code = |status: &Value| denial("n", Some(status)).code;
    assert_eq!(
        denial("n", None).message,
        format!("{by} without explanation")
    );
    assert_eq!(
        denial("n", Some(&value!({"reason": "Odd"}))).message,
        format!("{by}: Odd")
    );
    assert_eq!(code(&value!({"code": 200})), 400);
    assert_eq!(code(&value!({"code": 451})), 451);
    assert_eq!(code(&value!({"code": 70_000})), 400);
    assert_eq!(code(&value!({"code": (-1)})), 400);
    let full = value!({"code": 409, "reason": "Conflict", "message": "m", "details": {
        "name": "a", "kind": "b", "retryAfterSeconds": 3, "causes": [{"field": "f", "reason": "r"}]}});
    let status = denial("n", Some(&full));
    let details = status.details.expect("details");
    assert_eq!(
        (details.name.as_str(), details.retry_after_seconds),
        ("a", 3)
    );
    assert_eq!(details.causes[0].field, "f");
}
