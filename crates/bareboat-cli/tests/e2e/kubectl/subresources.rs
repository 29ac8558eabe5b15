//! Subresources that another server answers: runs the examples of `docs/subresources.md`.

use super::Kubectl;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use std::convert::Infallible;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

/// The service of the page: it returns the request's target and user.
struct Service {
    _runtime: tokio::runtime::Runtime,
    port: u16,
    ca: String,
}

impl Service {
    /// Trusts clients whose certificate the front-proxy CA signed.
    fn start(front_proxy_ca: &str) -> Service {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &ca).unwrap().der().clone();
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut callers = rustls::RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(front_proxy_ca.as_bytes()) {
            callers.add(certificate.unwrap()).unwrap();
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(callers), provider.clone());
        let tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(verifier.build().unwrap())
            .with_single_cert(vec![certificate], key)
            .unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"));
        let listener = listener.unwrap();
        let port = listener.local_addr().unwrap().port();
        runtime.spawn(serve(listener, TlsAcceptor::from(Arc::new(tls))));
        Service {
            _runtime: runtime,
            port,
            ca: ca.pem(),
        }
    }
}

async fn serve(listener: tokio::net::TcpListener, tls: TlsAcceptor) {
    while let Ok((stream, _)) = listener.accept().await {
        let tls = tls.clone();
        tokio::spawn(async move {
            let Ok(stream) = tls.accept(stream).await else {
                return;
            };
            let _ = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), service_fn(answer))
                .await;
        });
    }
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let user = request.headers().get("x-remote-user");
    let user = user.and_then(|user| user.to_str().ok()).unwrap_or("nobody");
    let text = format!("{} {} by {user}\n", request.method(), request.uri());
    Ok(Response::new(Full::new(text.into())))
}

/// Returns the code blocks of a language.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}");
    // Further words in the line of the fence are for the runner of the book.
    let starts = page.split(&fence).skip(1);
    let inside = starts.filter_map(|rest| rest.split_once('\n'));
    inside
        .map(|(_, rest)| rest.split("```").next().unwrap().to_owned())
        .collect()
}

#[test]
fn the_examples_of_the_subresources_page_work() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    let trusted = "get configmap extension-apiserver-authentication -n kube-system -o jsonpath={.data.requestheader-client-ca-file}";
    let service = Service::start(&kubectl.gives(trusted));
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/subresources.md");
    let page = std::fs::read_to_string(page).unwrap();
    let address = format!("https://localhost:{}", service.port);
    let example = blocks(&page, "yaml")[0]
        .replace("https://vms.example.com:8443", &address)
        .replace(
            "BASE64-OF-THE-PEM-OF-ITS-CA",
            &BASE64_STANDARD.encode(&service.ca),
        );
    let (definition, machine) = example.split_once("---\n").unwrap();
    kubectl.says_for("apply -f -", definition, &["created"]);
    let established =
        "wait --for=condition=Established crd/virtualmachines.vms.example.com --timeout=240s";
    kubectl.says(established, &["condition met"]);
    kubectl.says_for("apply -f -", machine, &["created"]);
    std::fs::write(kubectl.home.path().join("request.json"), "{}").unwrap();

    let mut commands = 0;
    for block in blocks(&page, "console") {
        for step in block.split("$ kubectl ").skip(1) {
            let (command, expected) = step.split_once('\n').unwrap();
            let expected: Vec<&str> = expected.lines().collect();
            kubectl.says(command, &expected);
            commands += 1;
        }
    }
    assert!(commands >= 5, "the page has its examples");

    let start = "/apis/vms.example.com/v1/namespaces/default/virtualmachines/vm1/start";
    kubectl.refuses(
        &format!("create --raw {start} -f request.json --as jane"),
        &["User \"jane\" cannot create resource \"virtualmachines/start\" in API group \"vms.example.com\" in the namespace \"default\""],
    );
    kubectl.refuses(
        &format!(
            "create --raw {} -f request.json",
            start.replace("vm1", "vm2")
        ),
        &["virtualmachines.vms.example.com \"vm2\" not found"],
    );
    kubectl.says(
        "api-resources --api-group=vms.example.com",
        &["virtualmachines vm vms.example.com/v1 true VirtualMachine"],
    );
    kubectl.says(
        "get --raw /apis/vms.example.com/v1",
        &[
            "\"name\":\"virtualmachines/start\"",
            "\"verbs\":[\"create\",\"update\"]",
        ],
    );
    let bad = definition.replace("verbs: [get]", "verbs: [list]");
    kubectl.refuses_for(
        "apply -f -",
        &bad,
        &["metadata.annotations[bareboat.dev/subresources][1].verbs[0]: Unsupported value: \"list\""],
    );
}
