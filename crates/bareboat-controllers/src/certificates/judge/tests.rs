//! Tests of which certificate requests are signed, and for how long.

#![allow(clippy::unwrap_used)]
use super::*;
use bareboat_api::value;
use bareboat_certificates::{CertificateAuthority as _, Issuer, KeyPair};
use rcgen::{CertificateParams, DnType};

/// 2027-01-15T08:00:00Z.
const NOW: i64 = 1_800_000_000;
const NOW_TEXT: &str = "2027-01-15T08:00:00Z";
const DAY: i64 = 24 * 3600;

fn pem_request(group: &str) -> String {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "ann");
    params
        .distinguished_name
        .push(DnType::OrganizationName, group);
    let key = rcgen::KeyPair::generate().unwrap();
    STANDARD.encode(params.serialize_request(&key).unwrap().pem().unwrap())
}

fn request(usages: Value, conditions: Value) -> Value {
    value!({
        "metadata": {"creationTimestamp": (NOW_TEXT)},
        "spec": {
            "signerName": (SIGNER), "request": (pem_request("crew")), "usages": (usages),
            "expirationSeconds": 3600,
        },
        "status": {"conditions": (conditions)},
    })
}

fn judge_with(request: &Value, now: i64, longest: i64, authority_ends: i64) -> Judgement {
    let limits = Limits {
        longest,
        authority_ends,
    };
    judge(request, now, Some(limits))
}

#[test]
fn nothing_is_signed_without_an_authority() {
    let request = request(value!(["client auth"]), approved());
    assert!(matches!(judge(&request, NOW, None), Judgement::Wait(3600)));
    let old = judge(&request, NOW + DAY, None);
    assert!(matches!(old, Judgement::Remove));
}

fn approved() -> Value {
    value!([{"type": "Approved", "status": "True", "lastUpdateTime": (NOW_TEXT)}])
}

fn refusal(request: &Value) -> String {
    match judge_with(request, NOW, DAY, i64::MAX) {
        Judgement::Refuse(why) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_approved_request_is_signed_for_the_requested_time() {
    let request = request(value!(["client auth", "digital signature"]), approved());
    for (longest, authority, expected) in [
        (DAY, i64::MAX, NOW + 3600),
        (1800, i64::MAX, NOW + 1800),
        (DAY, NOW + 1000, NOW + 1000),
        (1, i64::MAX, NOW + SHORTEST),
    ] {
        match judge_with(&request, NOW, longest, authority) {
            Judgement::Sign(template) => {
                assert_eq!(template.not_after, expected);
                assert_eq!(template.not_before, NOW - BACKDATED);
                assert!(!template.authority);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn undecided_requests_wait_and_expire() {
    let pending = request(value!(["client auth"]), value!([]));
    assert!(matches!(
        judge_with(&pending, NOW + DAY - 10, DAY, i64::MAX),
        Judgement::Wait(10)
    ));
    assert!(matches!(
        judge_with(&pending, NOW + DAY, DAY, i64::MAX),
        Judgement::Remove
    ));
    for kind in ["Denied", "Failed"] {
        let conditions = value!([{"type": (kind), "lastUpdateTime": (NOW_TEXT)}]);
        let decided = request(value!(["client auth"]), conditions);
        assert!(matches!(
            judge_with(&decided, NOW + 3599, DAY, i64::MAX),
            Judgement::Wait(1)
        ));
        assert!(matches!(
            judge_with(&decided, NOW + 3600, DAY, i64::MAX),
            Judgement::Remove
        ));
    }
}

#[test]
fn other_signers_and_denied_requests_are_left_alone() {
    let mut other = request(value!(["client auth"]), approved());
    other
        .make_object()
        .get_mut("spec")
        .unwrap()
        .make_object()
        .insert("signerName", Value::from("example.com/own"));
    assert!(matches!(
        judge_with(&other, NOW, DAY, i64::MAX),
        Judgement::Wait(3600)
    ));
}

#[test]
fn refusals_say_why() {
    let with = |usages: Value| refusal(&request(usages, approved()));
    assert_eq!(
        with(value!(["client auth", "server auth"])),
        "invalid usage for client certificate: server auth"
    );
    assert_eq!(
        with(value!(["digital signature"])),
        "missing required usage for client certificate: client auth"
    );
    let mut masters = request(value!(["client auth"]), approved());
    masters
        .make_object()
        .get_mut("spec")
        .unwrap()
        .make_object()
        .insert("request", Value::from(pem_request("system:masters")));
    assert!(refusal(&masters).contains("system:masters group is not allowed"));
}

#[test]
fn a_request_whose_certificate_expired_is_removed_at_once() {
    let key = KeyPair::generate().unwrap();
    let ca = Issuer::self_signed("ca", &key, NOW - 100, NOW + 100).unwrap();
    let issuer = Issuer::new(&ca, key).unwrap();
    let mut issued = request(value!(["client auth"]), approved());
    let encoded = STANDARD.encode(&ca);
    issued
        .make_object()
        .get_mut("status")
        .unwrap()
        .make_object()
        .insert("certificate", Value::from(encoded));
    assert_eq!(issuer.ends(), NOW + 100);
    assert!(matches!(
        judge_with(&issued, NOW, DAY, i64::MAX),
        Judgement::Wait(100)
    ));
    assert!(matches!(
        judge_with(&issued, NOW + 100, DAY, i64::MAX),
        Judgement::Remove
    ));
}
