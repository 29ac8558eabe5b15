//! Authentication: certificates, tokens, and the server's names.

use crate::process::{Output, run};
use crate::server::Home;
use crate::tools;
use std::path::PathBuf;
use std::process::Command;

/// kubectl without a kubeconfig: the test gives it all credentials.
struct Stranger {
    program: PathBuf,
    home: Home,
}

impl Stranger {
    fn new(flags: &[&str]) -> Option<Stranger> {
        Some(Stranger {
            program: tools::kubectl()?,
            home: Home::with(flags),
        })
    }

    fn asks(&self, authority: &str, arguments: &[&str]) -> Output {
        let mut command = Command::new(&self.program);
        command
            .args(["--kubeconfig=/dev/null", "get", "namespaces"])
            .arg(format!("--server=https://{}", self.home.address()))
            .arg(format!("--certificate-authority={authority}"))
            .args(arguments)
            .env("HOME", self.home.path());
        run(&mut command, "")
    }

    /// Returns the path of the server's CA.
    fn authority(&self) -> String {
        let path = self.home.data().join("certificates/ca.crt");
        path.display().to_string()
    }
}

#[test]
fn a_token_file_authenticates_only_its_users() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("tokens.csv");
    std::fs::write(
        &file,
        "# who may come in\nchief-token,ann,1,\"system:masters,crew\"\nplain-token,bob,2\n",
    )
    .unwrap();
    let file = file.display().to_string();
    let Some(stranger) = Stranger::new(&["--token-file", &file]) else {
        return;
    };
    let _server = stranger.home.serve();
    let authority = stranger.authority();
    let asks = |arguments: &[&str]| stranger.asks(&authority, arguments);
    let chief = asks(&["--token=chief-token"]);
    assert!(chief.status.success(), "{}", chief.all());
    let plain = asks(&["--token=plain-token"]);
    assert!(
        plain.stderr.contains("User \"bob\" cannot list"),
        "{}",
        plain.all()
    );
    for arguments in [&["--token=chief-toke"][..], &["--token=chief-tokenn"]] {
        let wrong = asks(arguments);
        assert!(
            wrong.stderr.contains("Unauthorized"),
            "{arguments:?}: {}",
            wrong.all()
        );
    }
    let nobody = asks(&["--username=", "--request-timeout=10s"]);
    assert!(!nobody.status.success(), "{}", nobody.all());
}

#[test]
fn the_certificate_covers_the_requested_names_also_when_they_change() {
    let Some(stranger) = Stranger::new(&["--san", "boat.example.com"]) else {
        return;
    };
    let server = stranger.home.serve();
    let key = stranger.home.data().join("certificates/admin.key");
    let certificate = stranger.home.data().join("certificates/admin.crt");
    let credentials = [
        format!("--client-key={}", key.display()),
        format!("--client-certificate={}", certificate.display()),
    ];
    let works = |name: &str| {
        let name = format!("--tls-server-name={name}");
        let arguments = [&credentials[0], &credentials[1], &name].map(String::as_str);
        stranger.asks(&stranger.authority(), &arguments)
    };
    for name in ["boat.example.com", "localhost", "kubernetes.default.svc"] {
        let output = works(name);
        assert!(output.status.success(), "{name}: {}", output.all());
    }
    let other = works("ship.example.com");
    assert!(
        other.stderr.contains("not ship.example.com"),
        "{}",
        other.all()
    );
    server.kill();

    let mut command = crate::server::bareboat(["serve", "--san", "ship.example.com"]);
    command
        .args(["--bind", &stranger.home.address(), "--data-dir"])
        .arg(stranger.home.data());
    let mut server = crate::server::Running::start(command);
    server.ready();
    let other = works("ship.example.com");
    assert!(other.status.success(), "{}", other.all());
}

#[test]
fn a_certificate_and_clients_of_another_authority_can_be_used() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let mut authority = rcgen::CertificateParams::default();
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().unwrap();
    let authority = rcgen::CertifiedIssuer::self_signed(authority, key).unwrap();
    let leaf = |name: &str, subject: &[(rcgen::DnType, &str)], names: Vec<String>| {
        let mut parameters = rcgen::CertificateParams::new(names).unwrap();
        for (kind, value) in subject {
            parameters.distinguished_name.push(kind.clone(), *value);
        }
        parameters.extended_key_usages = vec![
            rcgen::ExtendedKeyUsagePurpose::ServerAuth,
            rcgen::ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = parameters.signed_by(&key, &authority).unwrap();
        (
            write(&format!("{name}.crt"), &certificate.pem()),
            write(&format!("{name}.key"), &key.serialize_pem()),
        )
    };
    let server = leaf("server", &[], vec!["boat.example.com".to_owned()]);
    let client = leaf(
        "client",
        &[
            (rcgen::DnType::CommonName, "cleo"),
            (rcgen::DnType::OrganizationName, "system:masters"),
        ],
        Vec::new(),
    );
    let authority = write("ca.crt", &authority.pem());
    let Some(stranger) = Stranger::new(&[
        "--tls-cert",
        &server.0,
        "--tls-key",
        &server.1,
        "--client-ca",
        &authority,
    ]) else {
        return;
    };
    let _server = stranger.home.serve();
    let client = [
        format!("--client-certificate={}", client.0),
        format!("--client-key={}", client.1),
    ];
    let client = [&client[0], &client[1], "--tls-server-name=boat.example.com"];
    let output = stranger.asks(&authority, &client);
    assert!(output.status.success(), "{}", output.all());
    let output = stranger.asks(&stranger.authority(), &client);
    assert!(
        output.stderr.contains("unknown authority"),
        "{}",
        output.all()
    );
    // The kubeconfig that the server writes must match its configured certificate.
    let mut command = Command::new(&stranger.program);
    command
        .args(["get", "namespaces", "--kubeconfig"])
        .arg(stranger.home.kubeconfig())
        .env("HOME", stranger.home.path());
    let output = run(&mut command, "");
    assert!(output.status.success(), "{}", output.all());
}
