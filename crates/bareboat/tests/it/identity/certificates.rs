//! Client certificates: which name counts, which are refused, and CAs that are taken away.

use super::peer::Ca;
use super::who;
use crate::socket::{Connection, with_certificate};
use crate::support::*;
use bareboat_testing::TestServer;
use rcgen::{BasicConstraints, CertificateParams, DnType, DnValue, ExtendedKeyUsagePurpose, IsCa};

async fn server(ca: &Ca) -> TestServer {
    let server = TestServer::builder()
        .default_roles()
        .listening()
        .start()
        .await;
    let both = format!("{}\n{}", server.ca(), ca.pem());
    server.tls().replace_client_ca(&both).unwrap();
    server
}

async fn connect(server: &TestServer, shown: &(String, String)) -> Connection {
    Connection::over_http1(with_certificate(server, (&shown.0, &shown.1)).await).await
}

async fn user(server: &TestServer, shown: &(String, String)) -> Result<Value, u16> {
    who(&mut connect(server, shown).await, &[]).await
}

fn named(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

#[tokio::test]
async fn names_and_organizations_of_every_string_type_count() {
    let ca = Ca::new();
    let server = server(&ca).await;
    for value in [
        DnValue::Utf8String("dév".to_owned()),
        DnValue::PrintableString("dev".try_into().unwrap()),
        DnValue::BmpString("dév".try_into().unwrap()),
        DnValue::TeletexString("dev".try_into().unwrap()),
    ] {
        let expected = match &value {
            DnValue::PrintableString(_) | DnValue::TeletexString(_) => "dev",
            _ => "dév",
        };
        let mut params = named("ann");
        params
            .distinguished_name
            .push(DnType::OrganizationName, value);
        let user = user(&server, &ca.sign(params)).await.unwrap();
        assert_eq!(user["username"], "ann");
        assert_eq!(user["groups"][0], expected);
        let id = &user["extra"]["authentication.kubernetes.io/credential-id"][0];
        assert!(text(id).starts_with("X509SHA256="), "{id}");
    }
    // A name is a name, whatever group is called like it.
    let masters = user(&server, &ca.client("system:masters")).await.unwrap();
    assert_eq!(masters["groups"], json!(["system:authenticated"]));
}

#[tokio::test]
async fn certificates_that_are_not_for_clients_are_refused() {
    let ca = Ca::new();
    let server = server(&ca).await;
    let mut serving = named("ann");
    serving.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    assert_eq!(user(&server, &ca.sign(serving)).await, Err(401));
    let mut expired = named("ann");
    expired.not_after = rcgen::date_time_ymd(2020, 1, 1);
    assert_eq!(user(&server, &ca.sign(expired)).await, Err(401));
    assert_eq!(user(&server, &Ca::new().client("ann")).await, Err(401));
    assert_eq!(user(&server, &ca.client("ann\0root")).await, Err(401));
    let mut nameless = CertificateParams::default();
    nameless.distinguished_name = rcgen::DistinguishedName::new();
    assert_eq!(user(&server, &ca.sign(nameless)).await, Err(401));
    let mut good = named("ann");
    good.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    assert!(user(&server, &ca.sign(good)).await.is_ok());
}

#[tokio::test]
async fn a_uid_is_one_text() {
    let ca = Ca::new();
    let server = server(&ca).await;
    let uid = || DnType::CustomDnType(vec![1, 3, 6, 1, 4, 1, 57683, 2]);
    let mut params = named("ann");
    params.distinguished_name.push(uid(), "42");
    assert_eq!(user(&server, &ca.sign(params)).await.unwrap()["uid"], "42");
    let mut empty = named("ann");
    empty.distinguished_name.push(uid(), "");
    assert_eq!(user(&server, &ca.sign(empty)).await, Err(401));
}

#[tokio::test]
async fn a_ca_that_is_taken_away_stops_its_clients_on_open_connections() {
    let ca = Ca::new();
    let server = server(&ca).await;
    super::revocation::allow(&server, "ann").await;
    let shown = ca.client("ann");
    let mut connection = connect(&server, &shown).await;
    assert!(who(&mut connection, &[]).await.is_ok());
    let mut watcher = connect(&server, &shown).await;
    let mut watch = watcher.watch(&format!("{MAPS}?watch=1")).await;
    server.tls().replace_client_ca(server.ca()).unwrap();
    assert_eq!(who(&mut connection, &[]).await, Err(401));
    soon(watch.rest()).await;
    assert_eq!(user(&server, &shown).await, Err(401));
    // What cannot be used changes nothing.
    assert!(server.tls().replace_client_ca("nonsense").is_err());
    let (certificate, key) = server.admin_certificate();
    let admin = (certificate.to_owned(), key.to_owned());
    assert!(user(&server, &admin).await.is_ok());
}

#[tokio::test]
async fn intermediates_come_from_the_client() {
    let ca = Ca::new();
    let server = server(&ca).await;
    let mut between = named("between");
    between.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().unwrap();
    let pem = ca.sign_for(between.clone(), &key);
    let issuer = rcgen::Issuer::new(between, key);
    let own = rcgen::KeyPair::generate().unwrap();
    let leaf = named("ann").signed_by(&own, &issuer).unwrap();
    let shown = (format!("{}{pem}", leaf.pem()), own.serialize_pem());
    assert_eq!(user(&server, &shown).await.unwrap()["username"], "ann");
    let alone = (leaf.pem(), own.serialize_pem());
    assert_eq!(user(&server, &alone).await, Err(401));
}

#[tokio::test]
async fn a_certificate_that_expires_stops_working_on_its_open_connection() {
    let ca = Ca::new();
    let server = server(&ca).await;
    // A machine that is slow may take longer than a short life to connect.
    for life in [3u64, 12, 48, 192] {
        let mut params = named("ann");
        let end = std::time::SystemTime::now() + std::time::Duration::from_secs(life);
        params.not_after = end.into();
        let mut connection = connect(&server, &ca.sign(params)).await;
        if who(&mut connection, &[]).await.is_err() {
            continue;
        }
        let ends = async {
            while who(&mut connection, &[]).await.is_ok() {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        };
        soon(ends).await;
        assert!(std::time::SystemTime::now() >= end);
        assert_eq!(who(&mut connection, &[]).await, Err(401));
        // No other credential makes up for it on this connection.
        let answer = connection.send("GET", "/livez", &[], "").await;
        assert_eq!(answer.code, 401);
        return;
    }
    panic!("no connection was open before its certificate expired");
}
