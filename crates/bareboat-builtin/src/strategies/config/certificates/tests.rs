//! Tests of warnings about certificates and keys in Secrets.

#![allow(clippy::unwrap_used)]
use super::judge;
use rcgen::{
    CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519,
    SignatureAlgorithm,
};

const CRT: &str = "-----BEGIN CERTIFICATE-----\nAAEC\n-----END CERTIFICATE-----\n";
const RSA: &str = "-----BEGIN RSA PRIVATE KEY-----\nAAEC\n-----END RSA PRIVATE KEY-----\n";

/// Generates a certificate and its key.
fn made(algorithm: &'static SignatureAlgorithm) -> (String, String) {
    let key = KeyPair::generate_for(algorithm).unwrap();
    let params = CertificateParams::new(vec!["a.example.com".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap();
    (certificate.pem(), key.serialize_pem())
}

#[test]
fn a_certificate_and_its_key_belong_together() {
    let all = [
        made(&PKCS_ECDSA_P256_SHA256),
        made(&PKCS_ECDSA_P384_SHA384),
        made(&PKCS_ED25519),
    ];
    for (index, (certificate, _)) in all.iter().enumerate() {
        for (other, (_, key)) in all.iter().enumerate() {
            let judged = judge(certificate, key);
            match (index, other) {
                _ if index == other => assert_eq!(judged, Ok(()), "{index}"),
                // Keys on two curves have the same type.
                (0, 1) | (1, 0) => assert_eq!(
                    judged.unwrap_err(),
                    "tls: private key does not match public key"
                ),
                _ => assert_eq!(
                    judged.unwrap_err(),
                    "tls: private key type does not match public key type"
                ),
            }
        }
    }
    for algorithm in [
        &PKCS_ECDSA_P256_SHA256,
        &PKCS_ECDSA_P384_SHA384,
        &PKCS_ED25519,
    ] {
        let (certificate, _) = made(algorithm);
        let (_, key) = made(algorithm);
        let judged = judge(&certificate, &key).unwrap_err();
        assert_eq!(judged, "tls: private key does not match public key");
    }
}

#[test]
fn missing_or_unreadable_parts_are_reported() {
    let (certificate, key) = made(&PKCS_ECDSA_P256_SHA256);
    let bare = "-----BEGIN PRIVATE KEY-----\n!\n-----END PRIVATE KEY-----";
    let other_end = "-----BEGIN PRIVATE KEY-----\nAAEC\n-----END X-----";
    for (certificate, key, wanted) in [
        ("text", RSA, "any PEM data in certificate input"),
        (RSA, RSA, "may have been switched"),
        (
            &*format!("{RSA}{RSA}"),
            RSA,
            "types: [RSA PRIVATE KEY RSA PRIVATE KEY]",
        ),
        (CRT, "", "any PEM data in key input"),
        (CRT, CRT, "a certificate rather than a key"),
        (CRT, &format!("{CRT}{CRT}"), "[CERTIFICATE CERTIFICATE]"),
        (CRT, bare, "any PEM data in key input"),
        (CRT, other_end, "any PEM data in key input"),
        (CRT, RSA, "x509: malformed certificate"),
        (&certificate, RSA, "tls: failed to parse private key"),
    ] {
        let judged = judge(certificate, key).unwrap_err();
        assert!(judged.contains(wanted), "{wanted}: {judged}");
    }
    // Other blocks before them are ignored.
    let (certificate, key) = (format!("{RSA}{certificate}"), format!("{CRT}{key}"));
    assert_eq!(judge(&certificate, &key), Ok(()));
}

#[test]
fn truncated_or_changed_bytes_do_not_panic() {
    let (certificate, key) = made(&PKCS_ED25519);
    let certificate = super::find_certificate(&certificate).unwrap();
    let key = super::find_key(&key).unwrap();
    for end in 0..key.len() {
        assert!(super::pair::check(&certificate, &key[..end]).is_err());
    }
    let trailing = [&certificate[..], &[0]].concat();
    assert_eq!(
        super::pair::check(&trailing, &key),
        Err("x509: trailing data")
    );
    for place in 0..certificate.len() {
        let mut changed = certificate.clone();
        changed[place] ^= 0xff;
        // The result does not matter; it must return.
        let _ = super::pair::check(&changed, &key);
    }
}
