//! Service account tokens: issued, read back, and refused when forged or expired.

use super::*;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

const ISSUER: &str = "https://issuer.example.com";
const NOW: i64 = 1_700_000_000;

fn key() -> SigningKey {
    let pair = rcgen::KeyPair::generate().expect("a key can be made");
    SigningKey::from_pem(&pair.serialize_pem()).expect("it is a key")
}

fn claims() -> Claims {
    Claims {
        namespace: "ns".into(),
        account: Reference {
            name: "robot".into(),
            uid: "u1".into(),
        },
        secret: None,
        pod: Some(Reference {
            name: "p".into(),
            uid: "u2".into(),
        }),
        node: None,
        audiences: vec!["a".into(), "b".into()],
        id: "id".into(),
        expires: Some(NOW + 600),
        legacy: false,
    }
}

fn check(token: &str, key: &SigningKey, now: i64) -> Result<Option<Claims>, String> {
    read(token, &[ISSUER.to_owned()], [key.public()], now).map_err(|error| error.to_string())
}

#[test]
fn an_issued_token_can_be_read() {
    let key = key();
    let token = issue(&key, ISSUER, &claims(), NOW).expect("it is issued");
    assert_eq!(check(&token, &key, NOW), Ok(Some(claims())));
    let legacy = Claims {
        legacy: true,
        pod: None,
        audiences: Vec::new(),
        id: "".into(),
        expires: None,
        secret: Some(Reference {
            name: "s".into(),
            uid: "".into(),
        }),
        ..claims()
    };
    let token = issue(&key, ISSUER, &legacy, NOW).expect("it is issued");
    assert_eq!(check(&token, &key, NOW), Ok(Some(legacy)));
}

#[test]
fn times_are_checked_with_a_minute_of_leeway() {
    let key = key();
    let token = issue(&key, ISSUER, &claims(), NOW).expect("it is issued");
    assert!(check(&token, &key, NOW + 660).is_ok());
    let expired = check(&token, &key, NOW + 661);
    assert_eq!(expired, Err("service account token has expired".to_owned()));
    assert!(claims().check_end(NOW + 660).is_ok());
    assert!(claims().check_end(NOW + 661).is_err());
    assert!(check(&token, &key, NOW - 60).is_ok());
    let early = check(&token, &key, NOW - 61);
    assert_eq!(
        early,
        Err("service account token is not valid yet".to_owned())
    );
}

#[test]
fn foreign_tokens_are_ignored_and_forged_ones_are_refused() {
    let (key, other) = (key(), key());
    let token = issue(&key, "https://elsewhere.example.com", &claims(), NOW).expect("issued");
    assert_eq!(check(&token, &key, NOW), Ok(None));
    for text in [
        "",
        "a.b",
        "a.b.c.d",
        "....",
        &".".repeat(15_000),
        "opaque-token",
    ] {
        assert_eq!(check(text, &key, NOW), Ok(None), "{text}");
    }
    let token = issue(&other, ISSUER, &claims(), NOW).expect("it is issued");
    assert_eq!(
        check(&token, &key, NOW),
        Err("invalid signature, no keys found".to_owned())
    );
    let token = issue(&key, ISSUER, &claims(), NOW).expect("it is issued");
    let cut = &token[..token.len() - 2];
    assert_eq!(check(cut, &key, NOW), Err("invalid signature".to_owned()));
}

/// Returns a token with any header over valid claims, signed by the key.
fn with_header(key: &SigningKey, header: &str, claims: &str) -> String {
    let head = format!(
        "{}.{}",
        URL_SAFE_NO_PAD.encode(header),
        URL_SAFE_NO_PAD.encode(claims)
    );
    let signature = key.sign(head.as_bytes()).expect("it signs");
    format!("{head}.{}", URL_SAFE_NO_PAD.encode(signature))
}

#[test]
fn the_header_cannot_choose_the_verification() {
    let key = key();
    let good = format!(
        r#"{{"iss":"{ISSUER}","sub":"system:serviceaccount:ns:robot","exp":{},"aud":["a"],
            "kubernetes.io":{{"namespace":"ns","serviceaccount":{{"name":"robot","uid":"u1"}}}}}}"#,
        NOW + 600
    );
    let checked = |header: &str, claims: &str| check(&with_header(&key, header, claims), &key, NOW);
    assert!(checked(r#"{"alg":"ES256"}"#, &good).is_ok_and(|found| found.is_some()));
    for header in [
        r#"{"alg":"none"}"#,
        r#"{"alg":"HS256"}"#,
        r#"{"alg":"RS256"}"#,
        r#"{"alg":"ES384"}"#,
    ] {
        let refused = checked(header, &good);
        assert_eq!(refused, Err("invalid signature".to_owned()), "{header}");
    }
    let elsewhere = checked(r#"{"alg":"ES256","kid":"../../etc/passwd"}"#, &good);
    assert_eq!(
        elsewhere,
        Err("invalid signature, no keys found".to_owned())
    );
    // Headers with unsupported features or duplicate members make the token foreign.
    for header in [
        r#"{"alg":"ES256","crit":["b64"]}"#,
        r#"{"alg":"ES256","zip":"DEF"}"#,
        r#"{"alg":"ES256","enc":"A256GCM"}"#,
        r#"{"alg":"none","alg":"ES256"}"#,
    ] {
        assert_eq!(checked(header, &good), Ok(None), "{header}");
    }
    let twice = good.replacen("\"aud\"", "\"sub\":\"x\",\"aud\"", 1);
    assert_eq!(checked(r#"{"alg":"ES256"}"#, &twice), Ok(None));
    let other_name = good.replace(":ns:robot", ":ns:admin");
    let refused = checked(r#"{"alg":"ES256"}"#, &other_name);
    assert_eq!(refused, Err("sub claim is invalid".to_owned()));
}
