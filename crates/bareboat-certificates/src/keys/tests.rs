//! Tests of key formats: PKCS#8, SEC1 and PKCS#1.

#![allow(clippy::unwrap_used)]
use super::*;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const P256_SEC1: &str = include_str!("testdata/p256.sec1.pem");
const P256_PKCS8: &str = include_str!("testdata/p256.pkcs8.pem");
const P384_SEC1: &str = include_str!("testdata/p384.sec1.pem");
const RSA_PKCS1: &str = include_str!("testdata/rsa.pkcs1.pem");

#[test]
fn all_three_formats_are_read() {
    let keys =
        [P256_SEC1, P256_PKCS8, P384_SEC1, RSA_PKCS1].map(|pem| KeyPair::from_pem(pem).unwrap());
    assert_eq!(keys[0].public_key(), keys[1].public_key());
    assert_eq!(keys[2].algorithm(), "ECDSA P-384");
    assert_eq!(keys[3].algorithm(), "RSA");
}

#[test]
fn an_ec_key_in_pkcs8_becomes_the_sec1_that_openssl_writes() {
    assert_eq!(portable(P256_PKCS8), P256_SEC1);
    for other in [P256_SEC1, P384_SEC1, RSA_PKCS1, "no key at all"] {
        assert_eq!(portable(other), other);
    }
}

#[test]
fn a_generated_key_is_written_as_sec1_and_read_again() {
    let key = KeyPair::generate().unwrap();
    let pem = key.to_pem();
    assert!(pem.starts_with("-----BEGIN EC PRIVATE KEY-----\n"));
    assert_eq!(
        KeyPair::from_pem(&pem).unwrap().public_key(),
        key.public_key()
    );
    let ed = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    let ed = KeyPair::from_pem(&ed.serialize_pem()).unwrap();
    assert!(ed.to_pem().starts_with("-----BEGIN PRIVATE KEY-----"));
}

#[test]
fn a_public_key_is_described_as_another_library_describes_it() {
    for algorithm in [
        &rcgen::PKCS_ECDSA_P256_SHA256,
        &rcgen::PKCS_ECDSA_P384_SHA384,
        &rcgen::PKCS_ED25519,
    ] {
        let theirs = rcgen::KeyPair::generate_for(algorithm).unwrap();
        let ours = KeyPair::from_pem(&theirs.serialize_pem()).unwrap();
        use rcgen::PublicKeyData as _;
        assert_eq!(ours.public_key_info(), theirs.subject_public_key_info());
    }
}

#[test]
fn a_damaged_key_is_an_error_wherever_the_damage_is() {
    let lines: Vec<&str> = P256_SEC1.lines().collect();
    let body = STANDARD.decode(lines[1..lines.len() - 1].concat()).unwrap();
    let parse = |der: &[u8]| KeyPair::from_pem(&pem::encode("EC PRIVATE KEY", der));
    for at in 0..body.len() {
        let mut damaged = body.clone();
        damaged[at] ^= 0x41;
        assert!(parse(&damaged).is_err(), "byte {at}");
    }
    for cut in 0..body.len() {
        assert!(parse(&body[..cut]).is_err());
    }
    for text in ["", "\0\0\0", "-----BEGIN EC PRIVATE KEY-----\n"] {
        assert!(KeyPair::from_pem(text).is_err());
    }
}
