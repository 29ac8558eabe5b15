//! Keys in PEM: which are read, which are refused, and what they sign.

use super::*;

fn fresh(algorithm: &'static rcgen::SignatureAlgorithm) -> rcgen::KeyPair {
    rcgen::KeyPair::generate_for(algorithm).expect("a key can be made")
}

#[test]
fn a_key_verifies_only_signatures_of_its_other_half() {
    for algorithm in [
        &rcgen::PKCS_ECDSA_P256_SHA256,
        &rcgen::PKCS_ECDSA_P384_SHA384,
    ] {
        let pair = fresh(algorithm);
        let key = SigningKey::from_pem(&pair.serialize_pem()).expect("it is a key");
        let signature = key.sign(b"message").expect("it signs");
        let public = PublicKey::from_pem(&pair.public_key_pem()).expect("it is a key");
        assert_eq!(public, [key.public().clone()]);
        assert!(public[0].verifies(b"message", &signature));
        assert!(!public[0].verifies(b"massage", &signature));
        let other = SigningKey::from_pem(&fresh(algorithm).serialize_pem()).expect("a key");
        assert!(!other.public().verifies(b"message", &signature));
        assert_ne!(other.public().id(), public[0].id());
    }
}

#[test]
fn a_key_set_contains_no_private_part() {
    let pair = fresh(&rcgen::PKCS_ECDSA_P256_SHA256);
    let key = SigningKey::from_pem(&pair.serialize_pem()).expect("it is a key");
    let shown = key.public().to_value();
    let names: Vec<&str> = shown.as_object().expect("an object").keys().collect();
    assert_eq!(names, ["alg", "crv", "kid", "kty", "use", "x", "y"]);
}

#[test]
fn text_without_a_key_is_refused_with_a_reason() {
    assert_eq!(SigningKey::from_pem("").err(), Some(KeyError::NoKey));
    let public = fresh(&rcgen::PKCS_ECDSA_P256_SHA256).public_key_pem();
    assert_eq!(SigningKey::from_pem(&public).err(), Some(KeyError::NoKey));
    let damaged = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    assert!(matches!(
        SigningKey::from_pem(damaged),
        Err(KeyError::Unusable(_))
    ));
}
