//! Certificates the server makes for itself: kept, made again when they do not fit, or brought by users.

#![allow(clippy::unwrap_used)]
use super::*;
use std::net::SocketAddr;

const LOOPBACK: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

fn made(dir: &Path) -> Certificates {
    ensure(dir, &[], LOOPBACK).unwrap()
}

fn kubeconfig(certificates: &Certificates) -> String {
    let address = SocketAddr::from(([127, 0, 0, 1], 6443));
    crate::kubeconfig::admin(address, &certificates.server.0, certificates)
}

fn file(dir: &Path, name: &str) -> std::path::PathBuf {
    dir.join("certificates").join(name)
}

#[test]
fn a_second_start_reuses_the_certificates() {
    let dir = tempfile::tempdir().unwrap();
    let first = made(dir.path());
    let second = made(dir.path());
    assert_eq!(first.ca, second.ca);
    assert_eq!(first.server, second.server);
    assert_eq!(first.admin, second.admin);
    assert_eq!(first.front_proxy, second.front_proxy);
    assert!(first.admin.1.starts_with("-----BEGIN EC PRIVATE KEY-----"));
}

#[test]
fn a_directory_with_keys_in_pkcs8_keeps_its_authority_and_its_certificates() {
    let dir = tempfile::tempdir().unwrap();
    let new = made(dir.path());
    for name in ["ca", "front-proxy-ca", "server", "admin", FRONT_PROXY] {
        let path = file(dir.path(), &format!("{name}.key"));
        let key = KeyPair::from_pem(&fs::read_to_string(&path).unwrap()).unwrap();
        fs::write(&path, key.to_pkcs8_pem()).unwrap();
    }
    let old = made(dir.path());
    assert_eq!(old.ca, new.ca);
    assert_eq!(old.server.0, new.server.0);
    assert_eq!(old.admin.0, new.admin.0);
    assert!(old.admin.1.starts_with("-----BEGIN PRIVATE KEY-----"));
    assert_eq!(kubeconfig(&old), kubeconfig(&new));
}

#[test]
fn an_authority_that_is_damaged_is_refused_and_left_as_it_is() {
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 6] = [
        ("ca.key: ", |dir| {
            let path = file(dir, "ca.key");
            let text = fs::read_to_string(&path).unwrap();
            fs::write(path, &text[..text.len() / 2]).unwrap();
        }),
        ("ca.key: ", |dir| {
            fs::write(file(dir, "ca.key"), "").unwrap();
        }),
        ("ca.key is missing", |dir| {
            fs::remove_file(file(dir, "ca.key")).unwrap();
        }),
        ("ca.key cannot be read", |dir| {
            // Even root cannot read a directory as a file.
            fs::remove_file(file(dir, "ca.key")).unwrap();
            fs::create_dir(file(dir, "ca.key")).unwrap();
        }),
        ("do not belong together", |dir| {
            let other = KeyPair::generate().unwrap();
            fs::write(file(dir, "ca.key"), other.to_pem()).unwrap();
        }),
        ("ca.crt is not a certificate", |dir| {
            fs::write(file(dir, "ca.crt"), "damaged").unwrap();
        }),
    ];
    for (words, damage) in damages {
        let dir = tempfile::tempdir().unwrap();
        made(dir.path());
        damage(dir.path());
        let state =
            || ["ca.crt", "ca.key"].map(|name| fs::read_to_string(file(dir.path(), name)).ok());
        let before = state();
        let error = ensure(dir.path(), &[], LOOPBACK).err().unwrap();
        let error = format!("{error:#}");
        assert!(error.contains(words), "{error}");
        assert!(error.contains("from a backup"), "{error}");
        assert_eq!(state(), before);
    }
}

#[test]
fn a_lost_ca_certificate_is_made_again_from_its_key() {
    let dir = tempfile::tempdir().unwrap();
    let first = made(dir.path());
    fs::remove_file(file(dir.path(), "ca.crt")).unwrap();
    let second = made(dir.path());
    let key = |pem: &str| {
        let der = super::first(pem).unwrap();
        let (_, parsed) = X509Certificate::from_der(&der).unwrap();
        parsed.public_key().raw.to_vec()
    };
    assert_eq!(key(&first.ca), key(&second.ca));
    assert_eq!(first.admin, second.admin);
}

#[test]
fn a_leaf_that_does_not_match_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let first = made(dir.path());
    fs::write(file(dir.path(), "server.key"), "damaged").unwrap();
    let second = made(dir.path());
    assert_ne!(first.server, second.server);
    assert_eq!(first.admin, second.admin);
    // Clients of this CA do not trust certificates of another CA with the same name.
    fs::remove_file(file(dir.path(), "ca.crt")).unwrap();
    fs::remove_file(file(dir.path(), "ca.key")).unwrap();
    let third = made(dir.path());
    assert_ne!(second.server, third.server);
    assert_ne!(first.admin, third.admin);
}

#[test]
fn an_authority_with_an_rsa_key_can_be_used() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("certificates")).unwrap();
    let pem = include_str!("../../../bareboat-certificates/src/keys/testdata/rsa.pkcs1.pem");
    fs::write(file(dir.path(), "ca.key"), pem).unwrap();
    let first = made(dir.path());
    assert_eq!(first.admin, made(dir.path()).admin);
    assert_eq!(fs::read_to_string(file(dir.path(), "ca.key")).unwrap(), pem);
}

#[test]
fn a_certificate_that_ends_soon_is_renewed() {
    let dir = tempfile::tempdir().unwrap();
    let first = made(dir.path());
    let ca = Authority::read(&folder(dir.path()), "ca").unwrap();
    let names = names(&first.server.0);
    for (days, renewed) in [
        (RENEW_BEFORE_DAYS + 1, false),
        (RENEW_BEFORE_DAYS - 1, true),
    ] {
        let leaf = Leaf {
            seconds: days * 86_400,
            ..Leaf::server(&names)
        };
        let (cert, key) = ca.sign(&leaf).unwrap();
        leaf.save(&folder(dir.path()), &cert, &key).unwrap();
        assert_eq!(made(dir.path()).server.0 != cert, renewed, "{days} days");
    }
}

#[test]
fn a_user_has_all_groups_and_no_longer_life_than_the_authority() {
    let dir = tempfile::tempdir().unwrap();
    let first = made(dir.path());
    let subject = Subject {
        common_name: "ann".to_owned(),
        organizations: vec!["dev".to_owned(), "ops".to_owned()],
    };
    let (cert, _) = user(dir.path(), subject, i64::MAX / 2).unwrap();
    assert_eq!(ends(&cert), ends(&first.ca));
    let der = super::first(&cert).unwrap();
    let (_, parsed) = X509Certificate::from_der(&der).unwrap();
    let groups = parsed.subject().iter_organization();
    let groups: Vec<&str> = groups.map(|group| group.as_str().unwrap()).collect();
    assert_eq!(groups, ["dev", "ops"]);
}

/// Opens a connection; returns it with the certificate that the server showed.
async fn connect(
    address: SocketAddr,
    ca: &str,
) -> (
    tokio_rustls::client::TlsStream<tokio::net::TcpStream>,
    Vec<u8>,
) {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(super::first(ca).unwrap().into()).unwrap();
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = tokio_rustls::TlsConnector::from(std::sync::Arc::new(config));
    let socket = tokio::net::TcpStream::connect(address).await.unwrap();
    let name = "localhost".try_into().unwrap();
    let stream = connector.connect(name, socket).await.unwrap();
    let shown = stream.get_ref().1.peer_certificates().unwrap()[0].to_vec();
    (stream, shown)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_certificate_renews_while_a_connection_stays_open() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().to_str().unwrap();
    let arguments = [
        "bareboat",
        "serve",
        "--bind=127.0.0.1:0",
        "--data-dir",
        data,
    ];
    let parsed = crate::settings::parse(arguments.map(Into::into).to_vec()).unwrap();
    let crate::args::Command::Serve(settings) = parsed.command else {
        panic!("{:?}", parsed.command);
    };
    let first = made(dir.path());
    let (chain, key) = &first.server;
    let tls = bareboat::Tls::from_pem(chain, key, Some(&first.ca)).unwrap();
    let server = bareboat::Server::builder().build().unwrap();
    let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
    let address = server.listen(loopback, Some(tls.clone())).await.unwrap();
    let metrics = bareboat::server::reload::ReloadMetrics::files();
    let mut reloads = crate::reloads::Reloads::new(&metrics);
    reloads.serving(&tls, &settings);
    let (mut open, shown) = connect(address, &first.ca).await;
    assert_eq!(shown, super::first(chain).unwrap());
    // A certificate that ends soon takes the place of the first.
    let ca = Authority::read(&folder(dir.path()), "ca").unwrap();
    let names = names(chain);
    let leaf = Leaf {
        seconds: 600,
        ..Leaf::server(&names)
    };
    let (short, key) = ca.sign(&leaf).unwrap();
    leaf.save(&folder(dir.path()), &short, &key).unwrap();
    let renewed = tls.clone();
    let every = std::time::Duration::from_millis(200);
    reloads.renew(every, &settings, move |certificates| {
        let (chain, key) = &certificates.server;
        renewed.replace_certificate(chain, key).unwrap();
    });
    let old = [shown, super::first(&short).unwrap()];
    let renewal = async {
        loop {
            let (_, shown) = connect(address, &first.ca).await;
            if !old.contains(&shown) {
                break shown;
            }
            tokio::time::sleep(every).await;
        }
    };
    let patience = std::time::Duration::from_secs(120);
    let next = tokio::time::timeout(patience, renewal).await.unwrap();
    let (_, parsed) = X509Certificate::from_der(&next).unwrap();
    let until = now() + RENEW_BEFORE_DAYS * 86_400;
    assert!(parsed.validity().not_after.timestamp() > until);
    // The file has the new one, too, and the first connection goes on.
    let saved = fs::read_to_string(file(dir.path(), "server.crt")).unwrap();
    assert_eq!(super::first(&saved).unwrap(), next);
    let request = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n";
    open.write_all(request).await.unwrap();
    let mut answer = [0; 12];
    open.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    server.shut_down().await;
}
