//! Which rule matches which request, and which policies are refused.

#![allow(clippy::unwrap_used)]

use super::{Attributes, Policy, Target};
use crate::{Level, Stage};
use bareboat_api::Str;
use bareboat_api::kind::User;

fn policy(rules: &str) -> Policy {
    Policy::parse(format!("apiVersion: audit.k8s.io/v1\nkind: Policy\n{rules}").as_bytes()).unwrap()
}

fn user(name: &str, groups: &[&str]) -> User {
    User {
        name: Str::new(name),
        groups: groups.iter().map(|group| Str::new(*group)).collect(),
        ..User::default()
    }
}

/// The level for a request of ann, who is in the group `staff`.
fn level(policy: &Policy, verb: &str, target: Target<'_>) -> Level {
    let ann = user("ann", &["staff", "system:authenticated"]);
    let request = Attributes {
        user: Some(&ann),
        verb,
        target,
    };
    policy.decide(&request).level
}

/// `namespace/resource.group/subresource:name` as a target; a dash is nothing.
fn resource(text: &'static str) -> Target<'static> {
    let (text, name) = text.split_once(':').unwrap_or((text, ""));
    let mut parts = text.split('/');
    let namespace = parts.next().unwrap();
    let (resource, group) = {
        let both = parts.next().unwrap();
        both.split_once('.').unwrap_or((both, ""))
    };
    Target::Resource {
        group,
        resource,
        subresource: parts.next().unwrap_or(""),
        namespace: if namespace == "-" { "" } else { namespace },
        name,
    }
}

#[test]
fn the_first_rule_that_matches_decides() {
    let policy = policy(
        "rules:\n\
         - {level: None, verbs: [watch]}\n\
         - {level: Request, verbs: [create, watch]}\n\
         - {level: Metadata, verbs: [create]}\n",
    );
    assert_eq!(level(&policy, "watch", resource("a/pods")), Level::None);
    assert_eq!(level(&policy, "create", resource("a/pods")), Level::Request);
    assert_eq!(level(&policy, "get", resource("a/pods")), Level::None);
}

#[test]
fn users_and_groups_must_both_match() {
    let both = policy("rules: [{level: Metadata, users: [ann], userGroups: [admins]}]\n");
    assert_eq!(level(&both, "get", Target::Path("/version")), Level::None);
    let one = policy("rules: [{level: Metadata, users: [bob, ann], userGroups: [x, staff]}]\n");
    assert_eq!(
        level(&one, "get", Target::Path("/version")),
        Level::Metadata
    );
    let nobody = Attributes {
        user: None,
        verb: "get",
        target: Target::Path("/version"),
    };
    assert_eq!(one.decide(&nobody).level, Level::None);
    let all = policy("rules: [{level: Metadata}]\n");
    assert_eq!(all.decide(&nobody).level, Level::Metadata);
}

#[test]
fn patterns_of_resources() {
    for (pattern, target, fits) in [
        ("pods", "a/pods", true),
        ("pods", "a/pods/log", false),
        ("pods/log", "a/pods/log", true),
        ("pods/log", "a/pods", false),
        ("pods/*", "a/pods/log", true),
        ("pods/*", "a/pods", true),
        ("pods/*", "a/podtemplates", false),
        ("*/status", "a/pods/status", true),
        ("*/status", "a/pods", false),
        ("*", "a/pods", true),
        ("*", "a/pods/exec", true),
        ("pods", "a/pods.metrics.k8s.io", false),
    ] {
        let text =
            format!("rules: [{{level: Metadata, resources: [{{resources: ['{pattern}']}}]}}]\n");
        let found = level(&policy(&text), "get", resource(target));
        assert_eq!(found == Level::Metadata, fits, "{pattern} {target}");
    }
}

#[test]
fn groups_names_and_namespaces_of_resources() {
    let rules = policy("rules: [{level: Metadata, resources: [{group: apps}]}]\n");
    assert_eq!(
        level(&rules, "get", resource("a/deployments.apps/scale")),
        Level::Metadata
    );
    assert_eq!(level(&rules, "get", resource("a/pods")), Level::None);

    let rules = policy(
        "rules: [{level: Metadata, resources: [{resources: [configmaps], resourceNames: [x]}]}]\n",
    );
    assert_eq!(
        level(&rules, "get", resource("a/configmaps:x")),
        Level::Metadata
    );
    assert_eq!(
        level(&rules, "get", resource("a/configmaps:y")),
        Level::None
    );
    assert_eq!(level(&rules, "list", resource("a/configmaps")), Level::None);

    let rules = policy("rules: [{level: Metadata, namespaces: [a, '']}]\n");
    assert_eq!(level(&rules, "get", resource("a/pods")), Level::Metadata);
    assert_eq!(level(&rules, "get", resource("-/nodes")), Level::Metadata);
    assert_eq!(level(&rules, "get", resource("b/pods")), Level::None);
    assert_eq!(level(&rules, "get", Target::Path("/version")), Level::None);
}

#[test]
fn patterns_of_urls() {
    let rules = policy("rules: [{level: Metadata, nonResourceURLs: [/healthz, '/api*']}]\n");
    for (path, fits) in [
        ("/healthz", true),
        ("/healthz/ping", false),
        ("/api", true),
        ("/apis/apps", true),
        ("/version", false),
    ] {
        let found = level(&rules, "get", Target::Path(path));
        assert_eq!(found == Level::Metadata, fits, "{path}");
    }
    assert_eq!(level(&rules, "get", resource("a/pods")), Level::None);
    let all = policy("rules: [{level: Metadata, nonResourceURLs: ['*']}]\n");
    assert_eq!(
        level(&all, "get", Target::Path("/version")),
        Level::Metadata
    );
}

#[test]
fn stages_and_managed_fields_come_from_the_policy_and_the_rule() {
    let rules = policy(
        "omitStages: [RequestReceived]\nomitManagedFields: true\nrules:\n\
         - {level: Request, verbs: [get], omitStages: [Panic], omitManagedFields: false}\n\
         - {level: Request}\n",
    );
    let decide = |verb| {
        rules.decide(&Attributes {
            user: None,
            verb,
            target: Target::Path("/version"),
        })
    };
    let get = decide("get");
    assert!(get.omit.has(Stage::RequestReceived) && get.omit.has(Stage::Panic));
    assert!(!get.omit.has(Stage::ResponseComplete) && !get.omit_managed_fields);
    let put = decide("put");
    assert!(!put.omit.has(Stage::Panic) && put.omit_managed_fields);
}

#[test]
fn mistakes_are_named() {
    let head = "apiVersion: audit.k8s.io/v1\nkind: Policy\n";
    for (text, named) in [
        ("rules: []", "rules"),
        ("rules: [{level: All}]", "rules[0].level"),
        ("rules: [{}]", "rules[0].level"),
        ("rules: [{level: None, verb: [get]}]", "rules[0].verb"),
        ("rules: [{level: None, verbs: get}]", "rules[0].verbs"),
        ("rule: []", "rule"),
        ("rules: [{level: None}]\nrules: [{level: None}]", "rules"),
        ("rules: [{level: None, omitStages: [End]}]", "End"),
        ("rules: [{level: None, nonResourceURLs: [x]}]", "must begin"),
        (
            "rules: [{level: None, nonResourceURLs: ['/a*b']}]",
            "wildcard",
        ),
        (
            "rules: [{level: None, nonResourceURLs: ['/a'], namespaces: [b]}]",
            "both",
        ),
        (
            "rules: [{level: None, resources: [{group: apps/v1}]}]",
            "without a version",
        ),
        (
            "rules: [{level: None, resources: [{resourceNames: [a]}]}]",
            "at least one resource",
        ),
        ("rules: [", "policy"),
    ] {
        let error = Policy::parse(format!("{head}{text}\n").as_bytes()).unwrap_err();
        assert!(error.to_string().contains(named), "{text}: {error}");
    }
    let old = "apiVersion: audit.k8s.io/v1beta1\nkind: Policy\nrules: [{level: None}]\n";
    let error = Policy::parse(old.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("audit.k8s.io/v1"), "{error}");
}
