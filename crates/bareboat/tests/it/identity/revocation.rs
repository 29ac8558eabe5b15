//! Rights that are taken away end the streams that depend on them, and no others.

use super::peer::Ca;
use crate::socket::{As, Connection, with_certificate};
use crate::support::*;
use bareboat::service_accounts::{ServiceAccounts, TokenSettings};
use bareboat_testing::TestServer;
use hyper::body::Incoming;

const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";

/// Lets a user read and watch config maps of the namespace `default`.
pub(super) async fn allow(server: &TestServer, user: &str) {
    let role = json!({
        "metadata": {"name": "readers"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}],
    });
    let answer = server.post(ROLES, &role).await;
    assert!([201, 409].contains(&answer.code), "{}", answer.code);
    let name = user.replace([':', '@'], "-");
    let binding = json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "readers"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    });
    server.post(BINDINGS, &binding).await.expect(201);
}

fn accounts() -> ServiceAccounts {
    let key = rcgen::KeyPair::generate().unwrap().serialize_pem();
    ServiceAccounts::new(&key, &[], TokenSettings::default()).unwrap()
}

async fn server(accounts: &ServiceAccounts) -> TestServer {
    let accounts = accounts.clone();
    TestServer::builder()
        .token("a", "ann", &[])
        .token("b", "bob", &[])
        .with(move |builder| accounts.install(builder))
        .listening()
        .start()
        .await
}

/// A watch and its connection, which ends with its last handle.
pub(super) struct Stream {
    watch: Watching<Incoming>,
    _connection: Connection,
}

pub(super) async fn watch(server: &TestServer, token: &str, more: &[(&str, &str)]) -> Stream {
    let mut connection = Connection::http1(server, As::Nobody).await;
    let header = format!("Bearer {token}");
    let mut headers = vec![("authorization", header.as_str())];
    headers.extend(more);
    let path = format!("{MAPS}?watch=1");
    let response = connection.start("GET", &path, &headers, "").await;
    assert_eq!(response.status(), 200);
    Stream {
        watch: Watching::new(response),
        _connection: connection,
    }
}

/// Makes a config map, and sees that a watch tells of it.
pub(super) async fn is_alive(server: &TestServer, stream: &mut Stream, name: &str) {
    server.post(MAPS, &config_map(name)).await.expect(201);
    loop {
        let event = stream.watch.brief().await;
        assert_ne!(event, "END");
        if event == format!("ADDED {name}") {
            return;
        }
    }
}

/// A plain end, without an error.
pub(super) async fn ends(mut stream: Stream) {
    let rest = soon(stream.watch.rest()).await;
    assert!(
        rest.iter().all(|event| event["type"] != "ERROR"),
        "{rest:?}"
    );
}

#[tokio::test]
async fn a_watch_ends_with_the_binding_that_allowed_it() {
    let server = server(&accounts()).await;
    allow(&server, "ann").await;
    allow(&server, "bob").await;
    let ann = watch(&server, "a", &[]).await;
    let mut bob = watch(&server, "b", &[]).await;
    is_alive(&server, &mut bob, "one").await;
    server.delete(&format!("{BINDINGS}/ann")).await.expect(200);
    ends(ann).await;
    is_alive(&server, &mut bob, "two").await;
    let role =
        json!({"rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]});
    let path = format!("{ROLES}/readers");
    server.patch(&path, MERGE, &role).await.expect(200);
    ends(bob).await;
}

#[tokio::test]
async fn a_watch_of_an_impersonator_ends_with_the_right_to_impersonate() {
    let server = server(&accounts()).await;
    allow(&server, "bob").await;
    let base = "/apis/rbac.authorization.k8s.io/v1";
    let role = json!({
        "metadata": {"name": "impersonators"},
        "rules": [{"apiGroups": [""], "resources": ["users"], "resourceNames": ["bob"], "verbs": ["impersonate"]}],
    });
    server
        .post(&format!("{base}/clusterroles"), &role)
        .await
        .expect(201);
    let binding = json!({
        "metadata": {"name": "ann"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "impersonators"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}],
    });
    let bindings = format!("{base}/clusterrolebindings");
    server.post(&bindings, &binding).await.expect(201);
    let mut as_bob = watch(&server, "a", &[("impersonate-user", "bob")]).await;
    is_alive(&server, &mut as_bob, "one").await;
    server.delete(&format!("{bindings}/ann")).await.expect(200);
    ends(as_bob).await;
}

#[tokio::test]
async fn a_watch_ends_with_the_account_and_with_the_pod_of_its_token() {
    let server = server(&accounts()).await;
    for name in ["robot", "other"] {
        let account = json!({"metadata": {"name": name}});
        server.post(ACCOUNTS, &account).await.expect(201);
        allow(&server, &format!("system:serviceaccount:default:{name}")).await;
    }
    let pod = json!({
        "metadata": {"name": "web"},
        "spec": {"serviceAccountName": "robot", "containers": [{"name": "a", "image": "a"}]},
    });
    let pods = "/api/v1/namespaces/default/pods";
    server.post(pods, &pod).await.expect(201);
    let issue = async |account: &str, spec: Value| {
        let path = format!("{ACCOUNTS}/{account}/token");
        let answer = server.post(&path, &json!({"spec": spec})).await.expect(201);
        text(&answer.json()["status"]["token"]).to_owned()
    };
    let bound = json!({"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "web"}});
    let of_pod = watch(&server, &issue("robot", bound).await, &[]).await;
    let of_account = watch(&server, &issue("robot", json!({})).await, &[]).await;
    let mut of_other = watch(&server, &issue("other", json!({})).await, &[]).await;
    is_alive(&server, &mut of_other, "one").await;
    server
        .delete(&format!("{pods}/web?gracePeriodSeconds=0"))
        .await
        .expect(200);
    ends(of_pod).await;
    server
        .delete(&format!("{ACCOUNTS}/robot"))
        .await
        .expect(200);
    ends(of_account).await;
    is_alive(&server, &mut of_other, "two").await;
}

#[tokio::test]
async fn a_watch_ends_when_the_keys_of_its_token_are_replaced() {
    let accounts = accounts();
    let server = server(&accounts).await;
    let account = json!({"metadata": {"name": "robot"}});
    server.post(ACCOUNTS, &account).await.expect(201);
    allow(&server, "system:serviceaccount:default:robot").await;
    let path = format!("{ACCOUNTS}/robot/token");
    let answer = server
        .post(&path, &json!({"spec": {}}))
        .await
        .expect(201)
        .json();
    let token = text(&answer["status"]["token"]);
    let mut robot = watch(&server, token, &[]).await;
    is_alive(&server, &mut robot, "one").await;
    let next = rcgen::KeyPair::generate().unwrap().serialize_pem();
    accounts.replace_keys(&next, &[]).unwrap();
    ends(robot).await;
}

#[tokio::test]
async fn a_watch_ends_when_its_certificate_expires() {
    let ca = Ca::new();
    let server = server(&accounts()).await;
    let both = format!("{}\n{}", server.ca(), ca.pem());
    server.tls().replace_client_ca(&both).unwrap();
    allow(&server, "carl").await;
    // A machine that is slow may take longer than a short life to begin the watch.
    for life in [4u64, 16, 64, 256] {
        let mut params = rcgen::CertificateParams::default();
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, "carl");
        let end = std::time::SystemTime::now() + std::time::Duration::from_secs(life);
        params.not_after = end.into();
        let (certificate, key) = ca.sign(params);
        let stream = with_certificate(&server, (&certificate, &key)).await;
        let mut connection = Connection::over_http1(stream).await;
        let path = format!("{MAPS}?watch=1");
        let response = connection.start("GET", &path, &[], "").await;
        if response.status() == 200 {
            ends(Stream {
                watch: Watching::new(response),
                _connection: connection,
            })
            .await;
            return;
        }
    }
    panic!("no watch began before its certificate expired");
}
