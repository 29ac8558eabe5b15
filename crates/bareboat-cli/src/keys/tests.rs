#![allow(clippy::unwrap_used)]
use super::*;

const P256_SEC1: &str = include_str!("testdata/p256.sec1.pem");
const P256_PKCS8: &str = include_str!("testdata/p256.pkcs8.pem");
const P384_SEC1: &str = include_str!("testdata/p384.sec1.pem");
const RSA_PKCS1: &str = include_str!("testdata/rsa.pkcs1.pem");

#[test]
fn all_three_formats_are_read() {
    let keys = [P256_SEC1, P256_PKCS8, P384_SEC1, RSA_PKCS1].map(|pem| parse(pem).unwrap());
    assert_eq!(keys[0].public_key_raw(), keys[1].public_key_raw());
    assert_eq!(keys[2].algorithm(), &rcgen::PKCS_ECDSA_P384_SHA384);
    assert_eq!(keys[3].algorithm(), &rcgen::PKCS_RSA_SHA256);
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
    let pem = to_pem(&key);
    assert!(pem.starts_with("-----BEGIN EC PRIVATE KEY-----\n"));
    assert_eq!(parse(&pem).unwrap().public_key_raw(), key.public_key_raw());
    let ed = KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    assert!(to_pem(&ed).starts_with("-----BEGIN PRIVATE KEY-----"));
}

#[test]
fn a_damaged_key_is_an_error_wherever_the_damage_is() {
    let lines: Vec<&str> = P256_SEC1.lines().collect();
    let body = STANDARD.decode(lines[1..lines.len() - 1].concat()).unwrap();
    for at in 0..body.len() {
        let mut damaged = body.clone();
        damaged[at] ^= 0x41;
        assert!(
            parse(&encode("EC PRIVATE KEY", &damaged)).is_err(),
            "byte {at}"
        );
    }
    for cut in 0..body.len() {
        assert!(parse(&encode("EC PRIVATE KEY", &body[..cut])).is_err());
    }
    for text in ["", "\0\0\0", "-----BEGIN EC PRIVATE KEY-----\n"] {
        assert!(parse(text).is_err());
    }
}
