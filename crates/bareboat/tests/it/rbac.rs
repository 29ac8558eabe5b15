//! RBAC on a whole server: authorization, escalation checks, reviews, default roles.

use crate::support::*;
use bareboat::api::kind::User;
use bareboat_testing::TestServer;

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

pub(crate) fn user(name: &str, groups: &[&str]) -> User {
    let mut groups: Vec<&str> = groups.to_vec();
    groups.push("system:authenticated");
    User {
        name: name.into(),
        groups: groups.into_iter().map(Into::into).collect(),
        ..User::default()
    }
}

/// A test server as seen by one of its users.
pub(crate) struct AsUser<'a>(pub(crate) &'a TestServer, pub(crate) User);

impl AsUser<'_> {
    pub(crate) async fn send(&self, method: &str, path: &str, media: &str, body: &Value) -> Answer {
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        let request = request(method, path, &[("content-type", media)], body);
        read(self.0.call_as(self.1.clone(), request).await).await
    }

    async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, "application/json", &Value::Null)
            .await
    }

    async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, "application/json", body).await
    }
}

async fn server() -> TestServer {
    TestServer::builder().default_roles().start().await
}

fn role(name: &str, rules: Value) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": name}, "rules": rules,
    })
}

fn binding(name: &str, role: &str, user: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    })
}

#[tokio::test]
async fn a_permission_begins_and_ends_with_the_response_of_the_write() {
    let server = server().await;
    let ann = AsUser(&server, user("ann", &[]));
    ann.get(MAPS).await.expect(403);
    let bindings = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
    let view = json!({
        "metadata": {"name": "ann"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "ann"}],
    });
    // The controller aggregates the rules of `view` from other roles.
    let filled = async {
        while server
            .get(&format!("{RBAC}/clusterroles/view"))
            .await
            .json()["rules"]
            .is_null()
        {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    soon(filled).await;
    server.post(bindings, &view).await.expect(201);
    ann.get(MAPS).await.expect(200);
    ann.get("/api/v1/configmaps").await.expect(403);
    ann.get("/api/v1/namespaces/kube-system/configmaps")
        .await
        .expect(403);
    ann.get("/api/v1/namespaces/default/secrets")
        .await
        .expect(403);
    ann.post(MAPS, &config_map("x")).await.expect(403);
    server.delete(&format!("{bindings}/ann")).await.expect(200);
    ann.get(MAPS).await.expect(403);
}

#[tokio::test]
async fn a_rejection_names_the_missing_role() {
    let server = server().await;
    server
        .post(
            &format!("{RBAC}/clusterrolebindings"),
            &binding("b", "nowhere", "ann"),
        )
        .await
        .expect(201);
    let ann = AsUser(&server, user("ann", &[]));
    let (_, _, message) = ann.get(MAPS).await.expect(403).status();
    assert_eq!(
        message,
        "configmaps is forbidden: User \"ann\" cannot list resource \"configmaps\" in API group \"\" in the namespace \
         \"default\": RBAC: clusterrole.rbac.authorization.k8s.io \"nowhere\" not found"
    );
}

#[tokio::test]
async fn authenticated_users_may_discover_and_review_themselves() {
    let server = server().await;
    let ann = AsUser(&server, user("ann", &[]));
    for path in [
        "/api",
        "/apis",
        "/api/v1",
        "/openapi/v2",
        "/openapi/v3",
        "/version",
        "/healthz",
    ] {
        ann.get(path).await.expect(200);
    }
    ann.get("/metrics").await.expect(403);
    let review =
        json!({"spec": {"resourceAttributes": {"verb": "list", "resource": "configmaps"}}});
    let place = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let answer = ann.post(place, &review).await.expect(201).json();
    assert_eq!(answer["status"], json!({"allowed": false}));
    let others = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    ann.post(others, &review).await.expect(403);
}

#[tokio::test]
async fn users_cannot_grant_permissions_they_lack() {
    let server = server().await;
    let roles = format!("{RBAC}/clusterroles");
    let bindings = format!("{RBAC}/clusterrolebindings");
    // Bea may write roles and bindings and read ConfigMaps, but nothing else.
    let rules = json!([
        {"verbs": ["*"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles", "clusterrolebindings"],
         "resourceNames": ["mine"]},
        {"verbs": ["create"], "apiGroups": ["rbac.authorization.k8s.io"],
         "resources": ["clusterroles", "clusterrolebindings"]},
        {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["configmaps"]},
    ]);
    server.post(&roles, &role("bea", rules)).await.expect(201);
    server
        .post(&bindings, &binding("bea", "bea", "bea"))
        .await
        .expect(201);
    let bea = AsUser(&server, user("bea", &["dev"]));
    let secrets = json!([{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["secrets", "configmaps"]}]);
    let refused = bea.post(&roles, &role("mine", secrets.clone())).await;
    assert_eq!(
        refused.expect(403).status().2,
        "clusterroles.rbac.authorization.k8s.io \"mine\" is forbidden: user \"bea\" (groups=[\"dev\" \
         \"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], \
         Resources:[\"secrets\"], Verbs:[\"get\" \"list\"]}"
    );
    let maps = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"]}]);
    // `*` on the role named "mine" includes the verb escalate, so the name matters.
    bea.post(&roles, &role("other", maps)).await.expect(201);
    // Every kind of write is checked on the object that would be stored.
    server
        .post(&roles, &role("shared", json!([])))
        .await
        .expect(201);
    server
        .patch(
            &format!("{roles}/bea"),
            JSON_PATCH,
            &json!([{"op": "add", "path": "/rules/-", "value": {
                "verbs": ["update", "patch", "get"], "apiGroups": ["rbac.authorization.k8s.io"],
                "resources": ["clusterroles"], "resourceNames": ["shared"]}}]),
        )
        .await
        .expect(200);
    let path = format!("{roles}/shared");
    let whole = role("shared", secrets.clone());
    for (method, media, body) in [
        ("PUT", "application/json", whole.clone()),
        ("PATCH", MERGE, json!({"rules": secrets})),
        ("PATCH", STRATEGIC, json!({"rules": secrets})),
        (
            "PATCH",
            JSON_PATCH,
            json!([{"op": "add", "path": "/rules", "value": secrets}]),
        ),
    ] {
        let answer = bea.send(method, &path, media, &body).await;
        assert_eq!(answer.code, 403, "{method} {media}: {}", answer.text());
    }
    let apply = format!("{path}?fieldManager=bea");
    bea.send("PATCH", &apply, APPLY, &whole).await.expect(403);
    bea.send(
        "PATCH",
        &path,
        MERGE,
        &json!({"metadata": {"finalizers": null}}),
    )
    .await
    .expect(200);
    let aggregate =
        json!({"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}});
    let answer = bea
        .send("PATCH", &path, MERGE, &aggregate)
        .await
        .expect(403);
    assert!(
        answer
            .status()
            .2
            .ends_with("must have cluster-admin privileges to use the aggregationRule")
    );
    // A binding grants everything in its role.
    bea.post(&bindings, &binding("up", "cluster-admin", "bea"))
        .await
        .expect(403);
    let missing = bea.post(&bindings, &binding("up", "nowhere", "bea")).await;
    assert_eq!(
        missing.expect(404).status().2,
        "clusterroles.rbac.authorization.k8s.io \"nowhere\" not found"
    );
    bea.post(&bindings, &binding("same", "other", "carl"))
        .await
        .expect(201);
}

#[tokio::test]
async fn reviews_give_the_reason_and_list_the_rules() {
    let server = server().await;
    let rules = json!([
        {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]},
        {"verbs": ["get"], "nonResourceURLs": ["/logs/*"]},
    ]);
    server
        .post(&format!("{RBAC}/clusterroles"), &role("r", rules))
        .await
        .expect(201);
    server
        .post(
            &format!("{RBAC}/clusterrolebindings"),
            &binding("b", "r", "ann"),
        )
        .await
        .expect(201);
    let place = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    let ask = |spec: Value| {
        let server = &server;
        async move { server.post(place, &json!({"spec": spec})).await }
    };
    let pod = |name: &str| json!({"user": "ann", "resourceAttributes": {"verb": "get", "resource": "pods", "name": name}});
    let yes = ask(pod("a")).await.expect(201).json();
    assert_eq!(
        yes["status"],
        json!({"allowed": true,
            "reason": "RBAC: allowed by ClusterRoleBinding \"b\" of ClusterRole \"r\" to User \"ann\""})
    );
    let no = ask(pod("b")).await.expect(201).json();
    assert_eq!(no["status"], json!({"allowed": false}));
    let path = json!({"user": "ann", "nonResourceAttributes": {"verb": "get", "path": "/logs/x"}});
    assert_eq!(
        ask(path).await.expect(201).json()["status"]["allowed"],
        true
    );
    let master =
        json!({"groups": ["system:masters"], "resourceAttributes": {"verb": "x", "resource": "y"}});
    assert_eq!(
        ask(master).await.expect(201).json()["status"],
        json!({"allowed": true})
    );
    let nobody = ask(json!({"resourceAttributes": {"verb": "x"}})).await;
    assert!(nobody.expect(422).status().2.ends_with(
        "spec.user: Invalid value: \"\": at least one of user or group must be specified"
    ));
    ask(json!({"user": "ann"})).await.expect(422);
    let ann = AsUser(&server, user("ann", &[]));
    let own = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let listed = ann
        .post(own, &json!({"spec": {"namespace": "default"}}))
        .await
        .expect(201)
        .json();
    let resources = listed["status"]["resourceRules"].as_array().unwrap();
    assert!(resources.contains(
        &json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]})
    ));
    assert_eq!(listed["status"]["incomplete"], false);
    assert_eq!(
        ann.post(own, &json!({"spec": {}}))
            .await
            .expect(400)
            .status()
            .2,
        "no namespace on request"
    );
    let local = "/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews";
    let elsewhere = json!({"spec": {"user": "ann", "resourceAttributes": {"namespace": "other", "verb": "get"}}});
    assert_eq!(
        server.post(local, &elsewhere).await.expect(400).status().2,
        "spec.resourceAttributes.namespace must match namespace: default"
    );
}

#[tokio::test]
async fn default_roles_are_repaired_at_the_next_start() {
    let mut server = server().await;
    let roles = format!("{RBAC}/clusterroles");
    let basic = format!("{roles}/system:basic-user");
    let before = server.get(&basic).await.expect(200).json();
    server
        .patch(
            &basic,
            MERGE,
            &json!({"rules": [{"verbs": ["own"], "apiGroups": ["a"], "resources": ["b"]}]}),
        )
        .await
        .expect(200);
    let left_alone = json!({
        "metadata": {"annotations": {"rbac.authorization.kubernetes.io/autoupdate": "false"}}, "rules": []});
    server
        .patch(&format!("{roles}/system:discovery"), MERGE, &left_alone)
        .await
        .expect(200);
    let bindings = format!("{RBAC}/clusterrolebindings");
    server
        .delete(&format!("{bindings}/system:basic-user"))
        .await
        .expect(200);
    let count = server.get(&roles).await.names().len();
    server.restart().await;
    assert_eq!(server.get(&roles).await.names().len(), count);
    let after = server.get(&basic).await.json();
    let rules = after["rules"].as_array().unwrap();
    assert_eq!(rules.len(), 1 + before["rules"].as_array().unwrap().len());
    let discovery = server
        .get(&format!("{roles}/system:discovery"))
        .await
        .json();
    assert!(discovery["rules"].is_null(), "{discovery}");
    server
        .get(&format!("{bindings}/system:basic-user"))
        .await
        .expect(200);
    let version = server.get(&basic).await.version();
    server.restart().await;
    assert_eq!(
        server.get(&basic).await.version(),
        version,
        "nothing to repair, nothing written"
    );
}

#[tokio::test]
async fn approving_and_signing_need_permission_for_the_signer() {
    let server = server().await;
    let requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let key = rcgen::KeyPair::generate().unwrap();
    let wish = rcgen::CertificateParams::new(["a.example.com".to_owned()]).unwrap();
    let wish = wish.serialize_request(&key).unwrap().pem().unwrap();
    let wish = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, wish);
    let body = json!({"metadata": {"name": "a"}, "spec": {
        "request": wish, "signerName": "example.com/yard", "usages": ["client auth"]}});
    let created = server.post(requests, &body).await.expect(201).json();
    let rules = |signers: &[&str]| {
        json!([
            {"verbs": ["get", "update", "patch"], "apiGroups": ["certificates.k8s.io"],
             "resources": ["certificatesigningrequests/approval", "certificatesigningrequests/status"]},
            {"verbs": ["approve"], "apiGroups": ["certificates.k8s.io"], "resources": ["signers"],
             "resourceNames": signers},
        ])
    };
    let roles = format!("{RBAC}/clusterroles");
    server
        .post(&roles, &role("approver", rules(&["example.org/*"])))
        .await
        .expect(201);
    server
        .post(
            &format!("{RBAC}/clusterrolebindings"),
            &binding("approver", "approver", "ann"),
        )
        .await
        .expect(201);
    let ann = AsUser(&server, user("ann", &[]));
    let mut approved = created.clone();
    approved["status"] =
        json!({"conditions": [{"type": "Approved", "status": "True", "reason": "r"}]});
    let approval = format!("{requests}/a/approval");
    let approve = || ann.send("PUT", &approval, "application/json", &approved);
    assert_eq!(
        approve().await.expect(403).status().2,
        "certificatesigningrequests.certificates.k8s.io \"a\" is forbidden: user not permitted to approve requests with \
         signerName \"example.com/yard\""
    );
    server
        .put(
            &format!("{roles}/approver"),
            &role("approver", rules(&["example.com/*"])),
        )
        .await
        .expect(200);
    approve().await.expect(200);
    let failed = json!({"type": "Failed", "status": "True", "reason": "r"});
    let sign = json!([{"op": "add", "path": "/status/conditions/-", "value": failed}]);
    let status = format!("{requests}/a/status");
    let refused = ann
        .send("PATCH", &status, JSON_PATCH, &sign)
        .await
        .expect(403);
    assert!(
        refused.text().contains("not permitted to sign"),
        "{}",
        refused.text()
    );
}
