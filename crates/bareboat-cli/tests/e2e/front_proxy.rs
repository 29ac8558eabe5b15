//! The flags of the front proxy, both ways: the certificate that other API servers see, and the headers of a proxy in
//! front of this server.

use crate::kubectl::Kubectl;
use crate::process::eventually;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair,
};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;

const WHO: &str = "/apis/callers.example.com/v1/namespaces/default/who";

/// A CA for tests.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Authority {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Authority(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// Returns a client certificate with this common name, and its key.
    fn client(&self, name: &str) -> (String, String) {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).unwrap();
        roots
    }
}

/// An API server that accepts certificates of one CA only. It answers every request with the caller's common name and
/// all headers, and then closes the connection.
struct Backend {
    port: u16,
    bundle: String,
}

impl Backend {
    fn start(callers: &Authority) -> Backend {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::from_pem_slice(made.signing_key.serialize_pem().as_bytes());
        let provider = Arc::new(ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(
            Arc::new(callers.roots()),
            provider.clone(),
        );
        let tls = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(verifier.build().unwrap())
            .with_single_cert(vec![made.cert.der().clone()], key.unwrap())
            .unwrap();
        let tls = Arc::new(tls);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                let tls = tls.clone();
                std::thread::spawn(move || answer(tls, stream));
            }
        });
        Backend {
            port,
            bundle: BASE64_STANDARD.encode(made.cert.pem()),
        }
    }

    fn api_service(&self) -> Value {
        json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {
                "name": "v1.callers.example.com",
                "annotations": {"bareboat.dev/url": format!("https://localhost:{}", self.port)},
            },
            "spec": {
                "group": "callers.example.com", "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 15,
                "service": {"name": "callers", "namespace": "default"}, "caBundle": self.bundle,
            },
        })
    }
}

/// Answers one request. A caller that cannot prove who it is gets no answer.
fn answer(tls: Arc<ServerConfig>, stream: TcpStream) -> Option<()> {
    let connection = ServerConnection::new(tls).ok()?;
    let mut stream = BufReader::new(StreamOwned::new(connection, stream));
    let mut headers: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut line = String::new();
    stream.read_line(&mut line).ok()?;
    loop {
        line.clear();
        stream.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        let values = headers.entry(name.to_lowercase()).or_default();
        values.push(value.to_owned());
    }
    let stream = stream.get_mut();
    let caller = stream.conn.peer_certificates()?.first()?;
    let (_, caller) = x509_parser::parse_x509_certificate(caller).ok()?;
    let name = caller.subject().iter_common_name().next()?.as_str().ok()?;
    let body = json!({"certificate": name, "headers": headers}).to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body.as_bytes()).ok()?;
    stream.conn.send_close_notify();
    stream.flush().ok()
}

/// Sends GET as a proxy with this certificate and these headers. Returns the status and the body.
fn get_as_proxy(
    kubectl: &Kubectl,
    (certificate, key): &(String, String),
    headers: &[(&str, &str)],
) -> (u16, String) {
    let mut roots = RootCertStore::empty();
    let ca = kubectl.home.data().join("certificates/ca.crt");
    for certificate in CertificateDer::pem_file_iter(ca).unwrap() {
        roots.add(certificate.unwrap()).unwrap();
    }
    let chain = CertificateDer::pem_slice_iter(certificate.as_bytes()).collect::<Result<_, _>>();
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_client_auth_cert(chain.unwrap(), key)
        .unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let connection = ClientConnection::new(Arc::new(tls), name).unwrap();
    let address = kubectl.home.address();
    let mut stream = StreamOwned::new(connection, TcpStream::connect(&address).unwrap());
    let mut request = format!("GET {WHO} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    stream
        .write_all(format!("{request}\r\n").as_bytes())
        .unwrap();
    let mut answer = String::new();
    // A connection that ends without a farewell is complete if its body is.
    let _ = stream.read_to_string(&mut answer);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, body.to_owned())
}

fn write_pair(dir: &Path, (certificate, key): &(String, String)) {
    // The key first: a certificate without its key is not taken over.
    std::fs::write(dir.join("proxy.key"), key).unwrap();
    std::fs::write(dir.join("proxy.crt"), certificate).unwrap();
}

#[test]
fn the_flags_of_the_front_proxy_count_in_both_directions() {
    let authority = Authority::new();
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name).display().to_string();
    std::fs::write(file("ca.crt"), authority.0.pem()).unwrap();
    let first = authority.client("proxy-one");
    write_pair(dir.path(), &first);
    let [ca, certificate, key] = ["ca.crt", "proxy.crt", "proxy.key"].map(file);
    let Some(kubectl) = Kubectl::start_with(&[
        "--proxy-client-cert-file",
        &certificate,
        "--proxy-client-key-file",
        &key,
        "--requestheader-client-ca-file",
        &ca,
        "--requestheader-allowed-names=proxy-one,proxy-two",
        "--requestheader-username-headers=X-Sailor",
        "--requestheader-uid-headers=X-Sailor-Number",
        "--requestheader-group-headers=X-Crew",
        "--requestheader-extra-headers-prefix=X-Sailor-Extra-",
    ]) else {
        return;
    };
    let published = |key: &str| {
        kubectl.gives(&format!(
            "get configmap extension-apiserver-authentication -n kube-system -o jsonpath={{.data.{key}}}"
        ))
    };
    assert_eq!(published("requestheader-client-ca-file"), authority.0.pem());
    assert_eq!(
        published("requestheader-allowed-names"),
        r#"["proxy-one","proxy-two"]"#
    );

    let backend = Backend::start(&authority);
    kubectl.gives_for("create -f -", &backend.api_service().to_string());
    let available =
        "wait --for=condition=Available apiservice/v1.callers.example.com --timeout=240s";
    kubectl.says(available, &["condition met"]);

    // The administrator, as the other server sees it.
    let seen: Value = serde_json::from_str(&kubectl.gives(&format!("get --raw {WHO}"))).unwrap();
    assert_eq!(seen["certificate"], "proxy-one");
    let headers = &seen["headers"];
    let groups = headers["x-remote-group"].as_array().unwrap();
    assert!(groups.contains(&json!("system:masters")), "{headers}");
    assert!(headers["x-remote-user"].is_array(), "{headers}");
    assert!(headers["authorization"].is_null(), "{headers}");

    // A user whom a proxy names, in the headers of the flags. Headers with the usual names are forged.
    let names = [
        ("X-Sailor", "jane"),
        ("X-Sailor-Number", "7"),
        ("X-Crew", "system:masters"),
        ("X-Crew", "rowers"),
        ("X-Sailor-Extra-Boat", "dinghy"),
        ("X-Remote-User", "mallory"),
        ("X-Remote-Group", "pirates"),
        ("X-Remote-Extra-Boat", "galleon"),
    ];
    let (status, body) = get_as_proxy(&kubectl, &first, &names);
    assert_eq!(status, 200, "{body}");
    let seen: Value = serde_json::from_str(&body).unwrap();
    let headers = &seen["headers"];
    assert_eq!(headers["x-remote-user"], json!(["jane"]), "{headers}");
    assert_eq!(headers["x-remote-uid"], json!(["7"]), "{headers}");
    let groups = json!(["system:masters", "rowers", "system:authenticated"]);
    assert_eq!(headers["x-remote-group"], groups, "{headers}");
    assert_eq!(
        headers["x-remote-extra-boat"],
        json!(["dinghy"]),
        "{headers}"
    );
    assert!(headers["x-sailor"].is_null(), "{headers}");

    // A certificate of the same CA with another name proves nothing.
    let stranger = authority.client("proxy-three");
    let (status, body) = get_as_proxy(&kubectl, &stranger, &names);
    assert_eq!(status, 401, "{body}");

    // A renewed certificate is presented without a restart.
    write_pair(dir.path(), &authority.client("proxy-two"));
    eventually("the other server sees the new certificate", || {
        let seen = kubectl.gives(&format!("get --raw {WHO}"));
        let seen: Value = serde_json::from_str(&seen).unwrap();
        (seen["certificate"] == "proxy-two").then_some(())
    });
}
