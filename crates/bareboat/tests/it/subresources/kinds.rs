//! Subresources of kinds from Rust code, served in the process or by a backend.

use super::*;
use crate::socket::tls;
use crate::subresources::streams::until;
use bareboat::api::kind::Verb;
use bareboat::prelude::*;
use bareboat::server::reply::Body;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http_body_util::BodyExt as _;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt as _;

#[derive(Clone, Serialize, Deserialize, JsonSchema)]
struct Ship {
    spec: ShipSpec,
}

#[derive(Clone, Serialize, Deserialize, JsonSchema)]
struct ShipSpec {
    name: String,
}

const SHIPS: &str = "/apis/sea.example.com/v1/namespaces/default/ships";

fn ships() -> Kind {
    let mut kind = TypedKind::new("sea.example.com", "ships", "Ship")
        .version::<Ship>("v1")
        .build()
        .unwrap();
    kind.versions[0].subresources.extend([
        Subresource::connection("hail", &[Verb::Create]).with_paths(),
        Subresource::connection("radio", &[Verb::Get]),
        Subresource::connection("silent", &[Verb::Get]),
    ]);
    kind
}

async fn hail(visit: Visit) -> Result<bareboat::server::reply::Response, Status> {
    let object = visit.object.ok_or_else(|| Status::internal("no ship"))?;
    let path = visit.request.uri().path().to_owned();
    let words = visit.request.into_body().collect().await;
    let words = words
        .map_err(|_| Status::bad_request("say again"))?
        .to_bytes();
    let answer = format!(
        "{} at {path} hears {} from {}",
        object.value().at(&["spec", "name"]).unwrap(),
        String::from_utf8_lossy(&words),
        visit.question.user.name,
    );
    Ok(http::Response::new(Body::full(answer)))
}

#[tokio::test]
async fn a_kind_has_handlers_and_backends_for_its_subresources() {
    let (callers, builder) = builder();
    let backend = TestBackend::start(&callers, Speaks::Http1).await;
    let (port, ca) = (backend.port, backend.ca.pem());
    let server = builder
        .with(move |builder| {
            let radio = RemoteServer::url(&format!("https://localhost:{port}/sea")).ca_bundle(&ca);
            builder
                .kind(ships())
                .connect("sea.example.com", "ships", "hail", Connector::program(hail))
                .connect(
                    "sea.example.com",
                    "ships",
                    "radio",
                    Connector::remote(radio),
                )
        })
        .start()
        .await;
    let ship = json!({
        "apiVersion": "sea.example.com/v1", "kind": "Ship", "metadata": {"name": "one"}, "spec": {"name": "Santa Fe"},
    });
    server.post(SHIPS, &ship).await.expect(201);
    let path = format!("{SHIPS}/one/hail/loudly");
    let answer = server.send("POST", &path, &[], "ahoy").await.expect(200);
    assert_eq!(
        answer.text(),
        format!("\"Santa Fe\" at {path} hears ahoy from admin")
    );
    let path = format!("{SHIPS}/one/radio");
    let said = server.get(&path).await.expect(200).json();
    assert_eq!(said["target"], format!("/sea{path}"));
    server
        .post(&format!("{SHIPS}/two/hail"), &json!({}))
        .await
        .expect(404);
    server.get(&format!("{SHIPS}/one/hail")).await.expect(405);
    server.get(&format!("{SHIPS}/one/silent")).await.expect(404);
}

/// Upgrades the connection and echoes messages.
async fn parrot(mut visit: Visit) -> Result<bareboat::server::reply::Response, Status> {
    let upgraded = hyper::upgrade::on(&mut visit.request);
    tokio::spawn(async move {
        let (mut from, mut to) = tokio::io::split(TokioIo::new(upgraded.await.unwrap()));
        let _ = tokio::io::copy(&mut from, &mut to).await;
    });
    let mut response = http::Response::new(Body::empty());
    *response.status_mut() = http::StatusCode::SWITCHING_PROTOCOLS;
    for (name, value) in [("connection", "Upgrade"), ("upgrade", "parrot")] {
        response.headers_mut().insert(name, value.parse().unwrap());
    }
    Ok(response)
}

#[tokio::test]
async fn a_computed_kind_has_connections_as_well() {
    let mut kind = ships();
    kind.group = "air.example.com".into();
    kind.versions[0].subresources[1].name = "parrot".into();
    let server = TestServer::builder()
        .with(move |builder| builder.computed(Computed::new(kind.clone()).connect(parrot)))
        .listening()
        .start()
        .await;
    let path = "/apis/air.example.com/v1/namespaces/default/ships/any";
    server
        .post(&format!("{path}/parrot"), &json!({}))
        .await
        .expect(405);
    server.get(&format!("{path}/cat")).await.expect(404);
    server
        .get(&format!("{path}/parrot/deeper"))
        .await
        .expect(404);
    let mut stream = tls(&server, As::Admin, "http/1.1").await;
    let head = format!(
        "GET {path}/parrot HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: parrot\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let head = until(&mut stream, "\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 101"), "{head}");
    stream.write_all(b"ahoy").await.unwrap();
    assert_eq!(until(&mut stream, "ahoy").await, "ahoy");
}

#[test]
fn a_connector_needs_a_declared_subresource() {
    let answered = |subresource: &str, connector: Connector| {
        let builder = Server::builder().kind(ships());
        let built = builder
            .connect("sea.example.com", "ships", subresource, connector)
            .build();
        built.err().map(|error| error.to_string())
    };
    assert_eq!(answered("hail", Connector::program(hail)), None);
    assert_eq!(
        answered("sink", Connector::program(hail)).unwrap(),
        "no stored kind has the connection sea.example.com/ships/sink"
    );
    let plain = Connector::remote(RemoteServer::url("http://sea.example"));
    assert!(answered("hail", plain).unwrap().contains("is no https URL"));
}

#[tokio::test]
async fn a_secret_can_hold_the_client_certificate() {
    // The server itself has no client certificate here.
    let callers = Ca::new();
    let backend = TestBackend::start(&callers, Speaks::Http1).await;
    let server = TestServer::start().await;
    let mut client = backend.by_url("");
    client["clientCertificate"] = json!({"namespace": "default", "name": "caller"});
    let part = json!([{"name": "start", "verbs": ["create"], "clientConfig": client}]);
    define(&server, &part).await;
    let path = format!("{ONE}/start");
    server.post(&path, &json!({})).await.expect(502);
    let (chain, key) = callers.client("machines");
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": {"name": "caller"},
        "data": {"tls.crt": BASE64_STANDARD.encode(chain), "tls.key": BASE64_STANDARD.encode(key)},
    });
    let secrets = "/api/v1/namespaces/default/secrets";
    server.post(secrets, &secret).await.expect(201);
    // The next connection uses the certificate of the Secret.
    let said = server.post(&path, &json!({})).await.expect(200).json();
    assert_eq!(said["caller"], "machines");
}
