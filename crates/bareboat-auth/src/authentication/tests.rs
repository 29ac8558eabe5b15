//! The rules for the file, one by one.
#![allow(clippy::unwrap_used)]

use super::*;

fn parse(jwt: &str) -> Result<AuthenticationConfiguration, String> {
    let text = format!(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt:\n{jwt}"
    );
    let disallowed = ["https://accounts.example".to_owned()];
    AuthenticationConfiguration::parse(&text, &disallowed).map_err(|error| error.to_string())
}

/// An issuer with these lines about itself, about mappings, and besides.
fn issuer(issuer: &str, mappings: &str, rest: &str) -> String {
    format!("- issuer: {{{issuer}}}\n  claimMappings: {{{mappings}}}\n{rest}")
}

const GOOD: &str = "url: https://a.example, audiences: [x]";
const NAME: &str = "username: {claim: sub, prefix: 'a:'}";

#[track_caller]
fn refused(jwt: &str, expected: &str) {
    let error = parse(jwt).err().unwrap_or_default();
    assert!(error.contains(expected), "{jwt}\n{error}");
}

#[test]
fn a_whole_configuration_is_read() {
    let ca = rcgen::generate_simple_self_signed(vec!["a".to_owned()]).unwrap();
    let ca = ca.cert.pem().replace('\n', "\n      ");
    let jwt = format!(
        "- issuer:\n    url: https://a.example\n    discoveryURL: https://b.example/doc\n    audiences: [x, w]\n    \
         audienceMatchPolicy: MatchAny\n    certificateAuthority: |\n      {ca}\n  \
         claimValidationRules:\n  - claim: hd\n    requiredValue: example.com\n  - expression: claims.n == 1\n    \
         message: n must be 1\n  claimMappings:\n    username: {{expression: claims.sub}}\n    groups: {{claim: g, \
         prefix: ''}}\n    uid: {{claim: uid}}\n    extra:\n    - key: example.org/x\n      valueExpression: \
         claims.x\n  userValidationRules:\n  - expression: \"!user.username.startsWith('x')\"\n"
    );
    let read = parse(&jwt).unwrap();
    assert_eq!(read.anonymous, None);
    let issuer = &read.issuers[0];
    assert_eq!(issuer.url(), "https://a.example");
    assert_eq!(issuer.document_url(), "https://b.example/doc");
    assert!(issuer.certificate_authority().contains("BEGIN CERTIFICATE"));
    let plain = parse(&self::issuer(GOOD, NAME, "")).unwrap();
    let expected = "https://a.example/.well-known/openid-configuration";
    assert_eq!(plain.issuers[0].document_url(), expected);
    assert!(parse("").unwrap().issuers.is_empty());
}

/// The files that the documentation shows.
#[test]
fn the_documentation_can_be_used() {
    let page = include_str!("../../../../docs/identity.md");
    let files: Vec<&str> = page
        .split("```yaml\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
        .collect();
    let [authentication, authorization] = files.as_slice() else {
        panic!("there are {} files", files.len());
    };
    let read = AuthenticationConfiguration::parse(authentication, &[]).unwrap();
    assert_eq!(read.issuers.len(), 1);
    let read = crate::authorization::AuthorizationConfiguration::parse(authorization).unwrap();
    assert_eq!(read.authorizers.len(), 2);
}

#[test]
fn other_kinds_versions_and_fields_are_refused() {
    let read = |text: &str| AuthenticationConfiguration::parse(text, &[]).map(|_| ());
    let head = "kind: AuthenticationConfiguration\napiVersion: apiserver.config.k8s.io/";
    assert!(read(&format!("{head}v1\n")).is_ok());
    assert!(read(&format!("{head}v1beta1\n")).is_ok());
    assert!(read(&format!("{head}v2\n")).is_err());
    assert!(read("kind: Config\napiVersion: v1\n").is_err());
    assert!(read("nonsense").is_err());
    assert!(read(&format!("{head}v1\njwt: []\njwt: []\n")).is_err());
    refused("- issuers: {}\n", "unknown field \"jwt[0].issuers\"");
    refused("- issuer: []\n", "jwt[0].issuer: must be an object");
    refused(
        &issuer("url: 1", NAME, ""),
        "jwt[0].issuer.url: must be a string",
    );
}

#[test]
fn urls_are_https_and_nothing_else() {
    let check = |url: &str, why: &str| {
        refused(
            &issuer(&format!("url: '{url}', audiences: [x]"), NAME, ""),
            why,
        );
    };
    refused(
        &issuer("audiences: [x]", NAME, ""),
        "jwt[0].issuer.url: Required value",
    );
    check("http://a.example", "URL scheme must be https");
    check("a.example", "URL scheme must be https");
    check(
        "https://me@a.example",
        "URL must not contain a username or password",
    );
    check("https://a.example?x=1", "URL must not contain a query");
    check("https://a.example#x", "URL must not contain a fragment");
    check("https://", "URL must contain a host");
    check(
        "https://accounts.example",
        "URL must not overlap with disallowed issuers: [https://accounts.example]",
    );
    let twice = issuer(GOOD, NAME, "") + &issuer(GOOD, NAME, "");
    refused(
        &twice,
        "jwt[1].issuer.url: Duplicate value: \"https://a.example\"",
    );
    let same = "url: https://a.example, discoveryURL: https://a.example/, audiences: [x]";
    refused(
        &issuer(same, NAME, ""),
        "discoveryURL must be different from URL",
    );
    let one = "url: https://a.example, discoveryURL: https://d.example, audiences: [x]";
    let other = "url: https://b.example, discoveryURL: https://d.example, audiences: [x]";
    let both = issuer(one, NAME, "") + &issuer(other, NAME, "");
    refused(&both, "jwt[1].issuer.discoveryURL: Duplicate value");
    let many: String = (0..65).map(|_| issuer(GOOD, NAME, "")).collect();
    refused(&many, "jwt: Too many: 65: must have at most 64 items");
}

#[test]
fn audiences_are_named_once() {
    let check = |audiences: &str, why: &str| {
        refused(
            &issuer(&format!("url: https://a.example, {audiences}"), NAME, ""),
            why,
        );
    };
    check(
        "audiences: []",
        "at least one jwt[0].issuer.audiences is required",
    );
    check(
        "audiences: ['']",
        "jwt[0].issuer.audiences[0]: Required value",
    );
    check(
        "audiences: [x, x]",
        "jwt[0].issuer.audiences[1]: Duplicate value: \"x\"",
    );
    check(
        "audiences: [x, w]",
        "audienceMatchPolicy must be MatchAny for multiple audiences",
    );
    check(
        "audiences: [x], audienceMatchPolicy: All",
        "audienceMatchPolicy must be empty or MatchAny for single audience",
    );
    check(
        "audiences: [x], certificateAuthority: nonsense",
        "jwt[0].issuer.certificateAuthority: Invalid value: \"<omitted>\"",
    );
}

#[test]
fn a_mapping_is_a_claim_with_a_prefix_or_an_expression() {
    let check = |mappings: &str, why: &str| refused(&issuer(GOOD, mappings, ""), why);
    check(
        "",
        "jwt[0].claimMappings.username: Required value: claim or expression is required",
    );
    check(
        "username: {claim: a, prefix: '', expression: claims.a}",
        "claim and expression can't both be set",
    );
    check(
        "username: {claim: a}",
        "jwt[0].claimMappings.username.prefix: Required value: prefix is required when claim is set. It can be set to \
         an empty string to disable prefixing",
    );
    check(
        "username: {expression: claims.a, prefix: ''}",
        "jwt[0].claimMappings.username.prefix: Invalid value: \"\": may not be specified when expression is set",
    );
    check("username: {expression: 'claims.'}", "compilation failed");
    check(
        "username: {expression: user.name}",
        "undeclared reference to 'user'",
    );
    check(
        &format!("{NAME}, groups: {{claim: g}}"),
        "groups.prefix: Required value",
    );
    check(
        &format!("{NAME}, uid: {{claim: a, expression: claims.a}}"),
        "claimMappings.uid: Invalid value",
    );
}

#[test]
fn an_email_must_be_verified() {
    let text = "claims.email_verified must be used in claimMappings.username.expression";
    let email = "username: {expression: claims.email}";
    refused(&issuer(GOOD, email, ""), text);
    for spelling in ["'claims[\"email\"]'", "'claims.?email.orValue(\"\")'"] {
        let name = format!("username: {{expression: {spelling}}}");
        refused(&issuer(GOOD, &name, ""), text);
    }
    let rule = "  claimValidationRules: [{expression: 'claims.email_verified == true'}]\n";
    assert!(parse(&issuer(GOOD, email, rule)).is_ok());
    let inside = "username: {expression: 'claims.email_verified ? claims.email : \"\"'}";
    assert!(parse(&issuer(GOOD, inside, "")).is_ok());
    let extra = "extra: [{key: a.example/v, valueExpression: 'string(claims.email_verified)'}]";
    assert!(parse(&issuer(GOOD, &format!("{email}, {extra}"), "")).is_ok());
    assert!(parse(&issuer(GOOD, "username: {claim: email, prefix: ''}", "")).is_ok());
}

#[test]
fn extra_keys_are_lower_case_paths_of_other_domains() {
    let check = |key: &str, why: &str| {
        let extra = format!("{NAME}, extra: [{{key: '{key}', valueExpression: claims.a}}]");
        refused(&issuer(GOOD, &extra, ""), why);
    };
    check("", "jwt[0].claimMappings.extra[0].key: Required value");
    check(
        "foo",
        "must be a domain-prefixed path (such as \"acme.io/foo\")",
    );
    check("a.example/Foo", "must be lowercase");
    for reserved in [
        "k8s.io/a",
        "kubernetes.io/a",
        "x.k8s.io/a",
        "x.kubernetes.io/a",
    ] {
        check(
            reserved,
            "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use",
        );
    }
    let item = "{key: a.example/b, valueExpression: claims.a}";
    let twice = format!("{NAME}, extra: [{item}, {item}]");
    refused(&issuer(GOOD, &twice, ""), "extra[1].key: Duplicate value");
    let empty = format!("{NAME}, extra: [{{key: a.example/b}}]");
    refused(
        &issuer(GOOD, &empty, ""),
        "extra[0].valueExpression: Required value",
    );
}

#[test]
fn rules_are_claims_or_conditions() {
    let check = |rules: &str, why: &str| {
        refused(
            &issuer(GOOD, NAME, &format!("  claimValidationRules: [{rules}]\n")),
            why,
        );
    };
    check("{}", "claim or expression is required");
    check(
        "{claim: a, expression: 'true'}",
        "claim and expression can't both be set",
    );
    check(
        "{claim: a, message: m}",
        "may not be specified when claim is set",
    );
    check(
        "{claim: a}, {claim: a}",
        "claimValidationRules[1].claim: Duplicate value",
    );
    check(
        "{expression: 'true', requiredValue: v}",
        "may not be specified when expression is set",
    );
    check(
        "{expression: 'true'}, {expression: 'true'}",
        "[1].expression: Duplicate value",
    );
    check("{expression: claims.a}", "must evaluate to bool");
    check("{expression: \"'a'\"}", "must evaluate to bool");
    let check = |rules: &str, why: &str| {
        refused(
            &issuer(GOOD, NAME, &format!("  userValidationRules: [{rules}]\n")),
            why,
        );
    };
    check("{}", "userValidationRules[0].expression: Required value");
    check(
        "{expression: claims.a == 1}",
        "undeclared reference to 'claims'",
    );
    check("{expression: user.nope == 'a'}", "undefined field 'nope'");
    check("{expression: user.username}", "must evaluate to bool");
}

#[test]
fn anonymous_requests_are_off_on_or_for_exact_paths() {
    let read = |section: &str| {
        let text = format!(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\nanonymous: {section}\n"
        );
        AuthenticationConfiguration::parse(&text, &[]).map(|read| read.anonymous.unwrap())
    };
    let public = |path: &str| path == "/livez";
    let off = read("{enabled: false}").unwrap();
    assert!(!off.accepts("/livez", public));
    let on = read("{enabled: true}").unwrap();
    assert!(on.accepts("/api/v1/pods", public));
    let some = read("{enabled: true, conditions: [{path: /livez}, {path: /readyz}]}").unwrap();
    assert!(some.accepts("/livez", public) && some.accepts("/readyz", public));
    for path in [
        "/livez/",
        "//livez",
        "/LIVEZ",
        "/livez;x",
        "/livez/../api",
        "/livez/ping",
        "/",
    ] {
        assert!(!some.accepts(path, public), "{path}");
    }
    let default = AnonymousRule::default();
    assert!(default.accepts("/livez", public) && !default.accepts("/api", public));
    let error = read("{enabled: false, conditions: [{path: /a}]}")
        .err()
        .unwrap();
    let why = "enabled should be set to true when conditions are defined";
    assert!(error.to_string().contains(why), "{error}");
}
