//! Which issued certificates are counted, and how their durations are compared.

use super::*;
use bareboat_api::value;

#[test]
fn durations_may_differ_by_the_backdating() {
    for (wanted, got, honored) in [
        (3600, 3600, true),
        (3600, 3600 + 5 * 60, true),
        (3600, 3600 + 5 * 60 + 180, false),
        (3600, 86400, false),
        (86400, 3600, false),
    ] {
        assert_eq!(is_honored(wanted, got), honored, "{wanted} {got}");
    }
}

#[test]
fn a_certificate_counts_once_and_only_for_requests_with_a_duration() {
    let request = |seconds: Value, certificate: &str| {
        value!({"spec": {"signerName": "example.com/own", "expirationSeconds": seconds},
            "status": {"certificate": certificate}})
    };
    let pending = request(value!(600), "");
    let issued = request(value!(600), "bm90IGEgY2VydGlmaWNhdGU=");
    let found = Issued::of(&pending, &issued).expect("it was issued");
    assert_eq!((found.signer, found.honored), ("other", false));
    assert!(
        Issued::of(&issued, &issued).is_none(),
        "it was issued before"
    );
    assert!(
        Issued::of(&pending, &pending).is_none(),
        "it was not issued"
    );
    let unlimited = request(Value::Null, "");
    assert!(Issued::of(&unlimited, &issued).is_none(), "no duration");
}
