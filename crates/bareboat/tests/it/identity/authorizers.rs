//! Authorizers of an AuthorizationConfiguration: webhooks before and after RBAC.

use super::peer::{Peer, Reply};
use crate::socket::{As, Connection};
use crate::support::*;
use bareboat::server::authz::{AuthorizationConfiguration, ConfiguredAuthorizer};
use bareboat_testing::TestServer;
use std::sync::{Arc, Mutex};

struct Setting {
    server: TestServer,
    authorizer: ConfiguredAuthorizer,
}

pub(super) fn configuration(authorizers: Value) -> AuthorizationConfiguration {
    let file = json!({
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AuthorizationConfiguration",
        "authorizers": authorizers,
    });
    AuthorizationConfiguration::parse(&file.to_string()).unwrap()
}

pub(super) fn hook(file: &tempfile::NamedTempFile, more: Value) -> Value {
    let mut webhook = json!({
        "timeout": "10s", "subjectAccessReviewVersion": "v1", "failurePolicy": "NoOpinion",
        "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": file.path()},
    });
    for (key, value) in more.as_object().unwrap() {
        webhook[key] = value.clone();
    }
    json!({"type": "Webhook", "name": "hook", "webhook": webhook})
}

fn rbac() -> Value {
    json!({"type": "RBAC", "name": "rbac"})
}

async fn setting(authorizers: Value) -> Setting {
    let made = Arc::new(Mutex::new(None));
    let keep = made.clone();
    let server = TestServer::builder()
        .token("a", "ann", &[])
        .with(move |builder| {
            builder.map_authorizer(|rbac| {
                let configured = ConfiguredAuthorizer::new(rbac);
                *keep.lock().unwrap() = Some(configured.clone());
                configured
            })
        })
        .default_roles()
        .listening()
        .start()
        .await;
    let authorizer = made.lock().unwrap().clone().unwrap();
    authorizer.replace(configuration(authorizers)).unwrap();
    Setting { server, authorizer }
}

async fn get(setting: &Setting, path: &str) -> (u16, String) {
    let mut connection = Connection::http1(&setting.server, As::Nobody).await;
    let header = [("authorization", "Bearer a")];
    let answer = connection.send("GET", path, &header, "").await;
    let message = match answer.code {
        200 => String::new(),
        _ => answer.status().2,
    };
    (answer.code, message)
}

fn says(status: Value) -> impl Fn(&str, &Value) -> Reply + Send + Sync + 'static {
    move |_, _| Reply::json(json!({"status": status}))
}

#[tokio::test]
async fn the_first_that_allows_or_denies_decides() {
    let peer = Peer::start(says(json!({"allowed": true}))).await;
    let file = peer.kubeconfig("/authorize");
    let never = json!({"cacheAuthorizedRequests": false, "cacheUnauthorizedRequests": false});
    let setting = setting(json!([hook(&file, never.clone()), rbac()])).await;
    assert_eq!(get(&setting, MAPS).await.0, 200);
    peer.rewrite(says(
        json!({"allowed": false, "denied": true, "reason": "not today"}),
    ));
    let (code, message) = get(&setting, MAPS).await;
    assert_eq!(code, 403);
    assert!(message.ends_with(": not today"), "{message}");
    // What RBAC allows is refused by a webhook before it, and allowed by one behind it.
    assert_eq!(get(&setting, "/api").await.0, 403);
    let behind = json!([rbac(), hook(&file, never.clone())]);
    setting.authorizer.replace(configuration(behind)).unwrap();
    assert_eq!(get(&setting, "/api").await.0, 200);
    peer.rewrite(says(json!({"allowed": false, "reason": "no opinion here"})));
    let (code, message) = get(&setting, MAPS).await;
    assert_eq!(code, 403);
    assert!(message.ends_with(": no opinion here"), "{message}");
    let all = json!([{"type": "AlwaysAllow", "name": "a"}]);
    setting.authorizer.replace(configuration(all)).unwrap();
    assert_eq!(get(&setting, MAPS).await.0, 200);
    let none = json!([{"type": "AlwaysDeny", "name": "a"}]);
    setting.authorizer.replace(configuration(none)).unwrap();
    assert_eq!(get(&setting, "/api").await.0, 403);
}

#[tokio::test]
async fn the_webhook_is_told_everything_about_the_request() {
    let peer = Peer::start(says(json!({"allowed": true}))).await;
    let file = peer.kubeconfig("/authorize");
    let setting = setting(json!([hook(&file, json!({}))])).await;
    let query =
        "fieldSelector=metadata.name%3Da,metadata.name!%3Db&labelSelector=x%3Dy,z,!w,n+in+(1,2)";
    assert_eq!(get(&setting, &format!("{MAPS}?{query}")).await.0, 200);
    let review = &peer.calls()[0].1;
    assert_eq!(review["kind"], "SubjectAccessReview");
    assert_eq!(
        review["spec"],
        json!({
            "user": "ann",
            "groups": ["system:authenticated"],
            "resourceAttributes": {
                "verb": "list", "version": "v1", "resource": "configmaps", "namespace": "default", "name": "a",
                "fieldSelector": {"requirements": [
                    {"key": "metadata.name", "operator": "NotIn", "values": ["b"]},
                    {"key": "metadata.name", "operator": "In", "values": ["a"]},
                ]},
                "labelSelector": {"requirements": [
                    {"key": "n", "operator": "In", "values": ["1", "2"]},
                    {"key": "w", "operator": "DoesNotExist"},
                    {"key": "x", "operator": "In", "values": ["y"]},
                    {"key": "z", "operator": "Exists"},
                ]},
            },
        })
    );
    assert_eq!(get(&setting, "/metrics").await.0, 200);
    let spec = &peer.calls()[1].1["spec"];
    assert_eq!(
        spec["nonResourceAttributes"],
        json!({"path": "/metrics", "verb": "get"})
    );
    // The same question is asked once.
    assert_eq!(get(&setting, "/metrics").await.0, 200);
    assert_eq!(peer.calls().len(), 2);
}

#[tokio::test]
async fn a_webhook_that_fails_has_no_opinion_or_denies() {
    let peer = Peer::start(|_, _| Reply::code(500, "secret page")).await;
    let file = peer.kubeconfig("/authorize");
    let setting = setting(json!([hook(&file, json!({})), rbac()])).await;
    assert_eq!(get(&setting, "/api").await.0, 200);
    let strict = hook(&file, json!({"failurePolicy": "Deny"}));
    let strict = configuration(json!([strict, rbac()]));
    setting.authorizer.replace(strict).unwrap();
    let (code, message) = get(&setting, "/api").await;
    assert_eq!(code, 403);
    assert!(!message.contains("secret page"), "{message}");
    let elsewhere = Peer::start(says(json!({"allowed": true}))).await;
    for code in [301, 302, 307, 308] {
        let target = elsewhere.url.clone();
        peer.rewrite(move |_, _| Reply::redirect(code, &target));
        assert_eq!(get(&setting, "/api").await.0, 403, "{code}");
    }
    assert_eq!(elsewhere.calls().len(), 0);
}

#[tokio::test]
async fn conditions_choose_what_the_webhook_is_asked() {
    let peer = Peer::start(says(json!({"denied": true}))).await;
    let file = peer.kubeconfig("/authorize");
    let conditions = json!({
        "failurePolicy": "Deny",
        "matchConditionSubjectAccessReviewVersion": "v1",
        "matchConditions": [
            {"expression": "has(request.resourceAttributes)"},
            {"expression": "request.resourceAttributes.namespace == 'default' && request.user == 'ann'"},
        ],
    });
    let always = json!({"type": "AlwaysAllow", "name": "always"});
    let setting = setting(json!([hook(&file, conditions), always])).await;
    assert_eq!(get(&setting, MAPS).await.0, 403);
    assert_eq!(
        get(&setting, "/api/v1/namespaces/kube-system/configmaps")
            .await
            .0,
        200
    );
    assert_eq!(get(&setting, "/metrics").await.0, 200);
    assert_eq!(peer.calls().len(), 1);
}
