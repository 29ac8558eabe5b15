//! Approving a client certificate grants its user and groups: system names need the permission to impersonate them.

use crate::support::*;
use bareboat::api::kind::User;
use bareboat_testing::TestServer;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

fn wish(name: &str, group: &str) -> String {
    use rcgen::{CertificateParams, DnType, KeyPair};
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params
        .distinguished_name
        .push(DnType::OrganizationName, group);
    let key = KeyPair::generate().unwrap();
    STANDARD.encode(params.serialize_request(&key).unwrap().pem().unwrap())
}

async fn create(server: &TestServer, name: &str, wish: &str, usages: &[&str]) -> Value {
    let body = json!({"metadata": {"name": name}, "spec": {
        "request": wish, "signerName": "kubernetes.io/kube-apiserver-client", "usages": usages}});
    server.post(REQUESTS, &body).await.expect(201).json()
}

fn approval(request: &Value) -> Value {
    let mut approved = request.clone();
    approved["status"] =
        json!({"conditions": [{"type": "Approved", "status": "True", "reason": "test"}]});
    approved
}

#[tokio::test]
async fn system_names_need_the_permission_to_impersonate() {
    let server = TestServer::builder().default_roles().start().await;
    let signers = json!({"verbs": ["approve"], "apiGroups": ["certificates.k8s.io"], "resources": ["signers"]});
    let approvals = json!({"verbs": ["get", "update"], "apiGroups": ["certificates.k8s.io"],
        "resources": ["certificatesigningrequests/approval"]});
    let mut role = json!({"metadata": {"name": "approver"}, "rules": [signers, approvals]});
    let roles = format!("{RBAC}/clusterroles");
    server.post(&roles, &role).await.expect(201);
    let binding = json!({"metadata": {"name": "approver"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "approver"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}]});
    server
        .post(&format!("{RBAC}/clusterrolebindings"), &binding)
        .await
        .expect(201);
    let ann = User {
        name: "ann".into(),
        groups: vec!["system:authenticated".into()],
        ..User::default()
    };
    let approve = async |name: &str, request: &Value| {
        let path = format!("{REQUESTS}/{name}/approval");
        let headers = [("content-type", "application/json")];
        let request = request_of(&path, &headers, approval(request).to_string());
        read(server.call_as(ann.clone(), request).await).await
    };
    let plain = create(&server, "plain", &wish("bob", "crew"), &["client auth"]).await;
    approve("plain", &plain).await.expect(200);
    let node = create(
        &server,
        "node",
        &wish("bob", "system:nodes"),
        &["client auth"],
    )
    .await;
    let refused = approve("node", &node).await.expect(403);
    assert!(
        refused
            .text()
            .contains("without the right to impersonate it"),
        "{}",
        refused.text()
    );
    let impersonate = json!({"verbs": ["impersonate"], "apiGroups": [""], "resources": ["groups"],
        "resourceNames": ["system:nodes"]});
    role["rules"].as_array_mut().unwrap().push(impersonate);
    server
        .put(&format!("{roles}/approver"), &role)
        .await
        .expect(200);
    approve("node", &node).await.expect(200);
}

fn request_of(path: &str, headers: &[(&str, &str)], body: String) -> http::Request<bytes::Bytes> {
    request("PUT", path, headers, body)
}
