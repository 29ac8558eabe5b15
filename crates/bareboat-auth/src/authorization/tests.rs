//! The rules for the file, and what conditions say.
#![allow(clippy::unwrap_used)]

use super::*;
use bareboat_api::{Value, value};

fn parse(authorizers: &str) -> Result<AuthorizationConfiguration, String> {
    let text = format!(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers: [{authorizers}]\n"
    );
    AuthorizationConfiguration::parse(&text).map_err(|error| error.to_string())
}

#[track_caller]
fn refused(authorizers: &str, expected: &str) {
    let error = parse(authorizers).err().unwrap_or_default();
    assert!(error.contains(expected), "{authorizers}\n{error}");
}

const FILE: &str = "connectionInfo: {type: KubeConfigFile, kubeConfigFile: /a}";

fn hook(members: &str) -> String {
    format!("{{type: Webhook, name: a, webhook: {{{members}}}}}")
}

fn complete(more: &str) -> String {
    hook(&format!(
        "timeout: 3s, subjectAccessReviewVersion: v1, failurePolicy: Deny, {FILE}{more}"
    ))
}

#[test]
fn authorizers_are_read_in_order() {
    let text = format!("{}, {{type: RBAC, name: rbac}}", complete(""));
    let read = parse(&text).unwrap();
    assert_eq!(read.authorizers.len(), 2);
    let AuthorizerKind::Webhook(hook) = &read.authorizers[0].kind else {
        panic!("the first is a webhook");
    };
    assert_eq!(hook.timeout, Duration::from_secs(3));
    assert_eq!(hook.authorized_ttl, Some(Duration::from_secs(300)));
    assert_eq!(hook.unauthorized_ttl, Some(Duration::from_secs(30)));
    assert_eq!(hook.failure_policy, FailurePolicy::Deny);
    assert!(matches!(read.authorizers[1].kind, AuthorizerKind::Rbac));
    let never = complete(", cacheAuthorizedRequests: false, unauthorizedTTL: 1s");
    let read = parse(&never).unwrap();
    let AuthorizerKind::Webhook(hook) = &read.authorizers[0].kind else {
        panic!("it is a webhook");
    };
    assert_eq!(
        (hook.authorized_ttl, hook.unauthorized_ttl),
        (None, Some(Duration::from_secs(1)))
    );
}

#[test]
fn mistakes_are_named() {
    refused(
        "",
        "authorizers: Required value: at least one authorization mode must be defined",
    );
    refused("{name: a}", "authorizers[0].type: Required value");
    refused(
        "{type: Node, name: a}",
        "authorizers[0].type: Unsupported value: \"Node\"",
    );
    refused("{type: RBAC}", "authorizers[0].name: Required value");
    refused("{type: RBAC, name: A_}", "authorizer name is invalid");
    refused(
        "{type: RBAC, name: a}, {type: RBAC, name: b}",
        "authorizers[1].type: Duplicate value: \"RBAC\"",
    );
    refused(
        "{type: RBAC, name: a}, {type: AlwaysDeny, name: a}",
        "authorizers[1].name: Duplicate value",
    );
    refused(
        "{type: Webhook, name: a}",
        "webhook: Required value: required when type=Webhook",
    );
    refused(
        "{type: RBAC, name: a, webhook: {}}",
        "may only be specified when type=Webhook",
    );
    refused(
        "{type: RBAC, name: a, color: red}",
        "unknown field \"authorizers[0].color\"",
    );
    refused(&hook(FILE), "authorizers[0].timeout: Required value");
    refused(
        &hook(FILE),
        "authorizers[0].subjectAccessReviewVersion: Required value",
    );
    refused(&hook(FILE), "authorizers[0].failurePolicy: Required value");
    refused(&hook("timeout: 31s"), "must be > 0s and <= 30s");
    refused(&hook("timeout: soon"), "must be a duration");
    refused(
        &hook("authorizedTTL: -1s"),
        "authorizedTTL: Invalid value: \"-1s\": must be > 0s",
    );
    refused(
        &hook("failurePolicy: Allow"),
        "Unsupported value: \"Allow\"",
    );
    refused(&hook("timeout: 3s"), "connectionInfo.type: Required value");
    refused(
        &hook("connectionInfo: {type: KubeConfigFile, kubeConfigFile: a}"),
        "kubeConfigFile: Invalid value: \"a\": must be an absolute path",
    );
    refused(
        &complete(", matchConditions: [{expression: ''}]"),
        "matchConditions[0].expression: Required value",
    );
    refused(
        &complete(", matchConditions: [{expression: 'true'}]"),
        "required if match conditions are specified",
    );
    let version = ", matchConditionSubjectAccessReviewVersion: v1, matchConditions: ";
    refused(
        &complete(&format!("{version}[{{expression: request.user}}]")),
        "must evaluate to bool",
    );
    refused(
        &complete(&format!(
            "{version}[{{expression: \"request.nope == ''\"}}]"
        )),
        "undefined field 'nope'",
    );
    let twice = "[{expression: 'true'}, {expression: 'true'}]";
    refused(
        &complete(&format!("{version}{twice}")),
        "matchConditions[1].expression: Duplicate value",
    );
    let many: String = (0..65)
        .map(|n| format!("{{expression: '{n} == 1'}},"))
        .collect();
    refused(&complete(&format!("{version}[{many}]")), "Too many: 65");
}

#[test]
fn all_conditions_must_hold() {
    let conditions = |list: &str| {
        let version = "matchConditionSubjectAccessReviewVersion: v1";
        let read = parse(&complete(&format!(
            ", {version}, matchConditions: [{list}]"
        )))
        .unwrap();
        let kind = read.authorizers.into_iter().next().unwrap().kind;
        let AuthorizerKind::Webhook(hook) = kind else {
            panic!("it is a webhook");
        };
        hook.conditions
    };
    let request = |namespace: &str| -> Value {
        value!({
            "user": "ann", "groups": ["dev"], "extra": {}, "uid": "",
            "resourceAttributes": {"namespace": (namespace), "verb": "get", "resource": "pods"},
        })
    };
    let here = "{expression: \"request.resourceAttributes.namespace == 'a'\"}";
    let both = format!("{here}, {{expression: \"'dev' in request.groups\"}}");
    assert_eq!(conditions(&both).check(&request("a")), Matched::Yes);
    assert_eq!(conditions(&both).check(&request("b")), Matched::No);
    let path = value!({"user": "ann", "groups": [], "extra": {}, "uid": "",
        "nonResourceAttributes": {"path": "/metrics", "verb": "get"}});
    assert!(matches!(conditions(here).check(&path), Matched::Failed(_)));
    // A condition that is false decides, whatever another one fails with.
    let first = format!("{here}, {{expression: \"request.user == 'bob'\"}}");
    assert_eq!(conditions(&first).check(&path), Matched::No);
    let guarded = "{expression: has(request.resourceAttributes)}";
    assert_eq!(conditions(guarded).check(&path), Matched::No);
    assert_eq!(conditions(guarded).check(&request("a")), Matched::Yes);
    assert_eq!(MatchConditions::default().check(&path), Matched::Yes);
}
