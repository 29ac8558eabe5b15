//! Tests of EncryptionConfiguration files.

#![allow(clippy::unwrap_used)]
use super::*;

const HEAD: &str =
    "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n";
/// A key of 32 bytes in base64.
const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

fn parse(rules: &str) -> Result<Config, String> {
    Config::parse(&format!("{HEAD}{rules}")).map_err(|error| error.to_string())
}

fn with(resources: &str, provider: &str) -> String {
    format!("- resources: [{resources}]\n  providers:\n  - {provider}\n")
}

#[test]
fn a_configuration_with_every_provider_is_read() {
    let config = parse(&format!(
        "- resources: [secrets, configmaps., deployments.apps]
  providers:
  - aesgcm: {{keys: [{{name: new, secret: {KEY}}}, {{name: old, secret: {KEY}}}]}}
  - aescbc: {{keys: [{{name: a, secret: {KEY}}}]}}
  - secretbox: {{keys: [{{name: b, secret: {KEY}}}]}}
  - kms: {{apiVersion: v2, name: vault, endpoint: 'unix:///run/kms.sock', timeout: 5s}}
  - identity: {{}}
- resources: ['*.apps']
  providers: [{{identity: {{}}}}]
- resources: ['*.*']
  providers: [{{aesgcm: {{keys: [{{name: all, secret: {KEY}}}]}}}}]
"
    ))
    .unwrap();
    let providers = &config.rules[0].providers;
    assert_eq!(providers.len(), 5);
    assert!(matches!(&providers[0], ProviderConfig::AesGcm(keys) if keys[1].name == "old"));
    let expected = ProviderConfig::Kms {
        name: "vault".to_owned(),
        socket: "/run/kms.sock".into(),
        timeout: Duration::from_secs(5),
    };
    assert_eq!(providers[3], expected);
    let rule = |stored: &str| {
        let mut rules = config.rules.iter();
        rules.position(|rule| rule.resources.iter().any(|it| it.matches(stored)))
    };
    assert_eq!(rule("core/secrets"), Some(0));
    assert_eq!(rule("core/configmaps"), Some(0));
    assert_eq!(rule("apps/deployments"), Some(0));
    assert_eq!(rule("apps/replicasets"), Some(1));
    assert_eq!(rule("example.com/secrets"), Some(2));
    assert!(!format!("{config:?}").contains("31"), "keys are not shown");
}

#[test]
fn what_cannot_be_used_is_refused_in_words() {
    let identity = "identity: {}";
    let gcm = |size: usize| {
        let key = STANDARD.encode(vec![1; size]);
        format!("aesgcm: {{keys: [{{name: a, secret: {key}}}]}}")
    };
    for (rules, words) in [
        (
            with("secrets", &gcm(24)),
            "the key has 24 bytes; it must have 16 or 32",
        ),
        (
            with("secrets", "aesgcm: {keys: [{name: a, secret: '?'}]}"),
            "not base64",
        ),
        (with("secrets", "aesgcm: {keys: []}"), "at least one item"),
        (
            with("secrets", "aesgcm: {keys: [{name: 'a:b', secret: AA==}]}"),
            "without a colon",
        ),
        (with("secrets", "rot13: {}"), "there is no field \"rot13\""),
        (
            with("secrets", "{identity: {}, aesgcm: {keys: []}}"),
            "exactly one of",
        ),
        (
            with(
                "secrets",
                &format!("aescbc: {{keys: [{{name: a, secret: {KEY}}}]}}"),
            ),
            "put aesgcm, secretbox or kms first",
        ),
        (
            with(
                "secrets",
                "kms: {apiVersion: v1, name: a, endpoint: 'unix:///a'}",
            ),
            "only v2",
        ),
        (
            with(
                "secrets",
                "kms: {apiVersion: v2, name: a, endpoint: 'tcp://a'}",
            ),
            "must be a socket",
        ),
        (
            with(
                "secrets",
                "kms: {apiVersion: v2, name: a, endpoint: 'unix:///a', cachesize: 5}",
            ),
            "no such setting",
        ),
        (with("'*'", identity), "use \"*.*\""),
        (with("'secrets.*'", identity), "name the group"),
        (with("secrets, secrets", identity), "twice"),
        (with("pods/status", identity), "not a resource"),
        (
            with("'*.*'", identity) + &with("secrets", identity),
            "more specific rule first",
        ),
        (
            with("secrets", identity) + &with("secrets.", identity),
            "more specific rule first",
        ),
    ] {
        let error = parse(&rules).unwrap_err();
        assert!(error.contains(words), "{rules}: {error}");
    }
    assert!(Config::parse("kind: Other\n").is_err());
    assert!(Config::parse("a: [").is_err());
}
