//! Rules of admission look at every container of a pod, by every way to write it (CVE-2023-2727, CVE-2023-2728, CVE-2024-3177).

use crate::support::*;
use bareboat_testing::TestServer;

const NAMESPACES: &str = "/api/v1/namespaces";
const PODS: &str = "/api/v1/namespaces/strict/pods";

/// Ways to put a container into a pod.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Containers,
    InitContainers,
    Ephemeral(&'static str),
}

const WAYS: [Way; 5] = [
    Way::Containers,
    Way::InitContainers,
    Way::Ephemeral(STRATEGIC),
    Way::Ephemeral(MERGE),
    Way::Ephemeral("PUT"),
];

fn container(name: &str) -> Value {
    json!({"name": name, "image": "x"})
}

impl Way {
    /// Writes a pod with this container. Returns the answer to the write that adds it.
    async fn write(self, server: &TestServer, name: &str, added: Value) -> Answer {
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"containers": [container("first")], "serviceAccountName": "limited"},
        });
        let Way::Ephemeral(form) = self else {
            let list = match self {
                Way::InitContainers => "initContainers",
                _ => "containers",
            };
            let mut all = pod["spec"][list].as_array().cloned().unwrap_or_default();
            all.push(added);
            pod["spec"][list] = json!(all);
            return server.post(PODS, &pod).await;
        };
        let made = server.post(PODS, &pod).await.expect(201);
        let path = format!("{PODS}/{name}/ephemeralcontainers");
        match form {
            "PUT" => {
                let mut whole = made.json();
                whole["metadata"]["resourceVersion"] = Value::Null;
                whole["spec"]["ephemeralContainers"] = json!([added]);
                let json = [("content-type", "application/json")];
                server.send("PUT", &path, &json, whole.to_string()).await
            }
            form => {
                let patch = json!({"spec": {"ephemeralContainers": [added]}});
                server.patch(&path, form, &patch).await
            }
        }
    }
}

/// A rule: what a container has that it refuses, and a word of the refusal.
struct Rule {
    name: &'static str,
    member: &'static str,
    refused: Value,
    allowed: Value,
    words: &'static str,
}

fn rules() -> Vec<Rule> {
    let rule = |name, member, refused, allowed, words| Rule {
        name,
        member,
        refused,
        allowed,
        words,
    };
    let secret = |name: &str| json!([{"name": "A", "valueFrom": {"secretKeyRef": {"name": name, "key": "a"}}}]);
    vec![
        rule(
            "privileged",
            "securityContext",
            json!({"privileged": true}),
            json!({"privileged": false}),
            "violates PodSecurity",
        ),
        rule(
            "capabilities",
            "securityContext",
            json!({"capabilities": {"add": ["SYS_ADMIN"]}}),
            json!({"capabilities": {"add": ["CHOWN"]}}),
            "violates PodSecurity",
        ),
        rule(
            "proc-mount",
            "securityContext",
            json!({"procMount": "Unmasked"}),
            json!({"procMount": "Default"}),
            "",
        ),
        rule(
            "seccomp",
            "securityContext",
            json!({"seccompProfile": {"type": "Unconfined"}}),
            json!({"seccompProfile": {"type": "RuntimeDefault"}}),
            "violates PodSecurity",
        ),
        rule(
            "secret-in-env",
            "env",
            secret("foreign"),
            secret("own"),
            "foreign",
        ),
        rule(
            "secret-in-env-from",
            "envFrom",
            json!([{"secretRef": {"name": "foreign"}}]),
            json!([{"secretRef": {"name": "own"}}]),
            "foreign",
        ),
    ]
}

/// A server with a namespace that allows no privileges, and an account that may use one secret.
async fn strict() -> TestServer {
    let server = TestServer::builder()
        .service_account_admission()
        .start()
        .await;
    let namespace = json!({"metadata": {"name": "strict",
        "labels": {"pod-security.kubernetes.io/enforce": "baseline"}}});
    server.post(NAMESPACES, &namespace).await.expect(201);
    let account = json!({
        "metadata": {"name": "limited", "annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}},
        "secrets": [{"name": "own"}],
    });
    let accounts = format!("{NAMESPACES}/strict/serviceaccounts");
    server.post(&accounts, &account).await.expect(201);
    server
}

#[tokio::test]
async fn every_rule_sees_every_container_by_every_way() {
    let server = strict().await;
    for rule in rules() {
        for (at, way) in WAYS.into_iter().enumerate() {
            let (good, bad) = (
                format!("{}-{at}-good", rule.name),
                format!("{}-{at}-bad", rule.name),
            );
            let with = |value: &Value| {
                let mut container = container("added");
                container[rule.member] = value.clone();
                container
            };
            let answer = way.write(&server, &good, with(&rule.allowed)).await;
            assert!(
                matches!(answer.code, 200 | 201),
                "{way:?}, {good}: {}",
                answer.text()
            );
            let answer = way.write(&server, &bad, with(&rule.refused)).await;
            let (code, _, message) = answer.status();
            assert!(matches!(code, 403 | 422), "{way:?}, {bad}: {message}");
            assert!(message.contains(rule.words), "{way:?}, {bad}: {message}");
            // Nothing of it is stored.
            let stored = server.get(&format!("{PODS}/{bad}")).await;
            assert!(!stored.text().contains("\"added\""), "{way:?}, {bad}");
        }
    }
}

#[tokio::test]
async fn no_other_subresource_of_a_pod_writes_containers() {
    let server = strict().await;
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [container("first")], "serviceAccountName": "limited"},
    });
    server.post(PODS, &pod).await.expect(201);
    let privileged =
        json!({"name": "first", "image": "x", "securityContext": {"privileged": true}});
    for part in ["", "/status", "/resize", "/ephemeralcontainers"] {
        for list in ["containers", "initContainers", "ephemeralContainers"] {
            let patch = json!({"spec": {list: [privileged]}});
            for form in [MERGE, STRATEGIC] {
                let path = format!("{PODS}/p{part}");
                let answer = server.patch(&path, form, &patch).await;
                assert!(answer.code < 500, "{part} {list}: {}", answer.text());
                let stored = server.get(&format!("{PODS}/p")).await.expect(200);
                assert!(
                    !stored.text().contains("\"privileged\":true"),
                    "{path} {list}: {}",
                    stored.text()
                );
            }
        }
    }
}
