//! Tests of which provider encrypts a resource.

#![allow(clippy::unwrap_used)]
use super::*;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

pub(crate) fn rules(providers: &[(&str, &str, u8)], plain: bool) -> Rules {
    let mut text =
        "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n\
                    - resources: [secrets]\n  providers:\n"
            .to_owned();
    for (kind, name, byte) in providers {
        let key = STANDARD.encode([*byte; 32]);
        text.push_str(&format!(
            "  - {kind}: {{keys: [{{name: {name}, secret: {key}}}]}}\n"
        ));
    }
    if plain {
        text.push_str("  - identity: {}\n");
    }
    Rules::new(&Config::parse(&text).unwrap()).unwrap()
}

const SECRETS: &str = "core/secrets";

#[test]
fn values_are_sealed_with_the_first_key_and_opened_with_any() {
    let old = rules(&[("aesgcm", "a", 1)], false);
    let stored = old.seal(SECRETS, "n/x", b"{}").unwrap().unwrap();
    assert!(stored.starts_with(b"bareboat:enc:aesgcm:v1:a:"));
    assert_eq!(prefix(&stored), b"bareboat:enc:aesgcm:v1:a:");
    let new = rules(&[("secretbox", "b", 2), ("aesgcm", "a", 1)], true);
    assert_eq!(new.open(SECRETS, "n/x", &stored).unwrap().unwrap(), b"{}");
    assert!(old.is_current(SECRETS, &stored) && !new.is_current(SECRETS, &stored));
    let again = new.seal(SECRETS, "n/x", b"{}").unwrap().unwrap();
    assert!(again.starts_with(b"bareboat:enc:secretbox:v1:b:"));
    assert!(new.is_current(SECRETS, &again));
    assert_eq!(new.open(SECRETS, "n/x", b"{}"), Ok(None));
}

#[test]
fn a_value_is_refused_elsewhere_and_with_other_keys() {
    for kind in ["aesgcm", "secretbox"] {
        let own = rules(&[(kind, "a", 1)], false);
        let stored = own.seal(SECRETS, "n/x", b"{}").unwrap().unwrap();
        let moved = own.open(SECRETS, "n/y", &stored).unwrap_err();
        assert!(matches!(moved, OpenError::WrongKey { .. }), "{moved}");
        let other = rules(&[(kind, "a", 2)], false).open(SECRETS, "n/x", &stored);
        assert!(matches!(other, Err(OpenError::WrongKey { .. })));
        let unknown = rules(&[(kind, "b", 1)], true).open(SECRETS, "n/x", &stored);
        let words = unknown.unwrap_err().to_string();
        assert!(words.contains(&format!("the {kind} key \"a\"")), "{words}");
        let nothing = Rules::none().open(SECRETS, "n/x", &stored);
        assert!(matches!(nothing, Err(OpenError::NoKey { .. })));
        assert_eq!(own.open(SECRETS, "n/x", b"{}"), Err(OpenError::Plain));
        // Values of resources without a rule are passed unchanged.
        assert_eq!(own.open("core/pods", "n/x", b"{}"), Ok(None));
        assert_eq!(own.seal("core/pods", "n/x", b"{}"), Ok(None));
        assert!(own.is_current("core/pods", b"{}"));
    }
}

/// Checks that values in kube-apiserver's format are read. The value was made with OpenSSL.
#[test]
fn values_of_kube_apiserver_are_read() {
    let read = rules(&[("aesgcm", "w", 9), ("aescbc", "k", 0x11)], false);
    let sealed = cbc_vector();
    let stored = [b"k8s:enc:aescbc:v1:k:", &sealed[..]].concat();
    assert_eq!(
        read.open(SECRETS, "n/x", &stored).unwrap().unwrap(),
        b"{\"kind\":\"Secret\"}"
    );
    assert!(!read.is_current(SECRETS, &stored));
    for damaged in [
        &b"k8s:enc:"[..],
        b"k8s:enc:aesgcm:v1:w:",
        b"k8s:enc:aesgcm:v1:w:short",
    ] {
        assert!(read.open(SECRETS, "n/x", damaged).is_err());
    }
}

fn cbc_vector() -> Vec<u8> {
    let iv = [0x22u8; 16];
    let sealed = CBC_SEALED
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap());
    iv.into_iter().chain(sealed).collect()
}

const CBC_SEALED: &str = "1c9fa13de28a4837b92b4759fe34aea690b206962aca524884cddfed90ff5312";
