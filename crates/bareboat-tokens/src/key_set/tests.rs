//! Signatures of every algorithm, and tokens that try to get around them.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::keys::SigningKey;
use bareboat_api::value;
use ring::rand::SystemRandom;
use ring::signature::{RsaEncoding, RsaKeyPair};
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject as _;

/// A key that signs nothing but these tests.
const RSA: &str = include_str!("testdata/rsa.pem");

fn rsa() -> RsaKeyPair {
    let der = PrivatePkcs8KeyDer::from_pem_slice(RSA.as_bytes()).unwrap();
    RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).unwrap()
}

/// The key set of the RSA key, with more members.
fn rsa_set(more: Value) -> KeySet {
    let public = SigningKey::from_pem(RSA).unwrap().public().to_value();
    let mut key = value!({"kty": "RSA"});
    for name in ["n", "e"] {
        let number = public.get(name).unwrap().clone();
        key.make_object().insert(name, number);
    }
    for (name, value) in more.as_object().unwrap().iter() {
        key.make_object().insert(name, value.clone());
    }
    set(key)
}

fn set(key: Value) -> KeySet {
    KeySet::parse(&value!({"keys": [(key)]}).to_json()).unwrap()
}

fn head(header: &Value) -> String {
    let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_json());
    format!("{}.{}", encode(header), encode(&value!({"sub": "ann"})))
}

fn signed(header: Value, padding: &'static dyn RsaEncoding) -> String {
    let head = head(&header);
    let pair = rsa();
    let mut signature = vec![0; pair.public().modulus_len()];
    let random = SystemRandom::new();
    pair.sign(padding, &random, head.as_bytes(), &mut signature)
        .unwrap();
    format!("{head}.{}", URL_SAFE_NO_PAD.encode(signature))
}

fn verify(keys: &KeySet, token: &str) -> Result<(), TokenError> {
    keys.verify(&Jws::parse(token)?)
}

#[test]
fn every_rsa_algorithm_verifies_and_only_under_its_own_name() {
    let keys = rsa_set(value!({"kid": "a"}));
    let algorithms: [(&str, &'static dyn RsaEncoding); 6] = [
        ("RS256", &signature::RSA_PKCS1_SHA256),
        ("RS384", &signature::RSA_PKCS1_SHA384),
        ("RS512", &signature::RSA_PKCS1_SHA512),
        ("PS256", &signature::RSA_PSS_SHA256),
        ("PS384", &signature::RSA_PSS_SHA384),
        ("PS512", &signature::RSA_PSS_SHA512),
    ];
    for (name, padding) in algorithms {
        for (claimed, _) in algorithms {
            let token = signed(value!({"alg": (claimed), "kid": "a"}), padding);
            let expected = match claimed == name {
                true => Ok(()),
                false => Err(TokenError::Signature),
            };
            assert_eq!(verify(&keys, &token), expected, "{claimed} for {name}");
        }
    }
}

#[test]
fn every_curve_verifies() {
    for (algorithm, name) in [
        (&rcgen::PKCS_ECDSA_P256_SHA256, "ES256"),
        (&rcgen::PKCS_ECDSA_P384_SHA384, "ES384"),
    ] {
        let pem = rcgen::KeyPair::generate_for(algorithm)
            .unwrap()
            .serialize_pem();
        let key = SigningKey::from_pem(&pem).unwrap();
        let token = crate::jws::sign(&key, &value!({"sub": "ann"})).unwrap();
        assert_eq!(Jws::parse(&token).unwrap().algorithm(), name);
        let keys = set(key.public().to_value());
        assert_eq!(verify(&keys, &token), Ok(()));
        let (head, signature) = token.rsplit_once('.').unwrap();
        let cut = format!("{head}.{}", &signature[..signature.len() - 4]);
        assert!(verify(&keys, &cut).is_err());
        let empty = format!("{head}.");
        assert_eq!(verify(&keys, &empty), Err(TokenError::Signature));
    }
}

#[test]
fn a_key_is_used_with_its_own_algorithm_only() {
    let keys = rsa_set(value!({"kid": "a", "alg": "RS256"}));
    let right = signed(value!({"alg": "RS256"}), &signature::RSA_PKCS1_SHA256);
    assert_eq!(verify(&keys, &right), Ok(()));
    let other = signed(value!({"alg": "PS256"}), &signature::RSA_PSS_SHA256);
    assert_eq!(verify(&keys, &other), Err(TokenError::Signature));
}

#[test]
fn unsigned_tokens_and_tokens_signed_with_the_public_key_are_refused() {
    let keys = rsa_set(value!({}));
    for name in [
        "none", "None", "NONE", "", "HS256", "HS384", "HS512", "ES256", "ES512",
    ] {
        let head = head(&value!({"alg": (name)}));
        let secret = SigningKey::from_pem(RSA)
            .unwrap()
            .public()
            .to_value()
            .to_json();
        let secret = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &secret);
        let tag = ring::hmac::sign(&secret, head.as_bytes());
        for signature in [String::new(), URL_SAFE_NO_PAD.encode(tag.as_ref())] {
            let token = format!("{head}.{signature}");
            assert_eq!(verify(&keys, &token), Err(TokenError::Signature), "{name}");
        }
    }
}

#[test]
fn a_key_id_is_a_name_and_nothing_else() {
    let keys = rsa_set(value!({"kid": "a"}));
    for id in [
        "../../etc/passwd",
        "' OR 1=1 --",
        "A",
        "a\u{0}",
        "https://evil.example/jwks",
    ] {
        let header = value!({"alg": "RS256", "kid": (id)});
        let token = signed(header, &signature::RSA_PKCS1_SHA256);
        assert_eq!(verify(&keys, &token), Err(TokenError::NoKeys), "{id}");
    }
    for name in ["jku", "jwk", "x5u", "x5c"] {
        let mut header = value!({"alg": "RS256", "kid": "other"});
        header
            .make_object()
            .insert(name, Value::from("https://evil.example"));
        let token = signed(header, &signature::RSA_PKCS1_SHA256);
        assert_eq!(verify(&keys, &token), Err(TokenError::NoKeys), "{name}");
    }
}

#[test]
fn what_is_no_signed_token_is_not_looked_at() {
    let encode = |text: &str| URL_SAFE_NO_PAD.encode(text);
    let twice = format!(
        "{}.{}.AAAA",
        encode(r#"{"alg":"RS256"}"#),
        encode(r#"{"sub":"a","sub":"b"}"#)
    );
    let zipped = format!("{}.e30.AAAA", encode(r#"{"alg":"RS256","zip":"DEF"}"#));
    let encrypted = format!(
        "{}.e30.AAAA",
        encode(r#"{"alg":"RSA-OAEP","enc":"A256GCM"}"#)
    );
    let critical = format!("{}.e30.AAAA", encode(r#"{"alg":"RS256","crit":["b64"]}"#));
    for token in [
        ".".repeat(15 * 1024),
        ".".repeat(1 << 20),
        "a".repeat(1 << 20),
        "a.b".to_owned(),
        "a.b.c.d".to_owned(),
        String::new(),
        twice,
        zipped,
        encrypted,
        critical,
    ] {
        assert!(
            Jws::parse(&token).is_err(),
            "{}",
            &token[..token.len().min(80)]
        );
    }
}

#[test]
fn keys_that_cannot_check_signatures_are_left_out() {
    let none = [
        value!({"kty": "oct", "k": "AAAA"}),
        value!({"kty": "RSA", "use": "enc", "n": "AQAB", "e": "AQAB"}),
        value!({"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}),
        value!({"kty": "OKP", "crv": "Ed25519", "x": "AA"}),
        value!({"kid": "a"}),
    ];
    for key in none {
        let json = value!({"keys": [(key.clone())]}).to_json();
        assert_eq!(KeySet::parse(&json), Err(KeySetError::NoKeys), "{key}");
    }
    assert_eq!(KeySet::parse(b"[]"), Err(KeySetError::NotKeySet));
    assert_eq!(KeySet::parse(b"nonsense"), Err(KeySetError::NotKeySet));
}
