//! A server with every kind of stream, accounts that may open all of them, and their credentials.

use super::streams::Credential;
use crate::backend::{Ca, Speaks, TestBackend};
use crate::support::*;
use bareboat::ClientIdentity;
use bareboat::api::Str;
use bareboat::control_plane::Settings;
use bareboat::service_accounts::{DEFAULT_ISSUER, ServiceAccounts, TokenSettings};
use bareboat::streams::{self, KUBELET_URL, KubeletSettings};
use bareboat_testing::TestServer;
use bareboat_tokens::SigningKey;
use bareboat_tokens::account::{Claims, Reference, issue};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub(super) const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
pub(super) const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
pub(super) const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
pub(super) const PODS: &str = "/api/v1/namespaces/default/pods";
pub(super) const SECRETS: &str = "/api/v1/namespaces/default/secrets";
pub(super) const MACHINE: &str = "/apis/vms.example.com/v1/namespaces/default/machines/one";
const APISERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";

/// What answers the streams of pods.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Pods {
    /// Functions of the program.
    Functions,
    /// A kubelet.
    Kubelet,
}

pub(super) struct Setting {
    pub(super) server: TestServer,
    pub(super) pods: Pods,
    pub(super) accounts: ServiceAccounts,
    /// Signs client certificates, beside the server's own CA.
    ca: Ca,
    _backend: TestBackend,
    pem: String,
}

/// Serves the streams of pods with functions that go on until they are dropped.
fn functions(settings: Settings) -> Settings {
    let exec = streams::exec(|_, _streams| std::future::pending());
    let attach = streams::attach(|_, _streams| std::future::pending());
    let ports = streams::port_forward(|_, _stream| std::future::pending());
    let logs = streams::logs(|_| async {
        let (writer, body) = streams::log_body();
        tokio::spawn(async move {
            writer.write("first\n").await;
            writer.closed().await;
        });
        Ok(body)
    });
    settings
        .stream("pods", "exec", exec)
        .stream("pods", "attach", attach)
        .stream("pods", "portforward", ports)
        .stream("pods", "log", logs)
}

impl Setting {
    pub(super) async fn new(pods: Pods) -> Setting {
        let pem = rcgen::KeyPair::generate().unwrap().serialize_pem();
        let accounts = ServiceAccounts::new(&pem, &[], TokenSettings::default()).unwrap();
        let callers = Ca::new();
        let (chain, key) = callers.client("front-proxy-client");
        let identity = ClientIdentity::from_pem(&chain, &key).unwrap();
        let (installed, shown) = (accounts.clone(), identity.clone());
        let server = TestServer::builder()
            .settings(move |settings| match pods {
                Pods::Functions => functions(settings),
                Pods::Kubelet => {
                    let mut kubelets = KubeletSettings::default();
                    kubelets.identity = Some(identity.clone());
                    settings.kubelets(kubelets)
                }
            })
            .with(move |builder| installed.install(builder.client_identity(shown.clone())))
            .listening()
            .start()
            .await;
        let backend = TestBackend::start(&callers, Speaks::Http2(100)).await;
        let ca = Ca::new();
        let setting = Setting {
            server,
            pods,
            accounts,
            ca,
            pem,
            _backend: backend,
        };
        setting.trust_certificates(true);
        setting.fill().await;
        setting
    }

    /// Makes what streams lead to: a machine and an aggregated group of the backend, and a pod on its node.
    async fn fill(&self) {
        let (server, backend) = (&self.server, &self._backend);
        crate::subresources::define(server, &crate::subresources::declared(backend)).await;
        let service = crate::aggregation::at_url(backend);
        server.post(APISERVICES, &service).await.expect(201);
        let name = text(&service["metadata"]["name"]).to_owned();
        crate::aggregation::until(server, &name, "True", "Passed").await;
        let url = backend.by_url("")["url"].clone();
        let node = json!({"metadata": {"name": "stub", "annotations": {KUBELET_URL: url}}});
        server.post("/api/v1/nodes", &node).await.expect(201);
        let pod = json!({"metadata": {"name": "target"}, "spec": {
            "nodeName": "stub", "containers": [{"name": "a", "image": "b"}]}});
        server.post(PODS, &pod).await.expect(201);
    }

    /// Accepts certificates of the second CA, or no longer.
    pub(super) fn trust_certificates(&self, trusted: bool) {
        let own = self.server.ca().to_owned();
        let bundle = match trusted {
            true => format!("{own}\n{}", self.ca.pem()),
            false => own,
        };
        self.server.tls().replace_client_ca(&bundle).unwrap();
    }

    /// Makes an account and a user of the same name with the rights to all streams, and everything that tokens may
    /// depend on.
    pub(super) async fn account(&self, name: &str) {
        let server = &self.server;
        let account = json!({"metadata": {"name": name}});
        server.post(ACCOUNTS, &account).await.expect(201);
        let both = json!(["create", "get"]);
        let role = json!({"metadata": {"name": name}, "rules": [
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["watch"]},
            {"apiGroups": ["vms.example.com"], "resources": ["machines/console"], "verbs": ["get"]},
            {"apiGroups": ["agg.example.com"], "resources": ["things", "things/console"], "verbs": ["get", "watch"]},
            {"apiGroups": [""], "resources": ["pods/exec", "pods/attach", "pods/portforward"], "verbs": both},
            {"apiGroups": [""], "resources": ["pods/log", "nodes/proxy"], "verbs": ["get"]},
        ]});
        server.post(ROLES, &role).await.expect(201);
        let binding = json!({
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [
                {"kind": "ServiceAccount", "namespace": "default", "name": name},
                {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": name},
            ],
        });
        server.post(BINDINGS, &binding).await.expect(201);
        let pod = json!({"metadata": {"name": name}, "spec": {
            "serviceAccountName": name, "containers": [{"name": "a", "image": "b"}]}});
        for (path, object) in [
            (PODS, pod),
            (SECRETS, account.clone()),
            ("/api/v1/nodes", account.clone()),
        ] {
            server.post(path, &object).await.expect(201);
        }
    }

    pub(super) async fn token(&self, account: &str, spec: Value) -> Credential {
        let path = format!("{ACCOUNTS}/{account}/token");
        let answer = self.server.post(&path, &json!({"spec": spec})).await;
        let token = text(&answer.expect(201).json()["status"]["token"]).to_owned();
        Credential::Token(token)
    }

    /// A token that the server accepts for a few more seconds.
    pub(super) async fn short_token(&self, account: &str, life: u64) -> Credential {
        let path = format!("{ACCOUNTS}/{account}");
        let uid = self.server.get(&path).await.json()["metadata"]["uid"].clone();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let now = now.as_secs();
        // Clocks may differ by a minute, which the server adds.
        let claims = json!({
            "iss": DEFAULT_ISSUER, "aud": [DEFAULT_ISSUER], "iat": now - 600, "nbf": now - 600,
            "exp": now - 60 + life, "sub": format!("system:serviceaccount:default:{account}"),
            "kubernetes.io": {"namespace": "default", "serviceaccount": {"name": account, "uid": uid}},
        });
        let claims = bareboat_wire::json::parse(claims.to_string().as_bytes()).unwrap();
        let key = SigningKey::from_pem(&self.pem).unwrap();
        Credential::Token(bareboat_tokens::sign(&key, &claims.value).unwrap())
    }

    /// A token that a secret holds.
    pub(super) async fn held_token(&self, account: &str) -> Credential {
        let path = format!("{ACCOUNTS}/{account}");
        let uid = self.server.get(&path).await.json()["metadata"]["uid"].clone();
        let account = Reference {
            name: Str::new(account),
            uid: Str::new(text(&uid)),
        };
        let name = format!("{}-held", account.name);
        let key = SigningKey::from_pem(&self.pem).unwrap();
        let mut secret = json!({
            "metadata": {"name": name, "annotations": {
                "kubernetes.io/service-account.name": account.name.as_str(),
                "kubernetes.io/service-account.uid": uid}},
            "type": "kubernetes.io/service-account-token",
        });
        let claims = Claims::of_secret("default", account, &name);
        let token = issue(&key, "", &claims, 0).unwrap();
        secret["stringData"] = json!({"token": token});
        self.server.post(SECRETS, &secret).await.expect(201);
        Credential::Token(token)
    }

    /// A client certificate of the second CA.
    pub(super) fn certificate(&self, user: &str, life: Duration) -> Credential {
        let mut params = rcgen::CertificateParams::default();
        let name = rcgen::DnType::CommonName;
        params.distinguished_name.push(name, user);
        params.not_after = (SystemTime::now() + life).into();
        let (certificate, key) = self.ca.sign(params);
        Credential::Certificate(certificate, key)
    }
}
