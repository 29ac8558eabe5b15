//! What claims mean, and which are refused.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::AuthenticationConfiguration;

const NOW: i64 = 1_800_000_000;

fn issuer(mappings: &str, rest: &str) -> JwtIssuer {
    let text = format!(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt:\n- issuer: {{url: \
         'https://a.example', audiences: [x, w], audienceMatchPolicy: MatchAny}}\n  claimMappings: {{{mappings}}}\n{rest}"
    );
    let mut read = AuthenticationConfiguration::parse(&text, &[]).unwrap();
    read.issuers.remove(0)
}

fn claims(more: Value) -> Value {
    let mut claims = value!({
        "iss": "https://a.example", "aud": "x", "sub": "ann", "exp": (NOW + 60), "iat": (NOW), "nbf": (NOW),
    });
    for (key, value) in more.as_object().unwrap().iter() {
        claims.make_object().insert(key, value.clone());
    }
    claims
}

fn identify(issuer: &JwtIssuer, more: Value) -> Result<User, String> {
    issuer.identify(&claims(more), NOW).map(|found| found.user)
}

const NAME: &str = "username: {claim: sub, prefix: 'a:'}";

#[test]
fn claims_become_a_user() {
    let issuer = issuer(
        "username: {claim: sub, prefix: 'a:'}, groups: {claim: groups, prefix: 'g:'}, uid: {claim: uid}, extra: [{key: \
         a.example/team, valueExpression: claims.team}]",
        "",
    );
    let more = value!({"groups": ["dev", "", "ops"], "uid": "7", "team": ["red", "", "blue"], "jti": "j1"});
    let user = identify(&issuer, more).unwrap();
    assert_eq!((user.name.as_str(), user.uid.as_str()), ("a:ann", "7"));
    assert_eq!(user.groups, ["g:dev", "g:ops"]);
    assert_eq!(user.extra["a.example/team"], ["red", "blue"]);
    assert_eq!(user.extra[CREDENTIAL], ["JTI=j1"]);
    let one = value!({"groups": "dev", "uid": "7", "team": "red"});
    assert_eq!(identify(&issuer, one).unwrap().groups, ["g:dev"]);
    assert!(identify(&issuer, value!({"groups": [1], "uid": "7", "team": ""})).is_err());
    assert!(identify(&issuer, value!({"uid": 7, "team": ""})).is_err());
}

#[test]
fn expressions_become_a_user() {
    let issuer = issuer(
        "username: {expression: '\"a:\" + claims.sub'}, groups: {expression: 'claims.roles.split(\",\")'}, uid: \
         {expression: string(claims.n)}",
        "",
    );
    let user = identify(&issuer, value!({"roles": "dev,,ops", "n": 7})).unwrap();
    assert_eq!((user.name.as_str(), user.uid.as_str()), ("a:ann", "7"));
    assert_eq!(user.groups, ["dev", "ops"]);
    let error = identify(&issuer, value!({"n": 7})).err().unwrap();
    assert!(error.contains("groups cannot be computed"), "{error}");
}

#[test]
fn names_must_be_there_and_texts() {
    let plain = issuer(NAME, "");
    assert!(identify(&plain, value!({"sub": ""})).is_err());
    assert!(identify(&plain, value!({"sub": 1})).is_err());
    let computed = issuer("username: {expression: claims.sub}", "");
    assert!(identify(&computed, value!({"sub": ""})).is_err());
    assert!(identify(&computed, value!({"sub": ["ann"]})).is_err());
}

#[test]
fn names_of_the_system_are_refused_unless_the_mapping_spells_them() {
    let mappings = "username: {claim: sub, prefix: ''}, groups: {claim: groups, prefix: ''}";
    let plain = issuer(mappings, "");
    for name in [
        "system:admin",
        "system:serviceaccount:kube-system:root",
        "system:",
    ] {
        assert!(identify(&plain, value!({"sub": (name)})).is_err(), "{name}");
    }
    assert!(identify(&plain, value!({"groups": ["dev", "system:masters"]})).is_err());
    let prefix = issuer("username: {claim: sub, prefix: 'system:node:'}", "");
    assert_eq!(
        identify(&prefix, value!({})).unwrap().name,
        "system:node:ann"
    );
    let spelled = issuer(
        "username: {expression: \"'system:node:' + claims.sub\"}",
        "",
    );
    assert_eq!(
        identify(&spelled, value!({})).unwrap().name,
        "system:node:ann"
    );
    let computed = issuer("username: {expression: claims.sub}", "");
    assert!(identify(&computed, value!({"sub": "system:admin"})).is_err());
}

#[test]
fn an_email_that_is_not_verified_is_no_name() {
    let issuer = issuer("username: {claim: email, prefix: ''}", "");
    let mail = |verified: Value| {
        let mut more = value!({"email": "ann@a.example"});
        if !verified.is_null() {
            more.make_object().insert("email_verified", verified);
        }
        identify(&issuer, more).is_ok()
    };
    assert!(mail(Value::Null) && mail(Value::Bool(true)));
    assert!(!mail(Value::Bool(false)) && !mail(Value::from("true")));
}

#[test]
fn a_token_is_for_one_of_the_audiences() {
    let issuer = issuer(NAME, "");
    for good in [value!("x"), value!(["z", "w"])] {
        assert!(identify(&issuer, value!({"aud": (good)})).is_ok());
    }
    for bad in [
        value!("z"),
        value!(["z"]),
        value!([]),
        Value::Null,
        value!(["x", 1]),
    ] {
        assert!(
            identify(&issuer, value!({"aud": (bad.clone())})).is_err(),
            "{bad}"
        );
    }
}

#[test]
fn a_token_has_its_time() {
    let issuer = issuer(NAME, "");
    let refused = |more: Value, why: &str| {
        let error = identify(&issuer, more).err().unwrap_or_default();
        assert!(error.contains(why), "{error}");
    };
    refused(value!({"exp": (NOW - 1)}), "expired");
    refused(value!({"exp": null}), "not a time");
    refused(value!({"exp": "tomorrow"}), "not a time");
    refused(value!({"nbf": (NOW + 3600)}), "not valid yet");
    refused(value!({"iat": (NOW + 3600)}), "issued in the future");
    refused(value!({"iss": "https://b.example"}), "another issuer");
    let mut none = claims(value!({}));
    none.make_object().remove("exp");
    assert!(
        issuer
            .identify(&none, NOW)
            .err()
            .unwrap()
            .contains("no expiry")
    );
    let found = issuer.identify(&claims(value!({})), NOW).unwrap();
    assert_eq!(found.expires, NOW + 60);
}

#[test]
fn rules_must_hold() {
    let issuer = issuer(
        NAME,
        "  claimValidationRules:\n  - {claim: hd, requiredValue: a.example}\n  - {expression: claims.level > 1, message: \
         the level is too low}\n  userValidationRules:\n  - {expression: '!user.username.endsWith(\"bob\")', message: \
         not bob}\n",
    );
    let good = || value!({"hd": "a.example", "level": 2});
    assert!(identify(&issuer, good()).is_ok());
    let with = |key: &str, value: Value| {
        let mut more = good();
        more.make_object().insert(key, value);
        identify(&issuer, more).err().unwrap_or_default()
    };
    assert!(with("hd", Value::from("b.example")).contains("claim hd"));
    assert!(with("level", Value::from(1)).contains("the level is too low"));
    assert!(with("level", Value::from("high")).contains("no such overload"));
    assert!(with("sub", Value::from("bob")).contains("not bob"));
    let error = identify(&issuer, value!({"level": 2})).err().unwrap();
    assert_eq!(error, "claim hd not present");
}

#[test]
fn expressions_that_cost_too_much_fail() {
    let issuer = issuer(
        NAME,
        "  claimValidationRules:\n  - {expression: 'claims.a.all(x, claims.a.all(y, claims.a.all(z, x + y + z >= 0)))'}\n",
    );
    let many: Value = (0..1000).map(Value::from).collect();
    let error = identify(&issuer, value!({"a": (many)})).err().unwrap();
    assert!(error.contains("cost"), "{error}");
}
