//! Credentials that the program issues: kubeconfigs, signed requests, rotated certificates; used by kubectl.

use crate::process::{Followed, Output, eventually, run};
use crate::server::{Home, bareboat};
use crate::tools;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A server and kubectl.
struct Yard {
    program: PathBuf,
    home: Home,
}

impl Yard {
    fn new() -> Option<Yard> {
        Some(Yard {
            program: tools::kubectl()?,
            home: Home::new(),
        })
    }

    fn kubectl_command(&self, kubeconfig: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .args(arguments)
            .env("HOME", self.home.path());
        command
    }

    fn kubectl(&self, kubeconfig: &Path, arguments: &[&str]) -> Output {
        run(&mut self.kubectl_command(kubeconfig, arguments), "")
    }

    fn admin(&self, arguments: &[&str]) -> String {
        let output = self.kubectl(&self.home.kubeconfig(), arguments);
        assert!(output.status.success(), "{arguments:?}: {}", output.all());
        output.stdout
    }

    /// Runs a command on the data directory.
    fn bareboat(&self, arguments: &[&str]) -> Output {
        let mut command = bareboat(arguments);
        command.arg("--data-dir").arg(self.home.data());
        run(&mut command, "")
    }

    /// A kubeconfig made by a command.
    fn create(&self, name: &str, arguments: &[&str]) -> PathBuf {
        let path = self.home.path().join(name);
        let mut all = vec!["kubeconfig", "create"];
        all.extend(arguments);
        let shown = path.display().to_string();
        all.extend(["--save", &shown]);
        let output = self.bareboat(&all);
        assert!(output.status.success(), "{}", output.all());
        path
    }

    /// Returns the user that the server sees for a kubeconfig.
    fn whoami(&self, kubeconfig: &Path) -> Value {
        let output = self.kubectl(kubeconfig, &["auth", "whoami", "-o", "json"]);
        assert!(output.status.success(), "{}", output.all());
        let review: Value = serde_json::from_str(&output.stdout).unwrap();
        review["status"]["userInfo"].clone()
    }
}

/// Waits until a condition holds.
fn wait_until(what: &str, holds: impl Fn() -> bool) {
    eventually(what, || holds().then_some(()));
}

/// Reads lines until one matches.
fn wait_for_line(program: &mut Followed, wanted: &str) {
    while program.line() != wanted {}
}

#[test]
fn a_kubeconfig_for_a_user_has_all_groups() {
    let Some(yard) = Yard::new() else { return };
    let _server = yard.home.serve();
    let path = yard.create(
        "alice",
        &[
            "alice",
            "--group",
            "dev",
            "--group",
            "ops",
            "--expires",
            "1h",
        ],
    );
    let user = yard.whoami(&path);
    assert_eq!(user["username"], "alice");
    assert_eq!(
        user["groups"],
        serde_json::json!(["dev", "ops", "system:authenticated"])
    );
    // Only its owner may read it.
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let json = yard.bareboat(&["kubeconfig", "create", "bob", "-o", "json"]);
    let config: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(config["users"][0]["name"], "bob");
}

#[test]
fn a_kubeconfig_for_a_service_account_has_a_token() {
    let Some(yard) = Yard::new() else { return };
    let _server = yard.home.serve();
    yard.admin(&["create", "serviceaccount", "robot"]);
    let path = yard.create("robot", &["--service-account", "default/robot"]);
    assert_eq!(
        yard.whoami(&path)["username"],
        "system:serviceaccount:default:robot"
    );
    let missing = yard.bareboat(&[
        "kubeconfig",
        "create",
        "--service-account",
        "default/nobody",
    ]);
    assert!(!missing.status.success());
    assert!(missing.stderr.contains("not found"), "{}", missing.all());
}

#[test]
fn a_credential_plug_in_gives_a_new_credential_whenever_it_is_asked() {
    let Some(yard) = Yard::new() else { return };
    let _server = yard.home.serve();
    let path = yard.create(
        "carol",
        &["carol", "--group", "dev", "--exec", "--expires", "1h"],
    );
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains("client-key-data"), "{text}");
    let first = yard.whoami(&path);
    assert_eq!(first["username"], "carol");
    // Another run has another certificate.
    assert_ne!(first["extra"], yard.whoami(&path)["extra"]);
    yard.admin(&["create", "serviceaccount", "robot"]);
    let path = yard.create("robot", &["--service-account=default/robot", "--exec"]);
    assert_eq!(
        yard.whoami(&path)["username"],
        "system:serviceaccount:default:robot"
    );
}

#[test]
fn an_approved_request_yields_a_working_certificate() {
    let Some(yard) = Yard::new() else { return };
    let _server = yard.home.serve();
    let mut params = rcgen::CertificateParams::default();
    params
        .distinguished_name
        .push(rcgen::DnType::CommonName, "dora");
    params
        .distinguished_name
        .push(rcgen::DnType::OrganizationName, "crew");
    let key = rcgen::KeyPair::generate().unwrap();
    let request = params.serialize_request(&key).unwrap().pem().unwrap();
    let object = serde_json::json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": {"name": "dora"},
        "spec": {
            "request": STANDARD.encode(&request), "signerName": "kubernetes.io/kube-apiserver-client",
            "expirationSeconds": 3600, "usages": ["client auth"],
        },
    });
    let file = yard.home.path().join("request.json");
    std::fs::write(&file, object.to_string()).unwrap();
    yard.admin(&["create", "-f", &file.display().to_string()]);
    yard.admin(&["certificate", "approve", "dora"]);
    let certificate =
        || yard.admin(&["get", "csr", "dora", "-o", "jsonpath={.status.certificate}"]);
    wait_until("the certificate is there", || !certificate().is_empty());
    let certificate = STANDARD.decode(certificate()).unwrap();
    let (cert_path, key_path) = (
        yard.home.path().join("dora.crt"),
        yard.home.path().join("dora.key"),
    );
    std::fs::write(&cert_path, certificate).unwrap();
    std::fs::write(&key_path, key.serialize_pem()).unwrap();
    let output = yard.kubectl(
        Path::new("/dev/null"),
        &[
            &format!("--server=https://{}", yard.home.address()),
            &format!(
                "--certificate-authority={}",
                yard.home.data().join("certificates/ca.crt").display()
            ),
            &format!("--client-certificate={}", cert_path.display()),
            &format!("--client-key={}", key_path.display()),
            "auth",
            "whoami",
            "-o",
            "jsonpath={.status.userInfo.username}",
        ],
    );
    assert_eq!(output.stdout, "dora", "{}", output.all());
    let listed = yard.admin(&["get", "csr", "dora"]);
    assert!(listed.contains("Approved,Issued"), "{listed}");
}

#[test]
fn rotation_takes_effect_without_a_restart_and_keeps_connections_and_tokens() {
    let Some(yard) = Yard::new() else { return };
    let _server = yard.home.serve();
    yard.admin(&["create", "serviceaccount", "robot"]);
    let robot = yard.create("robot", &["--service-account", "default/robot"]);
    // A watch that started before the rotation.
    let mut command = yard.kubectl_command(
        &yard.home.kubeconfig(),
        &["get", "configmaps", "--watch", "-o", "name"],
    );
    let mut watch = Followed::start("watch", &mut command);
    wait_for_line(&mut watch, "configmap/kube-root-ca.crt");
    let served = || served_certificate(&yard.home);
    let (before, keys) = (served(), yard.admin(&["get", "--raw", "/openid/v1/jwks"]));
    let rotated = yard.bareboat(&["certificates", "rotate"]);
    assert!(rotated.status.success(), "{}", rotated.all());
    for part in ["server", "admin", "front-proxy", "service-accounts"] {
        assert!(rotated.stdout.contains(&format!("{part}: rotated")));
    }
    wait_until("the server shows its new certificate", || {
        served() != before
    });
    wait_until("the new key is published", || {
        yard.admin(&["get", "--raw", "/openid/v1/jwks"]) != keys
    });
    // Tokens of the old key and of the new key are valid.
    assert_eq!(
        yard.whoami(&robot)["username"],
        "system:serviceaccount:default:robot"
    );
    let again = yard.create("again", &["--service-account", "default/robot"]);
    assert_eq!(
        yard.whoami(&again)["username"],
        "system:serviceaccount:default:robot"
    );
    let new: Value =
        serde_json::from_str(&yard.admin(&["get", "--raw", "/openid/v1/jwks"])).unwrap();
    assert_eq!(new["keys"].as_array().unwrap().len(), 2);
    // The watch was not cut.
    yard.admin(&["create", "configmap", "later"]);
    wait_for_line(&mut watch, "configmap/later");
    watch.stop();
    let list = yard.bareboat(&["certificates", "list", "-o", "json"]);
    let list: Value = serde_json::from_str(&list.stdout).unwrap();
    let files: Vec<&str> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["file"].as_str().unwrap())
        .collect();
    assert!(files.contains(&"server.crt") && files.contains(&"service-accounts.retired.pem"));
    // A rotation for programs prints what there is afterwards.
    let output = yard.bareboat(&["certificates", "rotate", "service-accounts", "-o", "json"]);
    assert!(output.status.success(), "{}", output.all());
    let after: Value = serde_json::from_str(&output.stdout).unwrap();
    assert!(!after["items"].as_array().unwrap().is_empty(), "{after}");
    wait_until("the third key is published", || {
        let keys = yard.admin(&["get", "--raw", "/openid/v1/jwks"]);
        let keys: Value = serde_json::from_str(&keys).unwrap();
        keys["keys"].as_array().unwrap().len() == 3
    });
    // The oldest token is still good.
    assert_eq!(
        yard.whoami(&robot)["username"],
        "system:serviceaccount:default:robot"
    );
}

/// Returns the serving certificate of a new connection.
fn served_certificate(home: &Home) -> Vec<u8> {
    use rustls::pki_types::pem::PemObject as _;
    use rustls::pki_types::{CertificateDer, ServerName};
    use std::sync::Arc;
    let text = std::fs::read_to_string(home.data().join("certificates/ca.crt")).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(text.as_bytes()) {
        roots.add(certificate.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let mut connection = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let mut socket = std::net::TcpStream::connect(home.address()).unwrap();
    while connection.is_handshaking() {
        connection.complete_io(&mut socket).unwrap();
    }
    connection.peer_certificates().unwrap()[0].to_vec()
}

#[test]
fn who_can_names_users_groups_and_accounts() {
    let Some(yard) = Yard::new() else { return };
    let _server = yard.home.serve();
    yard.admin(&[
        "create",
        "role",
        "reader",
        "--verb=get",
        "--resource=secrets",
    ]);
    yard.admin(&[
        "create",
        "rolebinding",
        "readers",
        "--role=reader",
        "--user=ev\u{1b}[31mil",
        "--group=crew",
        "--serviceaccount=default:robot",
    ]);
    let ask = |arguments: &[&str]| {
        let mut command = bareboat(["who-can"]);
        command
            .args(arguments)
            .arg("--kubeconfig")
            .arg(yard.home.kubeconfig());
        run(&mut command, "")
    };
    let text = ask(&["get", "secrets", "-n", "default"]);
    assert!(text.status.success(), "{}", text.all());
    for words in [
        "ev\\u{1b}[31mil",
        "crew",
        "robot",
        "system:masters",
        "Role/reader",
    ] {
        assert!(text.stdout.contains(words), "{words}: {}", text.stdout);
    }
    assert!(!text.stdout.contains('\u{1b}'), "terminals are safe");
    let subjects = |arguments: &[&str]| -> Vec<String> {
        let answer: Value = serde_json::from_str(&ask(arguments).stdout).unwrap();
        let all = answer["subjects"].as_array().unwrap().iter();
        all.map(|subject| subject["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert!(
        subjects(&["get", "secrets", "-n", "default", "-o", "json"]).contains(&"crew".to_owned())
    );
    for other in [
        &["get", "secrets", "-o", "json"][..],
        &["delete", "secrets", "-n", "default", "-o", "json"],
        &["get", "secrets/status", "-n", "default", "-o", "json"],
    ] {
        assert!(!subjects(other).contains(&"crew".to_owned()), "{other:?}");
    }
    let url = subjects(&["get", "/healthz", "-o", "json"]);
    assert!(url.contains(&"system:authenticated".to_owned()), "{url:?}");
}
