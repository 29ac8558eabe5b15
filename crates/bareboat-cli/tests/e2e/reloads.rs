//! Files that a running server reads again: one that is half written changes nothing, a log line and a metric say so, and
//! the whole file is taken when it is there.

use crate::process::eventually;
use crate::server::Home;
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// A kind of file that is watched.
struct Kind {
    /// Its description in the log.
    what: &'static str,
    /// A file of it.
    path: PathBuf,
    /// The metric that counts its reloads, without the status.
    metric: String,
}

impl Kind {
    fn new(what: &'static str, path: PathBuf) -> Kind {
        let metric = format!("bareboat_file_reloads_total{{file=\"{what}\",");
        Kind { what, path, metric }
    }

    /// A configuration with metrics of its own.
    fn configuration(what: &'static str, path: PathBuf, name: &str) -> Kind {
        let metric = format!("{name}_config_controller_automatic_reloads_total{{");
        Kind { what, path, metric }
    }

    /// Returns whether the metrics count a reload with this outcome.
    fn counts(&self, metrics: &str, status: &str) -> bool {
        let wanted = format!("{}status=\"{status}\"}} ", self.metric);
        let mut lines = metrics.lines();
        lines.any(|line| line.contains(&wanted) && !line.ends_with(" 0"))
    }
}

/// The files of a server that are not in its data directory.
struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Files {
        let files = Files(tempfile::tempdir().unwrap());
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = params.self_signed(&key).unwrap();
        files.write("proxies.crt", &authority.pem());
        let certificate = CertificateParams::default().self_signed(&key).unwrap();
        files.write("kubelet.crt", &certificate.pem());
        files.write("kubelet.key", &key.serialize_pem());
        files.write("tokens.csv", "the-token-of-bob,bob,1\n");
        let v1 = "apiserver.config.k8s.io/v1";
        files.configure(
            "authentication.json",
            json!({"apiVersion": v1, "kind": "AuthenticationConfiguration", "jwt": []}),
        );
        files.configure(
            "authorization.json",
            json!({"apiVersion": v1, "kind": "AuthorizationConfiguration",
                "authorizers": [{"type": "RBAC", "name": "rbac"}]}),
        );
        files.configure(
            "encryption.json",
            json!({"apiVersion": v1, "kind": "EncryptionConfiguration",
                "resources": [{"resources": ["secrets"], "providers": [{"identity": {}}]}]}),
        );
        files.configure(
            "audit.json",
            json!({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "None"}]}),
        );
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn configure(&self, name: &str, content: Value) {
        self.write(name, &content.to_string());
    }

    fn flags(&self) -> Vec<String> {
        [
            ("--requestheader-client-ca-file", "proxies.crt"),
            ("--kubelet-client-certificate", "kubelet.crt"),
            ("--kubelet-client-key", "kubelet.key"),
            ("--token-file", "tokens.csv"),
            ("--authentication-config", "authentication.json"),
            ("--authorization-config", "authorization.json"),
            ("--encryption-provider-config", "encryption.json"),
            ("--audit-policy-file", "audit.json"),
            ("--audit-log-path", "audit.log"),
        ]
        .iter()
        .map(|(flag, name)| format!("{flag}={}", self.path(name).display()))
        .chain(["--requestheader-allowed-names=proxy".to_owned()])
        .collect()
    }

    /// Every kind of file that a server reads again.
    fn kinds(&self, data: &Path) -> Vec<Kind> {
        let own = |name: &str| data.join("certificates").join(name);
        vec![
            Kind::new("serving certificate", own("server.crt")),
            Kind::new("client CA", own("ca.crt")),
            Kind::new("certificate authority", own("ca.crt")),
            Kind::new("front-proxy certificate", own("front-proxy-client.crt")),
            Kind::new("service account keys", own("service-accounts.key")),
            Kind::new("kubelet client certificate", self.path("kubelet.crt")),
            Kind::new("CA of front proxies", self.path("proxies.crt")),
            Kind::new("token file", self.path("tokens.csv")),
            Kind::configuration(
                "authentication configuration",
                self.path("authentication.json"),
                "authentication",
            ),
            Kind::configuration(
                "authorization configuration",
                self.path("authorization.json"),
                "authorization",
            ),
            Kind::configuration(
                "encryption configuration",
                self.path("encryption.json"),
                "encryption",
            ),
            Kind::configuration("audit policy", self.path("audit.json"), "audit_policy"),
        ]
    }
}

/// Sends a request of the administrator, or of the holder of a token, over a new connection.
fn get(home: &Home, path: &str, token: Option<&str>) -> String {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let client = match token {
            None => home.client().await,
            Some(token) => home.client_with_token(token).await,
        };
        let request = http::Request::get(path).body(Vec::new()).unwrap();
        client.request_text(request).await.unwrap()
    })
}

#[test]
fn a_half_written_file_changes_nothing_and_the_whole_one_is_taken() {
    let files = Files::new();
    let flags = files.flags();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let home = Home::with(&flags);
    let server = home.serve();
    let kinds = files.kinds(&home.data());
    let texts: Vec<Vec<u8>> = kinds
        .iter()
        .map(|kind| std::fs::read(&kind.path).unwrap())
        .collect();
    let who = || get(&home, "/api", Some("the-token-of-bob"));
    let before = who();
    for (kind, text) in kinds.iter().zip(&texts) {
        std::fs::write(&kind.path, &text[..text.len() / 2]).unwrap();
    }
    let count = |status: &str| {
        eventually(&format!("every file counts a {status}"), || {
            let metrics = get(&home, "/metrics", None);
            let missing = kinds.iter().find(|kind| !kind.counts(&metrics, status));
            missing.is_none().then_some(())
        });
    };
    count("failure");
    // Certificates, tokens and configurations are those of before.
    assert_eq!(who(), before);
    let metrics = get(&home, "/metrics", None);
    for kind in &kinds {
        assert!(!kind.counts(&metrics, "success"), "{}", kind.what);
    }
    for (kind, text) in kinds.iter().zip(&texts) {
        let mut whole = text.clone();
        // It differs from what is in use.
        whole.push(b'\n');
        std::fs::write(&kind.path, whole).unwrap();
    }
    count("success");
    assert_eq!(who(), before);
    let (status, log) = server.stop();
    assert!(status.success(), "{log}");
    for kind in &kinds {
        let says = |line: &&str| line.contains("its previous content stays in use");
        let mut lines = log.lines().filter(says);
        let found = lines.any(|line| line.contains(kind.what));
        assert!(found, "no line about the {}: {log}", kind.what);
    }
}
